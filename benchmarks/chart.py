"""A chart of ratios: a bar for each workload on a logarithmic scale, with its goal as a tick.

The SVG is a list of rectangles and is written without a library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# So narrow that a phone shows it whole, with letters that can be read: a title is above its bar.
_WIDTH, _LEFT, _MARGIN = 480, 14, 40
_LINE, _BAR, _GAP, _TOP = 15, 11, 10, 69
_TITLE_CHARACTERS = 74
_DIGIT, _NEAR = 7, 3
"""The width of a digit, and of the space around a ratio that grid lines leave free."""
# Colours of the page, where it sets them, or of the reader's system: light or dark.
_MET, _MISSED = "var(--dl-accent)", "#c8823c"
_STYLE = (
    "svg.dl{color:#1f2328;--dl-accent:#2f6f9f;--dl-line:#8c959f}"
    "@media(prefers-color-scheme:dark){svg.dl{color:#e6edf3;--dl-accent:#6cb6ff;--dl-line:#545d68}}"
    "svg.dl text{fill:currentColor}"
)
_STEPS = (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200)


@dataclass(frozen=True, slots=True)
class Bar:
    """One workload.

    Args:
        title: title of the row.
        ratio: how many times as fast as the other library.
        goal: the ratio to reach.
        is_met: whether the goal is reached, including that of memory.
    """

    title: str
    ratio: float
    goal: float
    is_met: bool


def draw(bars: list[Bar]) -> str:
    """Return the chart as SVG."""
    numbers = [number for bar in bars for number in (bar.ratio, bar.goal)]
    low = max((step for step in _STEPS if step <= min(*numbers, 0.5)), default=_STEPS[0])
    high = min((step for step in _STEPS if step >= max(numbers)), default=max(numbers))

    def at(number: float) -> float:
        share = math.log(min(max(number, low), high) / low) / math.log(high / low)
        return _LEFT + share * (_WIDTH - _LEFT - _MARGIN)

    rows, top = [], _TOP
    steps = [step for step in _STEPS if low <= step <= high]
    for bar in bars:
        titles = wrap(bar.title.replace("`", ""), _TITLE_CHARACTERS)
        rows += _row(bar, titles, top, at, steps)
        top += _LINE * len(titles) + _BAR + _GAP
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="dl dl-chart" '
            f'viewBox="0 0 {_WIDTH} {top}" '
            'role="img" aria-label="Ratios by workload" '
            'font-family="system-ui, sans-serif" font-size="12">'
        ),
        f"<style>{_STYLE}</style>",
        (
            '<text x="0" y="14">times as fast as the other library; a tick marks the goal, and an '
            "outline</text>"
        ),
        '<text x="0" y="29">a bar that does not reach its goal</text>',
    ]
    lines += [
        f'<text x="{at(step):.1f}" y="{_TOP - 12}" text-anchor="middle">{step:g}</text>'
        for step in steps
    ]
    return "\n".join([*lines, *rows, "</svg>", ""])


def _row(
    bar: Bar, titles: list[str], top: int, at: Callable[[float], float], steps: list[float]
) -> list[str]:
    """Return a title, and below it a bar with the grid lines, which strike through no letters."""
    one, end, goal = at(1), at(bar.ratio), at(bar.goal)
    left, width = min(one, end), max(abs(end - one), 1)
    color, fill = (_MET, _MET) if bar.is_met else (_MISSED, "none")
    above = top + _LINE * len(titles)
    number, shown = max(one, end, goal) + 5, f"{bar.ratio:.2f}"
    written = range(int(number) - _NEAR, int(number) + _DIGIT * len(shown) + _NEAR)
    return [
        *(
            f'<line x1="{at(step):.1f}" x2="{at(step):.1f}" y1="{above - 2}" '
            f'y2="{above + _BAR + 2}" stroke="var(--dl-line)" '
            f'stroke-width="{1.5 if step == 1 else 0.5}" stroke-opacity="0.5"/>'
            for step in steps
            if int(at(step)) not in written
        ),
        *(
            f'<text x="0" y="{top + _LINE * line + 10}">{escape(title)}</text>'
            for line, title in enumerate(titles)
        ),
        (
            f'<rect x="{left:.1f}" y="{above}" width="{width:.1f}" height="{_BAR}" fill="{fill}" '
            f'stroke="{color}"/>'
        ),
        (
            f'<line x1="{goal:.1f}" x2="{goal:.1f}" y1="{above - 2}" y2="{above + _BAR + 2}" '
            'stroke="currentColor" stroke-width="2"/>'
        ),
        f'<text x="{number:.1f}" y="{above + _BAR - 1}">{shown}</text>',
    ]
