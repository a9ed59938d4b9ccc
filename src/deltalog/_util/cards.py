"""Notebook cards: short HTML representations of objects, with escaped content.

Owns layout and escaping. A card has no script. It has the colours of the page, light or dark.

Protocol: none
"""

from __future__ import annotations

import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from html import escape
from importlib import import_module
from inspect import getdoc
from itertools import zip_longest
from typing import Any, Final, TypeVar

from deltalog._util.escaping import printable, printable_lines
from deltalog._util.readable import amount, outcome, readable_time

_CELL: Final = "text-align:left;vertical-align:top;padding:0 1em 0 0"
_ONE_LINE: Final = f"{_CELL};white-space:nowrap"
_LONG: Final = f"{_CELL};min-width:16em;overflow-wrap:anywhere"
_MOST_IN_ONE_LINE: Final = 36  # as many as a UUID has
_HEAD: Final = f"{_ONE_LINE};font-weight:normal;opacity:.65"
_SUMMARY: Final = "display:list-item;cursor:pointer;white-space:nowrap"
"""The style of what unfolds; classic notebooks would hide its marker."""
_RIGHT: Final = ";text-align:right;font-variant-numeric:tabular-nums"
_NUMBER: Final = re.compile(
    r"-?(?:0|[1-9][\d,]*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?: [A-Za-z]+)?|nan|-?inf"
)
_MOST_CHARACTERS: Final = 200
_TIME: Final = re.compile(r"[+-]?\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*Z?")
_MOMENTS: Final = frozenset({"created_ms", "expires_ms"})
"""Fields that are a time and not a duration."""
_INNER_TABLE: Final = '<table style="margin:0">'
_INNER_ROW: Final = '<tr style="background:transparent">'
# A shade at the right edge of a card that is wider than its place, because many browsers hide the
# scroll bar. Its width and its margin are 0 if the content fits.
_MORE: Final = (
    '<span style="position:sticky;right:0;flex:none;pointer-events:none;'
    "width:clamp(0px,(100% - 100cqw)*999,1.2em);"
    "margin-left:clamp(-1.2em,(100cqw - 100%)*999,0px);"
    'background:linear-gradient(to left,rgba(127,127,127,.5),transparent)"></span>'
)
_SHEET: Final = "color:inherit;background:transparent;color-scheme:light dark"


class CardPiece(str):
    """HTML from this module, with its content already escaped."""

    __slots__ = ()


def card(title: str, *pieces: CardPiece) -> str:
    """Return a card with pieces below a title; an empty title is omitted."""
    head = f"<strong>{escape(printable(title))}</strong>" if title else ""
    content = f'<div style="flex:auto">{head}{"".join(pieces)}</div>'
    return (
        f'<div style="{_SHEET};overflow-x:auto;container-type:inline-size">'
        f'<div style="display:flex;min-width:min-content">{content}{_MORE}</div></div>'
    )


def grid(
    rows: Iterable[Sequence[object]], names: Sequence[str] = (), *, omits_empty: bool = False
) -> CardPiece:
    """Return a table of cells, with column names in the first line if there are any.

    A cell is a string, a piece, or any other object, which is converted by `str`. None is a blank
    cell.

    Args:
        rows: the cells.
        names: the names of the columns.
        omits_empty: whether to omit columns whose cells are all blank.
    """
    if omits_empty:
        rows = list(rows)
        kept = [n for n in range(len(names)) if any(row[n] not in {None, ""} for row in rows)]
        rows, names = [[row[n] for n in kept] for row in rows], [names[n] for n in kept]
    rows = list(rows)
    aligned = [_RIGHT if _holds_numbers(column) else "" for column in zip_longest(*rows)]
    heads = zip_longest(names, aligned[: len(names)], fillvalue="")
    head = "".join(f'<th style="{_HEAD}{right}">{_text(name)}</th>' for name, right in heads)
    lines = [f"<tr>{head}</tr>"] if names else []
    lines += [
        "<tr>"
        + "".join(
            f'<td style="{_style(cell)}{right}">{_inner(_text(cell))}</td>'
            for cell, right in zip(row, aligned, strict=False)
        )
        + "</tr>"
        for row in rows
    ]
    return CardPiece(f"<table>{''.join(lines)}</table>")


def _holds_numbers(cells: Iterable[object]) -> bool:
    """Return whether a column has numbers, with or without unit, and otherwise only blanks."""
    shown = [str(cell) for cell in cells if cell is not None and cell not in ("", "NULL")]
    return bool(shown) and all(map(_NUMBER.fullmatch, shown))


def methods_of(title: str, methods: type) -> str:
    """Return a card of the public methods of a class, with the first lines of their docstrings."""
    docs = {name: getdoc(getattr(methods, name)) or "" for name in _public(methods)}
    return card(title, grid((f"{name}(…)", doc.partition("\n")[0]) for name, doc in docs.items()))


def names_of_methods(methods: type) -> str:
    """Return the public methods of a class, such as `compact(), z_order()`."""
    return ", ".join(f"{name}()" for name in _public(methods))


def _public(methods: type) -> list[str]:
    found = vars(methods).items()
    return [name for name, one in found if not name.startswith("_") and callable(one)]


