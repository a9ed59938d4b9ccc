"""Notebook cards: small pieces of HTML in which whatever is shown is escaped.

Owns layout and escaping. A card has no colours of its own: it takes those of the page, light or
dark, and no script.

Protocol: none
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from deltalog.escaping import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_CELL: Final = "text-align:left;vertical-align:top;padding:0 1em 0 0"
_HEAD: Final = f"{_CELL};font-weight:normal;opacity:.65"
_MOST_CHARACTERS: Final = 200
_SHEET: Final = "color:inherit;background:transparent;color-scheme:light dark"


class CardPiece(str):
    """HTML that was made here: everything in it is escaped already."""

    __slots__ = ()


def card(title: str, *pieces: CardPiece) -> str:
    """A card of pieces below a title; without one if it is empty."""
    head = f"<strong>{escape(printable(title))}</strong>" if title else ""
    return f'<div style="{_SHEET}">{head}{"".join(pieces)}</div>'


def grid(rows: Iterable[Sequence[object]], names: Sequence[str] = ()) -> CardPiece:
    """A table of cells, with names above its columns if there are any.

    A cell is a text, a piece, or anything that is shown as text; None is blank.
    """
    head = "".join(f'<th style="{_HEAD}">{_text(name)}</th>' for name in names)
    lines = [f"<tr>{head}</tr>"] if names else []
    lines += [
        "<tr>" + "".join(f'<td style="{_CELL}">{_text(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    ]
    return CardPiece(f"<table>{''.join(lines)}</table>")


def cell_of_row(value: object) -> str:
    """Return a value of a row as a text, cut off if it is long."""
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def indented(text: object, depth: int) -> CardPiece:
    """A cell of a tree: its text, moved in by its depth."""
    return CardPiece(f'<span style="padding-left:{depth * 1.4:g}em">{_text(text)}</span>')


def folding(summary: str, piece: CardPiece, *, is_open: bool = True) -> CardPiece:
    """A piece that can be folded away, and is so at first unless it is open."""
    opened = " open" if is_open else ""
    return CardPiece(
        f"<details{opened}><summary>{escape(printable(summary))}</summary>{piece}</details>"
    )


def plain(text: str) -> CardPiece:
    """A text with its lines as they are."""
    return CardPiece(f'<pre style="{_SHEET}">{escape(printable_lines(text))}</pre>')


def _text(cell: object) -> str:
    if isinstance(cell, CardPiece):
        return cell
    return "" if cell is None else escape(printable_lines(str(cell)))
