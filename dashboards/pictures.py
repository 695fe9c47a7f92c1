"""Boards as pictures: graphite-web draws each panel, here they are put side by side."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

from PIL import Image

from dashboards import for_graphite
from dashboards.chain import Chain
from dashboards.describe import Board

#: panels side by side; space between them, in pixels
ACROSS, GAP = 3, 8


def draw(chain: Chain, board: Board, theme: str, *, since: str, until: str = "now") -> Image.Image:
    """One picture of all panels.

    :param since: and ``until``: times as Graphite writes them.
    """
    width, height = for_graphite.WIDTH, for_graphite.HEIGHT
    asked = {"width": width, "height": height, "from": since, "until": until}
    rows = -(-len(board.panels) // ACROSS)
    size = (ACROSS * (width + GAP) + GAP, rows * (height + GAP) + GAP)
    whole = Image.new("RGB", size, {"light": "#f6f8fa", "dark": "#010409"}[theme])
    for at, panel in enumerate(board.panels):
        drawn = chain.picture({**for_graphite.graph(panel, theme), **asked})
        place = GAP + at % ACROSS * (width + GAP), GAP + at // ACROSS * (height + GAP)
        whole.paste(Image.open(io.BytesIO(drawn)), place)
    return whole


def save(picture: Image.Image, path: Path) -> None:
    """As a PNG of 256 colours: charts need no more."""
    few = picture.quantize(256, Image.Quantize.MEDIANCUT, kmeans=3, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def draw_all(chain: Chain, boards: Iterable[Board], folder: Path, since: str) -> None:
    """Every board, light and dark, as a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for board in boards:
        for theme in for_graphite.THEMES:
            save(draw(chain, board, theme, since=since), folder / f"{board.name}-{theme}.png")
