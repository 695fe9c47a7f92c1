"""The page of a session: its structure, and that nothing in it is taken for markup."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from flightsvc.records import (
    CONTENT_SECURITY_POLICY,
    SessionRecords,
    StoredRecord,
    as_json,
    render_report,
)
from flightsvc.records.report_words import WORDS
from tests.records.samples import FILE, FLIGHT, stored

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """The elements of a page, each with its attributes and its own text, in order.

    Elements that do not close in order are an error.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and self._open[-1:] != ["style"]:
            self.texts.append(data.strip())

    def all(self, tag: str, of_class: str = "") -> list[dict[str, str | None]]:
        return [
            attributes
            for name, attributes in self.elements
            if name == tag and of_class in (attributes.get("class") or "")
        ]


def evaluation(number: int, score: object = 70, **more: Any) -> StoredRecord:
    value = {
        "score": score,
        "logic_ok": True,
        "missing_points": ["A point"],
        "feedback": "Some feedback",
        "follow_up_needed": False,
        "follow_up_question": None,
        "simulated": False,
        **more.pop("value", {}),
    }
    asked = {"question_number": number, "question": "Why?", "answer": "Because."}
    return stored(
        more.pop("row", number), value=value, asked={**asked, **more.pop("asked", {})}, **more
    )


def question_set(number: int, **value: Any) -> StoredRecord:
    given = {
        "questions": ["First?", "Second?"],
        "suggestions": ["Be brief."],
        "resume_score": 64,
        "interview_type": "Backend",
    }
    asked = {"position": "Engineer", "file_name": "cv.pdf"}
    return stored(
        number, kind="question_set", value={**given, **value}, asked=asked, file_digest=FILE
    )


def follow_up(number: int, **value: Any) -> StoredRecord:
    given = {"needed": True, "question": "And then?", "reason": "It is open."}
    asked = {"current_question": "Why?", "answer": "Because."}
    return stored(number, kind="follow_up", value={**given, **value}, asked=asked)


def picture(number: int, **value: Any) -> StoredRecord:
    given = {
        "panic_level": 10,
        "seriousness_level": 90,
        "emoticon_handling": 65.5,
        "composite_score": 81,
    }
    return stored(number, kind="demeanor", value={**given, **value}, file_digest=FILE)


def session(*records: StoredRecord) -> SessionRecords:
    return SessionRecords("acme", "s-1", records)


WHOLE = session(question_set(1), evaluation(2), evaluation(10), follow_up(11), picture(12))


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_everything_of_a_session_is_on_the_page(language: str) -> None:
    words = WORDS[language[:2]]
    page = Page(render_report(WHOLE, language))
    said = "\n".join(page.texts)
    for name in ("title", "scores", "questions", "suggestions", "evaluations", "follow_ups"):
        assert words[name] in said, name
    for text in ("First?", "Second?", "Be brief.", "Backend", "cv.pdf", "And then?", "It is open."):
        assert text in said, text
    for text in ("Some feedback", "A point", "Because.", "65.5", "s-1"):
        assert text in said, text
    assert page.all("html")[0]["lang"] == words["lang"]
    assert page.all("meta")[0]["charset"] == "utf-8"
    assert words["simulated"] not in said


def test_every_language_has_every_text() -> None:
    assert {frozenset(texts) for texts in WORDS.values()} == {frozenset(WORDS["en"])}
    assert all(text.strip() for texts in WORDS.values() for text in texts.values())


def test_a_question_cannot_turn_its_score_around_or_hide_something_in_a_drawing() -> None:
    sly = "Why?\u202e\u2069 \x00\x1b\x9b"
    page = render_report(session(evaluation(1, 90, asked={"question": sly})), "en")
    drawing = page[page.index("<figure>") : page.index("</figure>")]
    shown = "\u2068Q1 · Why? \u2400\u241b\ufffd\u2069"
    assert f"<title>{shown}: 90</title>" in drawing
    assert f">{shown}</text>" in drawing
    assert not set("\u202e\x00\x1b\x9b") & set(drawing)


def test_scores_stand_in_one_drawing_question_by_question() -> None:
    judged = [
        evaluation(10, 100),
        evaluation(2, 0),
        evaluation(1, 59.96),
        evaluation(3, None),
        evaluation(4, 60),
        evaluation(5, 80, asked={"question_number": "3-1"}),
    ]
    page = Page(render_report(session(*judged), "en"))
    titles = page.texts[page.texts.index("The latest answer to each question, from 0 to 100.") :]
    plain = [re.sub("[\u2068\u2069]", "", text) for text in titles]
    labels = [text for text in plain if re.match(r"Q\S+ · Why\?: ", text)]
    assert labels == [
        "Q1 · Why?: 60",
        "Q2 · Why?: 0",
        "Q3 · Why?: no score",
        "Q3-1 · Why?: 80",
        "Q4 · Why?: 60",
        "Q10 · Why?: 100",
    ]
    bars = [(bar["width"], bar["class"]) for bar in page.all("rect", "bar")]
    assert bars == [
        ("60.0%", "bar poor"),
        ("0.0%", "bar poor"),
        ("80.0%", "bar good"),
        ("60.0%", "bar fair"),
        ("100.0%", "bar good"),
    ]
    assert all(svg["role"] == "img" and svg["aria-label"] for svg in page.all("svg", "bars"))


