"""Draw the plots with matplotlib; notebooks show them as SVG in the colours of the page.

This module defines the look of each plot, and removes control characters from names in the log.
matplotlib is imported on first use. `pyplot` is not used, because its state is global.

Protocol: none
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.cards import CardPiece, card
from deltalog._util.readable import FILE, counted, readable_size
from deltalog.data.scan.rows import require_library

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    import pyarrow as pa

_INK: Final = "#010203"
"""The colour of text and lines. It is nearly black in files. In notebooks, it is replaced by the
text colour of the page."""
_COLOURS: Final = (
    "#3b82c4", "#e08a3c", "#4aa36b", "#b35fa8", "#c75d5d", "#7a6fd0", "#9c8f3a", "#8a8a8a",
)  # fmt: skip
"""Colours that are easy to see on white and on black."""
_STYLE: Final = {
    "svg.fonttype": "none",
    "svg.hashsalt": "deltalog",
    "text.parse_math": False,
    "text.usetex": False,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
    **dict.fromkeys(
        (
            "text.color",
            "axes.edgecolor",
            "axes.labelcolor",
            "axes.titlecolor",
            "xtick.color",
            "ytick.color",
        ),
        _INK,
    ),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
}
_WIDTH: Final = 7.2  # inches, matplotlib's unit
_HEIGHT: Final = 2.6
_MOST_LETTERS: Final = 40
_TIME_FORMATS: Final = ["%Y", "%b", "%d", "%H:%M", "%H:%M", "%H:%M:%S"]
"""The labels of a time axis by their precision: years, months, days, hours, minutes, seconds."""
_ZERO_FORMATS: Final = ["", "%Y", "%b", "%b-%d", "%H:%M", "%H:%M:%S"]
"""The same, for the label at the beginning of a year, month, day, hour or minute."""
_LEAST_AXIS_MS: Final = 60_000
_NO_FACTS: Final = dict.fromkeys(("Date", "Creator", "Format", "Type"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Plot:
    """A picture of a table, with the numbers that it shows.

    A notebook displays the picture. `figure()` returns a matplotlib figure to change or save.

    Args:
        title: title of the picture.
        data: the numbers. If there would be too many rows, several rows are combined.
        draw: a function that draws the numbers into an empty figure.
        height: height of the picture, in inches.
    """

    title: str
    data: pa.Table
    draw: Callable[[Any, pa.Table], None]
    height: float = _HEIGHT

    def figure(self) -> Any:
        """Return the picture as a new `matplotlib.figure.Figure`.

        Raises:
            InvalidInputError: matplotlib is not installed; the extra `plot` installs it.
        """
        with require_library("matplotlib", extra="plot").rc_context(_STYLE):
            return self._drawn()

    def to_svg(self) -> str:
        """Return the picture as an SVG element whose text has the colour of the page.

        Raises:
            InvalidInputError: see `figure`.
        """
        text = BytesIO()
        with (
            require_library("matplotlib", extra="plot").rc_context(_STYLE),
            warnings.catch_warnings(),
        ):
            # matplotlib warns about characters that its font lacks. The page's font has them.
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
            self._drawn().savefig(text, format="svg", metadata=_NO_FACTS)
        svg = text.getvalue().decode("utf-8")
        svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
        return svg.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1).strip()

    def save(self, path: str | PathLike[str], **options: Any) -> None:
        """Write the picture to a file; the file extension decides the format.

        Args:
            path: path of the file.
            options: options of matplotlib's `savefig`.

        Raises:
            InvalidInputError: see `figure`.
        """
        with require_library("matplotlib", extra="plot").rc_context(_STYLE):
            self._drawn().savefig(path, **{"facecolor": "white", **options})

    def _drawn(self) -> Any:
        figures = require_library("matplotlib.figure", extra="plot")
        figure = figures.Figure(figsize=(_WIDTH, self.height), layout="constrained")
        self.draw(figure, self.data)
        return figure

    def __repr__(self) -> str:
        """Show the title and the number of data rows."""
        return f"Plot({self.title!r}, {counted(self.data.num_rows, 'row')})"

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        return card(self.title, CardPiece(f"<div>{self.to_svg()}</div>"))


def draw_commits(figure: Any, data: pa.Table) -> None:
    """Draw bars over time, with operations stacked."""
    dates: Any = require_library("matplotlib.dates", extra="plot")
    axes = figure.subplots()
    rows = data.to_pylist()
    begins = sorted({row["begin_ms"] for row in rows})
    gaps = [later - earlier for earlier, later in pairwise(begins)]
    width_ms = min(gaps, default=_LEAST_AXIS_MS // 60)
    below: defaultdict[int, int] = defaultdict(int)
    for place, name in enumerate(dict.fromkeys(row["operation"] for row in rows)):
        own = [row for row in rows if row["operation"] == name]
        axes.bar(
            [_moment(row["begin_ms"]) for row in own],
            [row["commits"] for row in own],
            width=width_ms / 86_400_000,  # days, matplotlib's unit
            align="edge",
            bottom=[below[row["begin_ms"]] for row in own],
            color=_COLOURS[place % len(_COLOURS)],
            label=label(name),
        )
        for row in own:
            below[row["begin_ms"]] += row["commits"]
    if rows:
        axes.xaxis_date(tz=UTC)
        locator = dates.AutoDateLocator(tz=UTC)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(
            dates.ConciseDateFormatter(
                locator, tz=UTC, formats=_TIME_FORMATS, zero_formats=_ZERO_FORMATS
            )
        )
        margin_ms = (_LEAST_AXIS_MS - (begins[-1] + width_ms - begins[0])) // 2
        if margin_ms > 0:
            axes.set_xlim(
                _moment(begins[0] - margin_ms), _moment(begins[-1] + width_ms + margin_ms)
            )
        figure.legend(loc="outside right upper")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel("commits")


def _moment(time_ms: int) -> datetime:
    # Draw a timestamp outside of the range of `datetime` at the nearer end of this range.
    ends = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    least, most = (round(end.timestamp() * 1000) for end in ends)
    return datetime.fromtimestamp(min(max(time_ms, least), most - 1000) / 1000, UTC)


def draw_file_sizes(figure: Any, data: pa.Table) -> None:
    """Draw two bar charts by file size: the number of files, and the number of bytes."""
    rows = data.to_pylist()
    panels = figure.subplots(1, 2)
    for axes, measure, colour in zip(panels, ("files", "bytes"), _COLOURS, strict=False):
        axes.bar(
            [max(row["from_bytes"], 1) for row in rows],
            [row[measure] for row in rows],
            width=[row["to_bytes"] - max(row["from_bytes"], 1) for row in rows],
            align="edge",
            color=colour,
        )
        axes.set_xscale("log", base=2)
        axes.set_title(measure)
        _in_sizes(axes.xaxis)
        axes.xaxis.get_major_locator().set_params(numticks=6)
        axes.tick_params("x", rotation=30)
    _in_sizes(panels[1].yaxis, most=max((row["bytes"] for row in rows), default=0))
    panels[0].yaxis.get_major_locator().set_params(integer=True)


def draw_partition_sizes(figure: Any, data: pa.Table) -> None:
    """Draw a bar for each partition, the largest at the top."""
    rows = data.to_pylist()
    axes = figure.subplots()
    places = range(len(rows))
    bars = axes.barh(places, [row["bytes"] for row in rows], color=_COLOURS[0])
    axes.set_yticks(places, [label(row["partition"]) for row in rows])
    axes.invert_yaxis()
    axes.bar_label(bars, [counted(row["files"], FILE) for row in rows], padding=3)
    axes.margins(x=0.12)
    _in_sizes(axes.xaxis, most=max((row["bytes"] for row in rows), default=0))


def draw_clustering(figure: Any, data: pa.Table) -> None:
    """Draw a line for each column: the number of files that may contain a value."""
    axes = figure.subplots()
    rows = data.to_pylist()
    for place, name in enumerate(dict.fromkeys(row["column"] for row in rows)):
        own = [row for row in rows if row["column"] == name]
        axes.step(
            [*(100 * row["position"] for row in own), 100],
            [row["files"] for row in (*own, own[-1])],
            where="post",
            clip_on=False,  # so that a line at 0 is visible
            zorder=3,
            color=_COLOURS[place % len(_COLOURS)],
            label=label(name),
        )
    axes.set_xlabel("values from the least to the greatest, %")
    axes.set_ylabel("files that may hold one")
    axes.set_ylim(bottom=0)
    if rows:
        figure.legend(loc="outside right upper")


def draw_log(figure: Any, data: pa.Table) -> None:
    """Draw the size of the log's files by kind, with one mark for each range of versions."""
    axes = figure.subplots()
    rows = [row for row in data.to_pylist() if row["bytes"]]
    for place, kind in enumerate(("commit", "checkpoint", "compaction", "checksum")):
        own = [row for row in rows if row["kind"] == kind]
        if own:
            axes.plot(
                [row["version"] for row in own],
                [row["bytes"] for row in own],
                linestyle="-" if kind == "commit" else "none",
                marker="o",
                markersize=3 if kind == "commit" else 5,
                color=_COLOURS[place],
                label=kind,
            )
    axes.set_xlabel("version")
    axes.xaxis.get_major_locator().set_params(integer=True)
    if rows:
        axes.set_yscale("log", base=2)
        axes.yaxis.get_major_locator().set_params(numticks=6)
        figure.legend(loc="outside right upper")
    _in_sizes(axes.yaxis)


