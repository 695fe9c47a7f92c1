"""A rule that no failure can reach is a mistake, unless a user's rule took its place."""

from __future__ import annotations

import pytest

from flightsvc.errors import Overloaded
from tests.checklist.lists import OWN, faults, merged

RULES_IN_VAIN = {
    "the same again": ("exception = 'ValueError'", "exception = 'ValueError'"),
    "a subclass": ("exception = 'ValueError'", "exception = 'UnicodeDecodeError'"),
    "a subclass of ours": ("exception = 'FlightSvcError'", "exception = 'ProviderTimeout'"),
    "everything": ("exception = 'Exception'", "exception = 'SomethingOfTheUser'"),
    "a status within a range": ("upstream_status = '400-499'", "upstream_status = [401, 403]"),
    "several that cover together": (
        "upstream_status = ['400-450']\n[[match]]\nto = 'OVERLOAD'\nupstream_status = '451-499'",
        "upstream_status = '430-470'",
    ),
    "a provider more": ("upstream_code = 'x'", "provider = 'openai'\nupstream_code = 'x'"),
    "a condition more": ("upstream_code = 'x'", "upstream_status = 400\nupstream_code = 'x'"),
    "a class that all of them have": ("exception = 'ProviderError'", "upstream_status = 404"),
    "the same text": ("text = 'a+'", "text = 'a+'\nexception = 'ValueError'"),
}


@pytest.mark.parametrize("case", RULES_IN_VAIN)
def test_a_rule_that_is_never_reached_is_refused(case: str) -> None:
    first, second = RULES_IN_VAIN[case]
    text = f"[[match]]\nto = 'OVERLOAD'\n{first}\n[[match]]\nto = 'DRAINING'\n{second}\n"
    line = text[: text.index("[[match]]\nto = 'DRAINING'")].count("\n") + 1
    said = [each for each in faults(text) if each.startswith(f"{OWN}:{line}: ")]
    assert len(said) == 1
    assert "(to DRAINING) is never reached" in said[0]
    assert f"{OWN}:1" in said[0]


RULES_IN_REACH = {
    "a superclass": ("exception = 'UnicodeDecodeError'", "exception = 'ValueError'"),
    "another provider": (
        "provider = 'openai'\nupstream_code = 'x'",
        "provider = 'xingchen'\nupstream_code = 'x'",
    ),
    "one value more": ("upstream_code = ['x']", "upstream_code = ['x', 'y']"),
    "another text": ("text = 'a+'", "text = 'a'"),
    "any class": ("exception = 'ValueError'", "text = 'x'"),
    "a class of the user's": ("exception = 'TheirError'", "exception = 'MyError'"),
}


@pytest.mark.parametrize("case", RULES_IN_REACH)
def test_a_rule_that_has_something_left_to_it_is_not(case: str) -> None:
    first, second = RULES_IN_REACH[case]
    merged(f"[[match]]\nto = 'OVERLOAD'\n{first}\n[[match]]\nto = 'DRAINING'\n{second}\n")


def test_a_rule_of_the_user_s_may_take_the_place_of_a_shipped_one() -> None:
    checklist = merged("[[match]]\nto = 'DRAINING'\nexception = 'Overloaded'")
    assert checklist.classify(Overloaded()).name == "DRAINING"
