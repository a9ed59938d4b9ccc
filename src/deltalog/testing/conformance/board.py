"""Judge libraries by the cases of a directory; show the number of passed cases on a board.

Protocol: none
"""

from __future__ import annotations

import enum
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.json import loads
from deltalog.errors import InvalidInputError
from deltalog.table import DeltaTable
from deltalog.testing.conformance.digest import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Facts = dict[str, Any]


class Verdict(enum.Enum):
    """The judgement of one read."""

    RIGHT = "right"
    """The reader returned the expected rows, or raised an expected error."""
    REFUSED = "refused"
    """The reader raised an error instead of returning rows. This does no harm."""
    WRONG = "wrong"
    """The reader returned wrong rows, or returned rows although an error was expected."""
    NOT_ASKED = "not asked"
    """The reader does not support this kind of read."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """A case with the verdict on its read.

    Args:
        case: the case.
        verdict: the judgement of the read.
        why: the error, or the difference between the rows; empty if the result is right.
    """

    case: Trial
    verdict: Verdict
    why: str = ""


def judge(case: Trial, reader: Reader) -> Ruling:
    """Read the table of a case with a reader, and judge the result."""
    if case.changes and not reader.changes:
        return Ruling(case, Verdict.NOT_ASKED)
    try:
        found = _digest_read(case, reader)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # a panic in Rust raises a BaseException
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
    """The numbers of right, refused and wrong cases, for one row of the board."""

    right: int
    refused: int
    wrong: int

    @property
    def asked(self) -> int:
        """The number of cases, except those that the reader does not support."""
        return self.right + self.refused + self.wrong

    def __str__(self) -> str:
        """Return the text of the cell on the board, such as `5 of 7 (2 refused)`."""
        if not self.asked:
            return "-"
        rest = [
            f"{number} {word}"
            for number, word in ((self.refused, "refused"), (self.wrong, "wrong"))
            if number
        ]
        return f"{self.right} of {self.asked}" + (f" ({', '.join(rest)})" if rest else "")


def scores(judged: Sequence[Ruling]) -> dict[str, Score]:
    """Return the scores: row of the board → score. Rows without cases are omitted."""
    found = {feature for one in judged for feature in one.case.features}
    rows = [*(name for name in BOARD if name in found), *sorted(found - set(BOARD))]
    return {row: _score(one for one in judged if row in one.case.features) for row in rows}


def _score(judged: Iterable[Ruling]) -> Score:
    verdicts = [one.verdict for one in judged]
    return Score(*(verdicts.count(verdict) for verdict in list(Verdict)[:3]))


def is_perfect(judged: Sequence[Ruling]) -> bool:
    """Return whether the reader passes every case that it supports."""
    total = scores(judged)[EVERYTHING]
    return total.right == total.asked


def table_of(results: Mapping[str, Sequence[Ruling]]) -> list[list[str]]:
    """Return the board as cells: a header, then one row per feature with one cell per reader.

    Args:
        results: title of a reader → its judged cases.
    """
    columns: dict[str, dict[str, Any]] = {name: scores(one) for name, one in results.items()}
    rows = next(iter(columns.values()))
    return [
        ["", *columns],
        *([row, *(str(column[row]) for column in columns.values())] for row in rows),
    ]


def as_markdown(cells: list[list[str]]) -> str:
    """Return the board as a Markdown table."""
    head, *rows = (f"| {' | '.join(row)} |\n" for row in cells)
    return head + "|---" * len(cells[0]) + "|\n" + "".join(rows)


def as_text(cells: list[list[str]]) -> str:
    """Return the board as aligned columns."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join(lines) + "\n"


