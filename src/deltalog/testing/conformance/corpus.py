"""Tables with the rows that they must give, in one of two layouts, as cases.

- A directory with `manifest.json`: tables of any origin, each with digests of the rows of some
  versions and of its change data feed, or with the statement that a read must fail.
- A release of Delta Acceptance Testing (DAT): a directory per table with `delta/`, and the rows of
  some versions as Parquet below `expected/`.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deltalog._json import loads
from deltalog.errors import InvalidInputError
from deltalog.testing.conformance.digest import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Facts = dict[str, Any]

EVERYTHING: Final = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One read, and what it must give.

    Args:
        table: the table's name in its corpus.
        path: where the table is.
        version: what is read; None is the latest.
        changes: the change data feed between these versions is read instead.
        digest: of the rows; None where the read must fail.
        excluded: columns that the digest leaves out.
        features: the rows of the board that it counts for.
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
        """The table and what is read of it."""
        if self.changes:
            return f"{self.table}, changes {self.changes[0]} to {self.changes[1]}"
        return f"{self.table}, {'latest' if self.version is None else f'version {self.version}'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """The cases of a directory.

    Args:
        cases: what is judged.
        tables: how many tables they are of.
        left_out: why cases are not judged, with how many there are.
    """

    cases: tuple[Trial, ...]
    tables: int
    left_out: dict[str, int]


def load_corpus(directory: Path, writers: Sequence[str] = ()) -> Corpus:
    """The cases of a directory.

    Args:
        directory: of either layout.
        writers: only tables below directories of these names; all by default.

    Raises:
        InvalidInputError: the directory has neither layout, or no table is left.
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


# Rows of the board, by what the manifest says of a table.
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
"""The rows of the board, in order; cases of other layouts come after them."""


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
    """The digest of rows in Parquet, read by pyarrow alone: not by what is judged."""
    import pyarrow.parquet as pq  # noqa: PLC0415, TID251  # see above; slow, and only for this layout

    content = expected / "table_content"
    if not content.exists():
        content = expected / "table_content.parquet"
    return digest(pq.read_table(content, partitioning=None))
