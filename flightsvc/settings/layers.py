"""Settings of several sources, one laid over the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flightsvc.settings.wording import Path


def has(values: Any, path: Path) -> bool:
    """Whether a source gives a setting."""
    for part in path:
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True


def merged(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """``high`` over ``low``; only stages are merged, tokens are replaced whole."""
    merged = {**low, **high}
    below, above = low.get("stages"), high.get("stages")
    if isinstance(below, dict) and isinstance(above, dict):
        stages = dict(below)
        for name, own in above.items():
            base = below.get(name)
            if isinstance(base, dict) and isinstance(own, dict):
                own = {**base, **own}
            stages[name] = own
        merged["stages"] = stages
    return merged