# --- readers: deltalog and other libraries, each with the API that reads most of the tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A library that reads tables, and the functions that call it.

    Args:
        name: the name of the library on the board.
        package: the package whose version is shown.
        how: the API that is called, for the caption of the board.
        rows: a function that returns all rows of the table at a path, at a version; None means the
            latest version.
        changes: a function that returns the change data feed from one version to another, both
            included; None if the library cannot read the feed.
    """

    name: str
    package: str
    how: str
    rows: Callable[[str, int | None], pa.Table]
    changes: Callable[[str, int, int], pa.Table] | None = None

    @property
    def title(self) -> str:
        """The name and version of the library."""
        return f"{self.name} {importlib.metadata.version(self.package)}"


def find_reader(name: str) -> Reader:
    """Return the reader with this name.

    Raises:
        InvalidInputError: there is no such reader, or its package is not installed.
    """
    if name not in READERS:
        raise InvalidInputError(f"cannot score {name!r}: expected one of {sorted(READERS)}")
    reader = READERS[name]
    try:
        importlib.metadata.version(reader.package)
    except importlib.metadata.PackageNotFoundError:
        raise InvalidInputError(
            f"cannot score {name!r}: install it first, `pip install {reader.package}`"
        ) from None
    return reader


def _rows(path: str, version: int | None) -> pa.Table:
    return DeltaTable(path, version=version).to_pyarrow_table()


def _changes(path: str, first: int, last: int) -> pa.Table:
    return pa.table(DeltaTable(path).load_cdf(starting_version=first, ending_version=last))


def _deltalake(path: str, version: int | None) -> Any:
    import deltalake  # noqa: PLC0415  # an optional library

    return deltalake.DeltaTable(path, version=version)


def _deltalake_changes(path: str, first: int, last: int) -> pa.Table:
    table = _deltalake(path, None)
    return pa.table(table.load_cdf(starting_version=first, ending_version=last))


def _polars(path: str, version: int | None) -> pa.Table:
    import polars as pl  # noqa: PLC0415  # an optional library

    return pl.scan_delta(path, version=version).collect().to_arrow()


READERS: Final = {
    reader.name: reader
    for reader in (
        Reader(
            name="deltalog",
            package="deltalog",
            how="`DeltaTable.to_pyarrow_table`, `load_cdf`",
            rows=_rows,
            changes=_changes,
        ),
        Reader(
            name="deltalake",
            package="deltalake",
            how="`DeltaTable.scan`, `load_cdf`",
            rows=lambda path, version: pa.table(_deltalake(path, version).scan()),
            changes=_deltalake_changes,
        ),
        Reader(
            name="deltalake-pyarrow",
            package="deltalake",
            how="`DeltaTable.to_pyarrow_table`",
            rows=lambda path, version: _deltalake(path, version).to_pyarrow_table(),
        ),
        Reader(name="polars", package="polars", how="`polars.scan_delta`", rows=_polars),
    )
}


# --- cases: tables and their expected rows, in one of two layouts of directories


EVERYTHING: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A case: one read, and its expected result.

    Args:
        table: the name of the table in its directory of cases.
        path: the path of the table.
        version: the version to read; None means the latest.
        changes: the first and last version if the change data feed is read, else None.
        digest: the digest of the expected rows; None if the read must fail.
        excluded: the columns that are not part of the digest.
        features: the rows of the board in which the case counts.
    """

    table: str
    path: Path
    version: int | None
    changes: tuple[int, int] | None = None
    digest: str | None
    excluded: frozenset[str] = frozenset()
    features: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the table, with the version or the range of changes that is read."""
        if self.changes:
            return f"{self.table}, changes {self.changes[0]} to {self.changes[1]}"
        return f"{self.table}, {'latest' if self.version is None else f'version {self.version}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The cases of one directory.

    Args:
        cases: the cases to judge.
        tables: the number of tables of these cases.
        left_out: the reason why cases are not judged → their number.
    """

    cases: tuple[Trial, ...]
    tables: int
    left_out: dict[str, int]


def load_corpus(directory: Path, writers: Sequence[str] = ()) -> Corpus:
    """Load the cases of a directory.

    Args:
        directory: the directory, in one of the two layouts.
        writers: names of directories. Only tables below these directories are loaded; by default,
            all.

    Raises:
        InvalidInputError: the directory has neither layout, or has no table below `writers`.
    """
    left_out: dict[str, int] = {}
    if (directory / "manifest.json").is_file():
        cases = list(_of_manifest(directory, left_out))
    else:
        cases = list(_of_releases(directory))
        if not cases:
            raise InvalidInputError(
                f"cannot read the corpus {directory}: expected a manifest.json, or directories "
                "with test_case_info.json, as releases of Delta Acceptance Testing have; found none"
            )
    wanted = [case for case in cases if not writers or case.table.partition("/")[0] in writers]
    if not wanted:
        known = sorted({case.table.partition("/")[0] for case in cases})
        raise InvalidInputError(
            f"cannot read tables of {', '.join(writers)}: expected one of {', '.join(known)}"
        )
    tables = len({case.table for case in wanted})
    return Corpus(cases=tuple(wanted), tables=tables, left_out=left_out)


