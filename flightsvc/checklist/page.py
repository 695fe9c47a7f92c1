"""The list as one HTML page that needs nothing else: to read on a screen, and to print."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files

from flightsvc._version import __version__
from flightsvc.checklist import words
from flightsvc.checklist.model import Checklist, Code
from flightsvc.checklist.render import HEADS, RULE_HEADS, cells, rule_cells
from flightsvc.checklist.words import Words

TITLE = Words("What each failure means", "异常处理清单")
INTRO = Words(
    "For each failure: whether the call is made again, what is done instead, what the user is "
    "told, what changes, who is woken, and when a person is needed.",
    "每种异常：是否重试、兜底动作、用户提示、状态变更、告警对象、何时需要人工介入。",
)
RULES = Words("Which failure is which code", "异常归类规则")
RULES_INTRO = Words(
    "The first rule that fits decides. An error that names a code of the list is that code; what "
    "no rule fits is AI_UNKNOWN_ERROR.",
    "自上而下，第一条符合的规则生效；直接带有清单错误码的异常即为该码；其余归为 AI_UNKNOWN_ERROR。",
)


def html(checklist: Checklist) -> str:
    """The whole page."""
    style = files("flightsvc.checklist").joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="zh-CN">',
            f'<head><meta charset="utf-8"><title>{TITLE.zh} · {TITLE.en}</title>',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<style>\n{style}</style></head>",
            "<body>",
            f"<header><h1>{_both(TITLE)}</h1><p>{_both(INTRO)}</p>{_counts(checklist)}</header>",
            *_levels(checklist),
            *_rules(checklist),
            f"<footer>flightsvc {escape(__version__)}</footer>",
            "</body></html>",
            "",
        ]
    )


def _counts(checklist: Checklist) -> str:
    """How many codes there are of each level."""
    parts = []
    for level, said in words.LEVELS.items():
        count = sum(code.level == level for code in checklist)
        parts.append(f'<li><a href="#{level}"><b>{count}</b> {level} {_both(said)}</a></li>')
    return f'<ul class="counts">{"".join(parts)}</ul>'


def _levels(checklist: Checklist) -> Iterator[str]:
    """One table a level."""
    for level, said in words.LEVELS.items():
        codes = [code for code in checklist if code.level == level]
        if codes:
            yield f'<section id="{level}"><h2>{level} {_both(said)}</h2><table class="codes">'
            # the level is the heading, so it needs no column
            yield _row("th", [head for head in HEADS if head.en != "reaches"], "thead")
            yield "<tbody>"
            for code in codes:
                yield _code(code)
            yield "</tbody></table></section>"


def _code(code: Code) -> str:
    name, about, _, *others = cells(code)
    kind = f' class="{code.alert.severity.lower()}"' if code.alert else ""
    status = f"<small>HTTP {code.status}</small>"
    first = f'<th scope="row"><code>{_broken(name.en)}</code>{status}</th>'
    rest = "".join(f"<td>{_both(cell)}</td>" for cell in (about, *others))
    return f"<tr{kind}>{first}{rest}</tr>"


def _rules(checklist: Checklist) -> Iterator[str]:
    yield f'<section id="rules"><h2>{_both(RULES)}</h2><p>{_both(RULES_INTRO)}</p>'
    yield f'<table class="rules">{_row("th", list(RULE_HEADS), "thead")}<tbody>'
    for rule in checklist.classifier.rules:
        seen, provider, code = rule_cells(rule)
        yield (
            f"<tr><td>{escape(seen)}</td><td>{escape(provider)}</td>"
            f"<td><code>{escape(code)}</code></td></tr>"
        )
    yield "</tbody></table></section>"


def _row(tag: str, row: list[Words], around: str) -> str:
    inner = "".join(f"<{tag}>{_both(cell)}</{tag}>" for cell in row)
    return f"<{around}><tr>{inner}</tr></{around}>"


def _both(said: Words) -> str:
    if said.en == said.zh:
        return escape(said.en)
    return f'<span>{escape(said.zh)}</span> <span lang="en">{escape(said.en)}</span>'


def _broken(name: str) -> str:
    """A long name that may break after each of its parts."""
    return escape(name).replace("_", "_<wbr>")
