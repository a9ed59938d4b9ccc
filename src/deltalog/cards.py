"""Notebook cards: small pieces of HTML in which whatever is shown is escaped.

Owns layout and escaping. A card has no colours of its own: it takes those of the page, light or
dark, and no script.

Protocol: none
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CELL: Final = "text-align:left;vertical-align:top;padding:0 1em 0 0"
_HEAD: Final = f"{_CELL};font-weight:normal;opacity:.65"
_SHEET: Final = "color:inherit;background:transparent;color-scheme:light dark"


class CardPiece(str):
    """HTML that was made here: everything in it is escaped already."""

    __slots__ = ()


def card(title: str, *pieces: CardPiece) -> str:
    """A card of pieces below a title."""
    return f'<div style="{_SHEET}"><strong>{escape(title)}</strong>{"".join(pieces)}</div>'


def grid(rows: Iterable[Sequence[object]], names: Sequence[str] = ()) -> CardPiece:
    """A table of cells, with names above its columns if there are any; None is blank."""
    head = "".join(f'<th style="{_HEAD}">{_text(name)}</th>' for name in names)
    lines = [f"<tr>{head}</tr>"] if names else []
    lines += [
        "<tr>" + "".join(f'<td style="{_CELL}">{_text(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    ]
    return CardPiece(f"<table>{''.join(lines)}</table>")


def folding(summary: str, piece: CardPiece) -> CardPiece:
    """A piece that can be folded away."""
    return CardPiece(f"<details open><summary>{escape(summary)}</summary>{piece}</details>")


def plain(text: str) -> CardPiece:
    """A text with its lines as they are."""
    return CardPiece(f'<pre style="{_SHEET}">{escape(text)}</pre>')


def _text(cell: object) -> str:
    return "" if cell is None else escape(str(cell))
