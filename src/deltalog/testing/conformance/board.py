"""Judging readers by cases, and the board of how many are right.

Protocol: none
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog.testing.conformance.corpus import BOARD, EVERYTHING
from deltalog.testing.conformance.digest import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from deltalog.testing.conformance.corpus import Trial
    from deltalog.testing.conformance.readers import Reader


class Verdict(enum.Enum):
    """What a read is worth."""

    RIGHT = "right"
    """The rows that are expected, or an error where one is."""
    REFUSED = "refused"
    """An error where rows are expected: nothing is lost but time."""
    WRONG = "wrong"
    """Other rows than expected, or rows where an error is expected, and no error."""
    NOT_ASKED = "not asked"
    """The reader has no such reads."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """A case with its verdict.

    Args:
        case: what was read.
        verdict: what that is worth.
        why: the error, or how the rows differ; empty where they are right.
    """

    case: Trial
    verdict: Verdict
    why: str = ""


def judge(case: Trial, reader: Reader) -> Ruling:
    """What a reader makes of a case."""
    if case.changes and not reader.changes:
        return Ruling(case, Verdict.NOT_ASKED)
    try:
        found = _digest_read(case, reader)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # panics of native readers are no Exceptions
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        return Ruling(case, Verdict.REFUSED if case.digest else Verdict.RIGHT, why)
    if case.digest is None:
        return Ruling(case, Verdict.WRONG, "rows, expected an error")
    if found == case.digest:
        return Ruling(case, Verdict.RIGHT)
    return Ruling(case, Verdict.WRONG, "other rows than expected")


def _digest_read(case: Trial, reader: Reader) -> str:
    table: pa.Table
    if case.changes and reader.changes:
        table = reader.changes(str(case.path), *case.changes)
    else:
        table = reader.rows(str(case.path), case.version)
    return digest(table.select([name for name in table.column_names if name not in case.excluded]))


@dataclass(frozen=True, slots=True)
class Score:
    """How many cases of a row of the board have each verdict."""

    right: int
    refused: int
    wrong: int

    @property
    def asked(self) -> int:
        """All of them."""
        return self.right + self.refused + self.wrong

    def __str__(self) -> str:
        """Right of all; what was refused and what was wrong."""
        if not self.asked:
            return "-"
        rest = [
            f"{number} {word}"
            for number, word in ((self.refused, "refused"), (self.wrong, "wrong"))
            if number
        ]
        return f"{self.right} of {self.asked}" + (f" ({', '.join(rest)})" if rest else "")


def scores(judged: Sequence[Ruling]) -> dict[str, Score]:
    """The score of each row of the board that has cases, in the board's order."""
    found = {feature for one in judged for feature in one.case.features}
    rows = [*(name for name in BOARD if name in found), *sorted(found - set(BOARD))]
    return {row: _score(one for one in judged if row in one.case.features) for row in rows}


def _score(judged: Iterable[Ruling]) -> Score:
    verdicts = [one.verdict for one in judged]
    return Score(*(verdicts.count(verdict) for verdict in list(Verdict)[:3]))


def is_perfect(judged: Sequence[Ruling]) -> bool:
    """Whether every case that was asked is right."""
    total = scores(judged)[EVERYTHING]
    return total.right == total.asked


def table_of(results: Mapping[str, Sequence[Ruling]]) -> list[list[str]]:
    """The board: a header, then a row per feature with a cell per reader.

    Args:
        results: what each reader, by its title, made of the same cases.
    """
    columns: dict[str, dict[str, Any]] = {name: scores(one) for name, one in results.items()}
    rows = next(iter(columns.values()))
    return [
        ["", *columns],
        *([row, *(str(column[row]) for column in columns.values())] for row in rows),
    ]


def as_markdown(cells: list[list[str]]) -> str:
    """A Markdown table."""
    head, *rows = (f"| {' | '.join(row)} |\n" for row in cells)
    return head + "|---" * len(cells[0]) + "|\n" + "".join(rows)


def as_text(cells: list[list[str]]) -> str:
    """Columns side by side."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join(lines) + "\n"
