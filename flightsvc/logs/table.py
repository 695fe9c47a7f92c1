"""The fields as a Markdown table: ``python -m flightsvc.logs.table``.

docs/logs.md holds its output between two markers; a test compares them.
"""

from __future__ import annotations

from flightsvc.logs.fields import EVENTS, FIELDS, GOLDEN


def table() -> str:
    """All fields, the golden ones in bold."""
    rows = ["| field | is | in | says |", "|---|---|---|---|"]
    for one in FIELDS:
        where = "all" if one.events == EVENTS else ", ".join(one.events)
        name = f"**`{one.name}`**" if one.name in GOLDEN else f"`{one.name}`"
        rows.append(f"| {name} | {one.kind} | {where} | {one.help} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(table(), end="")