def _of_manifest(directory: Path, left_out: dict[str, int]) -> Iterator[Trial]:
    manifest = loads((directory / "manifest.json").read_bytes(), "manifest.json")
    for facts in manifest["tables"]:
        expected = facts["expected"]
        reads: list[tuple[int | None, tuple[int, int] | None, Facts]] = [
            (int(version), None, one) for version, one in expected["versions"].items()
        ]
        latest = expected["latest"]
        last = latest.get("version")
        reads.append((None, None, latest if last is None else expected["versions"][str(last)]))
        reads += [(None, (one["start"], one["end"]), one) for one in expected.get("cdf", ())]
        for version, changes, one in reads:
            if reason := _why_left_out(one):
                left_out[reason] = left_out.get(reason, 0) + 1
                continue
            gives_rows = one["outcome"] == "rows"
            yield Trial(
                table=facts["id"],
                path=directory / facts["path"],
                version=version,
                changes=changes,
                digest=one["digest"] if gives_rows else None,
                excluded=frozenset(one.get("digest_excludes", ())),
                features=_features(facts, version, changes, gives_rows=gives_rows),
            )
        if "setup" in facts:
            left_out[_SETUP] = left_out.get(_SETUP, 0) + len(expected["after_setup"])


_SETUP: Final = "the table has to be changed first"


def _why_left_out(expected: Facts) -> str | None:
    if expected.get("optional") or expected["outcome"] == "ambiguous":
        return "the protocol does not settle what is right"
    if expected["outcome"] == "log_only" and not expected.get("num_files"):
        return "there is a log without files, and nothing to read"
    return None


def _has(prefix: str) -> Callable[[Facts], bool]:
    return lambda facts: any(tag.startswith(prefix) for tag in facts["features"])


def _has_type(*names: str) -> Callable[[Facts], bool]:
    return lambda facts: not set(names).isdisjoint(facts["types"])


# The rows of the board, each with a function. The function decides from a table's entry in the
# manifest whether reads of this table count for the row.
_TABLES: Final[tuple[tuple[str, Callable[[Facts], bool]], ...]] = (
    ("partitions", lambda facts: bool(facts["partition_columns"])),
    ("nested types", _has_type("struct", "array", "map")),
    ("timestamps without zone", _has("feature:timestampNtz")),
    ("variants", _has_type("variant")),
    ("classic checkpoints", _has("checkpoint:classic")),
    ("multi-part checkpoints", _has("checkpoint:multi-part")),
    ("V2 checkpoints", _has("checkpoint:v2")),
    ("the log's start is gone", _has("log:truncated")),
    ("deletion vectors", _has("feature:deletionVectors")),
    ("column mapping", lambda facts: facts["column_mapping"] != "none"),
    ("type widening", _has("type-widening")),
    ("in-commit timestamps", _has("feature:inCommitTimestamp")),
    ("row tracking", _has("row-tracking")),
    ("Iceberg compatibility", _has("iceberg-compat")),
    ("changes of schema or settings", _has("metadata-change")),
    ("unusual paths", _has("path:")),
)
_OLDER: Final = "older versions"
_CHANGES: Final = "change data feed"
_REFUSALS: Final = "must be refused"
BOARD: Final = (EVERYTHING, *(name for name, _ in _TABLES), _OLDER, _CHANGES, _REFUSALS)
"""The rows of the board for a directory with a manifest, in order. Other rows follow them."""


def _features(
    facts: Facts, version: int | None, changes: tuple[int, int] | None, *, gives_rows: bool
) -> tuple[str, ...]:
    if not gives_rows:
        return (EVERYTHING, _REFUSALS)
    found = [EVERYTHING, *(name for name, applies in _TABLES if applies(facts))]
    if changes:
        found.append(_CHANGES)
    elif version is not None and version != facts["expected"]["latest"].get("version"):
        found.append(_OLDER)
    return tuple(found)


def _of_releases(directory: Path) -> Iterator[Trial]:
    for info in sorted(directory.rglob("test_case_info.json")):
        home = info.parent
        table = home.relative_to(directory).as_posix()
        for metadata in sorted(home.glob("expected/*/table_version_metadata.json")):
            name = metadata.parent.name
            yield Trial(
                table=table,
                path=home / "delta",
                version=None if name == "latest" else int(name.removeprefix("v")),
                digest=_digest_of(metadata.parent),
                features=(EVERYTHING, home.name),
            )


def _digest_of(expected: Path) -> str:
    """Return the digest of expected rows that are in Parquet files. pyarrow reads the files."""
    import pyarrow.parquet as pq  # noqa: PLC0415, TID251  # a slow import, which only this layout needs

    content = expected / "table_content"
    if not content.exists():
        content = expected / "table_content.parquet"
    return digest(pq.read_table(content, partitioning=None))
