"""The tables for reviewers: docs/checklist.md is the list; the page stands alone."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from flightsvc.checklist.fields import tables
from flightsvc.checklist.page import html
from flightsvc.checklist.render import markdown
from tests.checklist.lists import merged
from tests.readme_pages import blocks, page

DOCS = page("docs/checklist.md")


def test_the_documentation_holds_the_list() -> None:
    _, inside, _ = DOCS.split("<!-- checklist -->")
    assert inside.strip() == markdown(merged()).strip(), "run: flightsvc checklist table"


def test_the_documentation_holds_the_fields() -> None:
    _, inside, _ = DOCS.split("<!-- fields -->")
    assert inside.strip() == tables().strip(), "run: python -m flightsvc.checklist.fields"


def test_the_example_of_the_documentation_can_be_served() -> None:
    (example,) = blocks(DOCS, "toml")
    checklist = merged(example)
    assert checklist.code("AI_TRANSCRIPT_MISSING").fallback.params["wait_s"] == 60
    assert checklist.code("AI_INFRA_TIMEOUT").retry is not None


def test_every_row_of_a_table_has_as_many_cells() -> None:
    for table in markdown(merged()).strip().split("\n\n"):
        lines = table.splitlines()
        assert len({re.sub(r"\\\\|\\\|", "", line).count("|") for line in lines}) == 1


def test_every_code_and_every_message_stands_in_both_tables() -> None:
    checklist = merged()
    flat, whole = markdown(checklist).replace("\\", ""), html(checklist).replace("<wbr>", "")
    for code in checklist:
        for text in (code.name, code.about_zh, code.about_en, code.message_zh, code.message_en):
            assert text in flat
            assert text.replace("'", "&#x27;") in whole


def test_words_of_the_list_cannot_break_a_table() -> None:
    checklist = merged("[codes.OVERLOAD]\nmessage_en = 'a | b <script>x</script> `c` *d* [e](f)'\n")
    row = next(line for line in markdown(checklist).splitlines() if "OVERLOAD" in line)
    assert "a \\| b \\<script\\>x\\</script\\> \\`c\\` \\*d\\* \\[e\\](f)" in row
    assert "<script>" not in html(checklist)


class Page(HTMLParser):
    """Whether tags close in order, and what leads out of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "wbr"):
            self.open.append(tag)
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value or "")
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    text = html(merged())
    read = Page()
    read.feed(text)
    assert read.open == []
    assert [link for link in read.links if link.removeprefix("#") not in read.ids] == []
    assert "url(" not in text
    assert "@import" not in text
    assert "@media print" in text


def test_what_is_said_of_a_code() -> None:
    rows = {line.split("|")[1].strip(): line for line in markdown(merged()).splitlines() if line}
    timeout = rows["AI\\_INFRA\\_TIMEOUT"]
    assert "after 100 ms and 300 ms; the fallback route 900 ms later" in timeout
    assert "ask the smaller model" in timeout
    assert "P2 from 5 % of calls in 5 min (of 20 or more): WeChat Work + log" in timeout
    assert "降级至小模型" in timeout
    assert "never: a second call would do harm" in rows["AI\\_PAYMENT\\_FAILED"]
    assert "禁用该用户的 AI 功能 3 天" in rows["AI\\_INPUT\\_SENSITIVE"]
    assert "after 10 in a row; pauses the module" in rows["AI\\_CRM\\_SYNC\\_LOST"]
    assert "back to the former model, after 3 in a row" in rows["AI\\_MODEL\\_DRIFT\\_DETECTED"]
