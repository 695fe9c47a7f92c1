"""README.md and docs/ as tests read them."""

from __future__ import annotations

import re

from tests.processes import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def block(text: str, language: str, word: str) -> str:
    """The one block that holds a word."""
    (found,) = [each for each in blocks(text, language) if word in each]
    return found


def rows(text: str) -> list[list[str]]:
    """The rows of all Markdown tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
