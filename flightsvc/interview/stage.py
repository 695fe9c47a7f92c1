"""What every stage of the interview says of itself.

A stage is a module: its input, its key, its prompt and its result stand there side by side, so that
it can be seen that whatever reaches the prompt also reaches the key.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from flightsvc.flight.key import FlightKey
from flightsvc.interview.prompt import Prompt
from flightsvc.providers.base import ModelAnswer

In = TypeVar("In")


class StageFiles(Protocol):
    """The files that questions are about, by the SHA-256 of their bytes in hex."""

    def text(self, digest: str) -> str:
        """The text of a PDF.

        :raises RequestError: it cannot be read, or has none.
        """

    def picture(self, digest: str) -> tuple[bytes, str]:
        """A picture, upright and without what the camera wrote into it, and its type.

        :raises RequestError: it cannot be read.
        """

    def content(self, digest: str) -> bytes:
        """The bytes as they came."""


class Stage(Protocol[In]):
    """One kind of question."""

    #: its name in settings, metrics and keys
    STAGE: str

    def place(self, asked: In) -> str:
        """Where in the session the question stands; a later answer for it takes the place of an
        earlier one."""

    def business_key(self, asked: In) -> str:
        """Which row of the session the answer is."""

    def texts(self, asked: In) -> tuple[str, ...]:
        """What reaches the prompt of it; the log knows a hash and the length of it."""

    def said(self, asked: In) -> dict[str, Any]:
        """The question as its row keeps it."""

    def flight_key(
        self, session_id: str, asked: In, *, tenant: str, provider: str, model: str
    ) -> FlightKey:
        """What the question is."""

    def filled(self, asked: In, files: StageFiles) -> In:
        """The same with what its file holds; called where the model is about to be asked.

        :raises RequestError: the file cannot be read, or holds nothing to ask about.
        """

    def known(self, asked: In) -> dict[str, Any] | None:
        """The answer, where no model is needed for it."""

    def nothing_said(self, asked: In) -> bool:
        """Whether its user sent nothing, or blanks only; no model is asked then."""

    def prompt(self, asked: In) -> Prompt:
        """What the model is asked."""

    def shortened(self, asked: In, most: int, marker: str) -> In:
        """The same with its texts cut to about ``most`` tokens; equal if it is not longer."""

    def read_answer(self, answer: ModelAnswer) -> dict[str, Any]:
        """The value to store and to send.

        :raises AnswerInvalid: the model's text does not fit.
        """