def cell_of_row(value: object) -> str:
    """Return a value of a row as a string, which is truncated if it is long."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = readable_time(value)
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


def indented(text: object, depth: int) -> CardPiece:
    """Return a cell of a tree, indented by its depth."""
    return CardPiece(f'<span style="padding-left:{depth * 1.4:g}em">{_text(text)}</span>')


def folding(summary: str, piece: CardPiece, *, is_open: bool = True) -> CardPiece:
    """Return a piece that the user can fold and unfold; `is_open` is its initial state."""
    opened = " open" if is_open else ""
    return CardPiece(
        f'<details{opened}><summary style="{_SUMMARY}">{escape(printable(summary))}</summary>'
        f"{piece}</details>"
    )


def details_of(facts: Mapping[str, object]) -> CardPiece:
    """Return facts that the user unfolds; nothing if there are none."""
    return folding("details", grid(facts.items()), is_open=False) if facts else CardPiece()


def plain(text: str) -> CardPiece:
    """Return preformatted text with its line breaks; longer lines than the card are wrapped."""
    return CardPiece(
        f'<pre style="{_SHEET};white-space:pre-wrap">{escape(printable_lines(text))}</pre>'
    )


class ShownFields:
    """Base class of results that are dataclasses: a notebook card of the fields with a value."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        facts = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]  # a dataclass
        return card(
            type(self).__name__,
            grid(
                (_label(name), _fact(name, one))
                for name, one in facts.items()
                if one is not None and one not in ("", (), {})
            ),
        )


def _label(name: str) -> str:
    """Return the name of a field as words, without the unit, which the value has."""
    words = name.removeprefix("num_").removesuffix("_ms").replace("_bytes", "")
    return words.replace("_", " ")


def _fact(name: str, value: Any) -> str:
    """Return the value of a field: a number with its unit, a change as a sentence, or names."""
    if isinstance(value, Mapping):
        return outcome(value) or ", ".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, Enum):
        return str(value.value)
    if name.startswith(("num_", "size_")):
        return amount(name, value)
    if name in _MOMENTS:
        return readable_time(datetime.fromtimestamp(value / 1000, UTC))
    names = getattr(value, "names", value)
    separator = "." if name == "name" else ", "
    return separator.join(map(str, names)) if isinstance(names, tuple | list) else str(names)


def _style(cell: object) -> str:
    """Return the style of a cell: a short value or a time stays in one line, others are wide."""
    if cell is None or isinstance(cell, CardPiece):
        return _CELL
    text = str(cell)
    is_short = len(text) <= _MOST_IN_ONE_LINE and "\n" not in text
    return _ONE_LINE if is_short or _TIME.fullmatch(text) is not None else _LONG


def _inner(text: str) -> str:
    """Return the content of a cell. A table in it has neither stripes nor margins of its own."""
    return text.replace("<table>", _INNER_TABLE).replace("<tr>", _INNER_ROW)


def _text(cell: object) -> str:
    if isinstance(cell, CardPiece):
        return cell
    return "" if cell is None else escape(printable_lines(str(cell)))


# --- Progress of long operations: callback and progress bar


OnProgress = Callable[[int, int], None]
"""A callback whose arguments are the number of finished parts and the number of all parts.

An exception of the callback ends the operation.
"""

Progress = OnProgress | bool
"""The argument of users: a callback, or True for a progress bar."""

T = TypeVar("T")


class ProgressCount:
    """A thread-safe counter of the finished parts of an operation.

    Args:
        on_progress: a callback that is called after every part, by one thread at a time; None means
            no callback.
    """

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._done = 0
        self._total = 0

    def expect(self, count: int) -> None:
        """Add `count` to the number of all parts."""
        with self._lock:
            self._total += count

    def done(self) -> None:
        """Add one to the number of finished parts; raise if the callback raises."""
        with self._lock:
            self._done += 1
            if self._on_progress is not None:
                self._on_progress(self._done, max(self._done, self._total))

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items. An item counts as done when the next item is requested."""
        for item in items:
            yield item
            self.done()


@contextmanager
def shown(progress: Progress | None, title: str) -> Iterator[OnProgress | None]:
    """Return the user's callback, the callback of a progress bar, or None.

    Args:
        progress: the user's argument.
        title: the title of the bar.
    """
    if progress is True:
        with progress_bar(title) as on_progress:
            yield on_progress
    else:
        yield progress or None


@contextmanager
def progress_bar(title: str) -> Iterator[OnProgress]:
    """Show a progress bar in a terminal or notebook, with tqdm or rich if one is installed.

    Examples:
        >>> with progress_bar("copying") as progress:
        ...     progress(1, 2)

    Args:
        title: the title of the bar.
    """
    tqdm = _find("tqdm.auto")
    if tqdm is not None:
        with ExitStack() as opened:
            bars: list[Any] = []

            def show(done: int, total: int) -> None:
                if not bars:  # without parts, there is no bar
                    bars.append(opened.enter_context(tqdm.tqdm(desc=title, total=total)))
                _show_tqdm(bars[0], done, total)

            yield show
        return
    rich = _find("rich.progress")
    if rich is None:
        yield lambda _done, _total: None
        return
    console = import_module("rich.console").Console(stderr=True)  # stdout is reserved for results
    if console.is_jupyter and _find("ipywidgets") is None:
        # rich could print the bar only at the end, as text that looks like an error in a notebook.
        yield lambda _done, _total: None
        return
    with ExitStack() as opened:
        tasks: list[tuple[Any, Any]] = []

        def show_rich(done: int, total: int) -> None:
            if not tasks:  # without parts, or before a refusal, there is no bar
                drawn = rich.Progress(transient=console.is_terminal, console=console)
                bar = opened.enter_context(drawn)
                tasks.append((bar, bar.add_task(title, total=total)))
            bar, task = tasks[0]
            bar.update(task, completed=done, total=total)

        yield show_rich


def _show_tqdm(bar: Any, done: int, total: int) -> None:
    bar.total = total
    bar.n = done
    bar.refresh()


def _find(name: str) -> Any:
    try:
        with warnings.catch_warnings():  # tqdm warns if a notebook has no ipywidgets
            warnings.simplefilter("ignore")
            return import_module(name)
    except ImportError:
        return None