def draw_scan(figure: Any, data: pa.Table) -> None:
    """Draw the share of files and bytes that a scan reads, and why the others are skipped."""
    axes = figure.subplots()
    rows = data.to_pylist()
    colours = {"read": 0, "pruned": 7, "pruned by partition values": 1, "pruned by statistics": 2}
    measures = ("files", "bytes")
    known: set[str] = set()
    for place, measure in enumerate(measures):
        own = [row for row in rows if row["measure"] == measure and row["amount"]]
        total, begin = sum(row["amount"] for row in own), 0.0
        for row in own:
            share = 100 * row["amount"] / total
            bar = axes.barh(
                place,
                share,
                left=begin,
                color=_COLOURS[colours[row["outcome"]]],
                label="" if row["outcome"] in known else row["outcome"],
            )
            amount = row["amount"]
            shown = f"{amount:,}" if measure == "files" else readable_size(amount)
            if share > 10:
                axes.bar_label(bar, [shown], label_type="center")
            known.add(row["outcome"])
            begin += share
    axes.set_yticks(range(len(measures)), measures)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("%")
    if known:
        figure.legend(loc="outside right upper")


def _in_sizes(axis: Any, *, most: int | None = None) -> None:
    """Label an axis with sizes and units. A linear axis starts at 0 and has round tick values."""
    tickers: Any = require_library("matplotlib.ticker", extra="plot")
    if most is not None:
        axis.set_major_locator(tickers.MultipleLocator(1 << max(0, most // 4).bit_length()))
    axis.set_major_formatter(
        tickers.FuncFormatter(lambda size, _: readable_size(round(size)).replace(".0 ", " "))
    )


def label(name: str) -> str:
    """Return a name from a log for display: one line, shortened, without control characters."""
    shown = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in name)
    shown = shown.lstrip("_") or shown  # matplotlib's legends omit names that begin with `_`
    return shown if len(shown) <= _MOST_LETTERS else shown[: _MOST_LETTERS - 1] + "…"
