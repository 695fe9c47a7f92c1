"""The backend's own calls of a model."""

from __future__ import annotations

import json
from typing import Any

import urllib3

http = urllib3.PoolManager(timeout=urllib3.Timeout(connect=5, read=60), retries=False)

PROMPT = "Grade this answer from 0 to 100. Reply with JSON like {{\"score\": 50}}.\n{}\n{}"


class ModelDown(Exception):
    """The model gave no answer."""


def grade(url: str, question: str, answer: str) -> dict[str, Any]:
    """Ask the model at an OpenAI-compatible address.

    :raises ModelDown: it gave no answer, or none that is JSON.
    """
    said = {"role": "user", "content": PROMPT.format(question, answer)}
    asked = {"model": "grader", "messages": [said]}
    try:
        reply = http.request("POST", f"{url}/chat/completions", json=asked)
        content = reply.json()["choices"][0]["message"]["content"]
        grading: dict[str, Any] = json.loads(content)
    except (urllib3.exceptions.HTTPError, ValueError, KeyError) as error:
        raise ModelDown from error
    return grading
