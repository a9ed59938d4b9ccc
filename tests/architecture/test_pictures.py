"""The pictures of the documentation are those that the source makes now."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from docs import drawings

SOURCE = Path(__file__).resolve().parents[2] / "src" / "deltalog"
PICTURES = pytest.mark.parametrize("draw", drawings.PICTURES, ids=lambda draw: draw.__name__)


@PICTURES
def test_a_picture_is_up_to_date(draw: Callable[[], drawings.Drawing]) -> None:
    drawing = draw()
    stored = (drawings.FOLDER / f"{drawing.name}.svg").read_text("utf-8")
    assert stored == drawing.svg(), "`make pictures` draws them anew"


@PICTURES
def test_nothing_leaves_its_picture(draw: Callable[[], drawings.Drawing]) -> None:
    drawing = draw()
    picture = ET.fromstring(drawing.svg())  # noqa: S314 - ours
    for box in picture.iter("{http://www.w3.org/2000/svg}rect"):
        x, y, width, height = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + width <= drawing.width
        assert y + height <= drawing.height


def test_the_folders_of_the_picture_are_those_of_the_source() -> None:
    drawn = {folder for _, layers in drawings.bands() for names in layers for folder in names}
    there = {
        path.stem
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert drawn == there - {"__init__", "py"}
