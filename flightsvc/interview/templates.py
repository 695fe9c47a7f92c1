"""What takes an answer's place where the checklist says so, by stage and language."""

from __future__ import annotations

from collections.abc import Mapping

#: the languages that there are; the first is spoken to whoever asks for another
LANGUAGES = ("en", "zh")

#: for a stage that has no text of its own
ANY = ""

#: template and stage → language → text
TEMPLATES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("guide", ANY): {
        "en": "Please tell me what you would like to know.",
        "zh": "请告诉我您想了解什么。",
    },
    ("guide", "evaluation"): {
        "en": "There is no answer to judge yet. Please answer the question in a few sentences.",
        "zh": "还没有可以评价的回答，请用几句话回答这个问题。",
    },
    ("guide", "follow_up"): {
        "en": "There is no answer to ask about yet. Please answer the question first.",
        "zh": "还没有可以追问的回答，请先回答这个问题。",
    },
    ("guide", "extraction"): {
        "en": "No text was found. Please upload a résumé with text in it.",
        "zh": "没有找到文字内容，请上传包含文字的简历。",
    },
    ("faq", ANY): {
        "en": (
            "The AI is being upgraded. What you sent is not lost: send it again after the "
            "upgrade, and it goes on where it stopped."
        ),
        "zh": "AI 正在升级。您提交的内容不会丢失：升级完成后重新提交即可继续。",
    },
    ("faq", "evaluation"): {
        "en": (
            "The AI is being upgraded, so answers are not judged right now. You can go on with "
            "the next question; this answer can be judged later."
        ),
        "zh": "AI 正在升级，暂时无法评价回答。您可以继续下一题，本题稍后再评价。",
    },
}


def template(name: str, stage: str) -> Mapping[str, str] | None:
    """The texts of a template by language; None if nobody wrote one of this name."""
    return TEMPLATES.get((name, stage)) or TEMPLATES.get((name, ANY))


def text_for(texts: Mapping[str, str], language: str) -> str:
    """The text for a reader.

    :param language: ``zh…`` for Chinese; anything else is English.
    """
    return texts["zh" if language.lower().startswith("zh") else "en"]