def test_the_latest_answer_counts_and_the_earlier_is_marked() -> None:
    first, second = evaluation(1, 20, row=1), evaluation(1, 80, row=2)
    page = Page(render_report(session(first, second, evaluation(2, 40, row=3)), "en"))
    assert [a["class"] for a in page.all("article")] == ["good", "poor earlier", "poor"]
    assert page.texts.count("earlier answer") == 1
    assert page.texts[page.texts.index("Average score") + 1] == "60"
    assert page.texts[page.texts.index("Questions answered") + 1] == "2"


def test_little_panic_is_good() -> None:
    page = Page(render_report(session(picture(1)), "en"))
    assert [bar["class"] for bar in page.all("rect", "bar")] == [
        "bar good",
        "bar good",
        "bar fair",
        "bar good",
    ]


def test_paper_may_break_a_long_drawing() -> None:
    page = Page(render_report(session(*(evaluation(n) for n in range(1, 24))), "en"))
    assert len(page.all("svg", "bars")) == 5


def test_made_up_answers_are_called_so() -> None:
    shown = session(evaluation(1, value={"simulated": True}), evaluation(2))
    page = Page(render_report(shown, "en"))
    assert WORDS["en"]["simulated"] in page.texts
    assert page.texts.count("simulated") == 1


def test_a_session_without_anything_says_so() -> None:
    page = Page(render_report(session(), "zh"))
    assert WORDS["zh"]["empty"] in page.texts
    assert page.all("section") == []


def test_nothing_is_loaded_and_nothing_runs() -> None:
    text = render_report(WHOLE, "en")
    page = Page(text)
    names = {name for name, _ in page.elements}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a"}
    for _, attributes in page.elements:
        assert not {"src", "href", "style", "srcdoc", "action"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
    for word in ("http:", "https:", "@import", "url(/", "//", "expression("):
        assert word not in text.replace("url(#fade)", ""), word


def test_the_policy_allows_this_style_alone() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", render_report(WHOLE, "en"), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}';" in CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    for must in ("@page", "size: A4", "@media print", "break-inside", "prefers-color-scheme: dark"):
        assert must in style
    assert "max-width: 480px" in style


NASTY = [
    "</title></style></svg><script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)> ' onload=alert(1) x='",
    "{{ 7 * 7 }}{% for a in b %}",
    "&lt;b&gt; & <!-- ]]> <![CDATA[",
    "javascript:alert(1)\0\x1b\u2028\u202e",
]


def everywhere(text: str) -> SessionRecords:
    """A session with one text wherever a text can stand."""

    def spread(value: Any) -> Any:
        if isinstance(value, str):
            return text
        if isinstance(value, list):
            return [spread(each) for each in value]
        return value

    records = [
        question_set(1),
        evaluation(2, value={"follow_up_question": "x"}, asked={"question_number": "x"}),
        follow_up(3),
        picture(4),
    ]
    changed = [
        stored(
            number,
            kind=record.kind,
            value={name: spread(value) for name, value in record.value.items()},
            asked={name: spread(value) for name, value in record.asked.items()},
        )
        for number, record in enumerate(records)
    ]
    return SessionRecords(text, text, tuple(changed))


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_text_is_markup(text: str, language: str) -> None:
    plain = Page(render_report(everywhere("plain"), language))
    nasty = Page(render_report(everywhere(text), language))
    # the same elements with the same attributes: the texts alone differ
    assert nasty.elements == plain.elements
    assert len(nasty.texts) == len(plain.texts)
    assert plain.texts.count("plain") >= 12
    assert "49" not in nasty.texts


WRONG: list[Any] = [
    None,
    True,
    [],
    {},
    "text",
    -1,
    101,
    1e999,
    float("nan"),
    10**400,
    [None, {"a": 1}, 3, " "],
    {"questions": {"a": 1}},
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_values_of_another_shape_are_left_out(wrong: Any) -> None:
    records = []
    for number, record in enumerate(WHOLE.records):
        value, asked = dict.fromkeys(record.value, wrong), dict.fromkeys(record.asked, wrong)
        records.append(stored(number, kind=record.kind, value=value, asked=asked))
        records.append(stored(number, kind=record.kind, value={}, asked={}))
    page = Page(render_report(session(*records), "en"))
    assert page.all("rect", "bar") == []


def test_what_cannot_be_sent_is_replaced() -> None:
    page = render_report(session(evaluation(1, value={"feedback": "half \ud83d of one"})), "en")
    assert "half ? of one" in page.encode().decode()


def test_as_json_has_every_row() -> None:
    found = as_json(WHOLE)
    assert found["session_id"] == "s-1"
    assert [len(found[name]) for name in ("question_sets", "evaluations")] == [1, 2]
    assert [len(found[name]) for name in ("follow_ups", "demeanor")] == [1, 1]
    (shown,) = found["question_sets"]
    record = WHOLE.records[0]
    assert shown == {
        "key": "1",
        "flight_id": FLIGHT,
        "fence": 1,
        "file_digest": FILE,
        "created_at": shown["created_at"],
        "written_at": shown["written_at"],
        "asked": record.asked,
        "answer": record.value,
    }
    assert re.fullmatch(r"2026-11-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown["created_at"])
    assert "tenant" not in shown
