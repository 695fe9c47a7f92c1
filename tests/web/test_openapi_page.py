"""`/docs`: the document for people."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

from flask.testing import FlaskClient

from flightsvc.web.openapi_page import render_page


class Page(HTMLParser):
    """What a browser would load, follow and jump to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.links.append(given["href"])
        if "id" in given:
            self.ids.append(given["id"])
        self.loads += [value for name, value in given.items() if name in ("src", "srcset", "data")]
        assert not any(name.startswith("on") or name == "style" for name in given)


def test_it_loads_and_runs_nothing(client: FlaskClient) -> None:
    response = client.get("/docs")
    page = Page(response.text)

    assert response.mimetype == "text/html"
    policy = response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert page.loads == []
    assert not page.tags & {"script", "link", "iframe", "img", "object", "form"}
    assert 'name="viewport"' in response.text


def test_every_link_leads_somewhere(client: FlaskClient) -> None:
    page = Page(client.get("/docs").text)

    inside = {link.removeprefix("#") for link in page.links if link.startswith("#")}
    assert inside <= {*page.ids}
    assert {link for link in page.links if not link.startswith("#")} == {"openapi.json"}
    assert len(page.ids) == len(set(page.ids))


def test_it_shows_the_whole_document(client: FlaskClient) -> None:
    document, text = json.loads(client.get("/openapi.json").data), client.get("/docs").text
    page = Page(text)

    for path, methods in document["paths"].items():
        assert path in text
        assert {operation["operationId"] for operation in methods.values()} <= {*page.ids}
    assert {*document["components"]["schemas"], *document["components"]["responses"]} <= {
        *page.ids
    }
    codes = re.findall(r"- `([A-Z_]+)`", json.dumps(document))
    assert len(codes) > 30
    assert all(f"<code>{code}</code>" in text for code in codes)


def test_nothing_in_the_document_is_markup(client: FlaskClient) -> None:
    document = json.loads(client.get("/openapi.json").data)
    evil = "<script>alert(1)</script>`<b>`"
    hostile = json.loads(
        json.dumps(document).replace("What is judged: one answer to one question", evil)
    )
    hostile["info"]["description"] = hostile["tags"][0]["description"] = evil
    for methods in hostile["paths"].values():
        for operation in methods.values():
            operation["summary"] = evil

    text = render_page(hostile)

    assert "<script" not in text
    assert "&lt;script&gt;" in text
