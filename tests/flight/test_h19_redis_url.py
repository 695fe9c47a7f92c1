"""H19: a URL that would turn bytes into text."""

from __future__ import annotations

import pytest

from flightsvc.errors import SettingsError
from flightsvc.flight import SingleFlight
from tests.support.redis_server import RedisServer


@pytest.mark.parametrize("option", ["decode_responses=true", "decode_responses=1", "encoding=gbk"])
def test_h19_a_url_that_decodes_is_refused_before_anything_is_asked(
    redis_server: RedisServer, option: str
) -> None:
    with pytest.raises(SettingsError, match=option.partition("=")[0]):
        SingleFlight.from_url(f"{redis_server.url}?{option}")
