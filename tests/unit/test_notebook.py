"""The notebook of the examples: its cells run, and each value that it shows has a card."""

from __future__ import annotations

import ast
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import pytest

from deltalog._util.json import loads

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "notebook.ipynb"


class _Closed(HTMLParser):
    """Whether every element of a page is closed."""

    empty = frozenset({"br", "path", "use", "rect", "image"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        del tag, attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_cell_shows_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cells = [
        "".join(cell["source"])
        for cell in loads(NOTEBOOK.read_bytes())["cells"]
        if cell["cell_type"] == "code"
    ]
    assert len(cells) > 15
    names: dict[str, object] = {}
    for text in cells:
        module = ast.parse(text)
        *before, last = module.body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(before, []), str(NOTEBOOK), "exec"), names)  # noqa: S102  # the test
        shown = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)  # noqa: S307
        page = shown._repr_html_()
        assert _Closed(page).open == []
        assert "<script" not in page


def test_the_notebook_is_stored_without_outputs() -> None:
    for cell in loads(NOTEBOOK.read_bytes())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
