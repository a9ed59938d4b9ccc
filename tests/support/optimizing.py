"""Tables that are optimized: what rows, ids and files they have before and after."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from deltalog._util.json import loads
from deltalog.data.scan import plan_scan
from deltalog.expressions import parse_type
from deltalog.log.context import utc_context
from deltalog.log.snapshot import load_snapshot
from deltalog.operations.alter.properties import SetClusteringColumns
from deltalog.operations.changes.bins import RunOptions
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.operation import Operation
from deltalog.operations.optimize import Optimized, ZOrder
from deltalog.schema import Field, StructType
from deltalog.storage.store import Store
from deltalog.transaction import PostCommitHookProperties
from tests.support.logs import Json
from tests.support.statements import StatedTable
from tests.support.transactions import actions_of, commit_info_of, of_kind

IDS = ("_metadata.row_id", "_metadata.row_commit_version")


_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class OptimizedTable(StatedTable):
    """A table of statements that takes optimizations, too."""

    @classmethod
    def reopened(cls, store: Store) -> OptimizedTable:
        """The table that is in a store."""
        table = cls.__new__(cls)
        table.store = store
        return table

    def optimize(
        self, verb: type[Operation[Optimized]], *arguments: Any, **options: Any
    ) -> Optimized:
        """Do an optimization; of the arguments columns come first, then filters of partitions."""
        names = ("columns", "filters") if verb is ZOrder else ("filters",)
        named = dict(zip(names, arguments, strict=False))
        return self.do(verb(**named, **options))

    def cluster_by(self, *columns: str) -> None:
        """`ALTER TABLE … CLUSTER BY`."""
        self.do(SetClusteringColumns(columns))

    def physical_rows(self, *columns: str) -> list[list[tuple[Any, ...]]]:
        """The rows of each file as they stand there, files in the order of their names."""
        found: dict[str, list[tuple[Any, ...]]] = {}
        names = ["_metadata.file_name", *columns]
        scan = plan_scan(load_snapshot(utc_context(self.store)), columns=names)
        for name, *values in zip(*scan.to_table().to_pydict().values(), strict=True):
            found.setdefault(name, []).append(tuple(values))
        return [found[name] for name in sorted(found)]

    def stats(self) -> list[Json]:
        """The statistics of each live file."""
        return [loads(text or "{}") for text in self.files().column("stats").to_pylist()]

    def actions(self, kind: str, version: int | None = None) -> list[Json]:
        """The actions of one kind in a commit, the last one's."""
        return of_kind(self.store, self.version if version is None else version, kind)  # type: ignore[arg-type]  # a DictStore in these tests

    def info(self) -> Json:
        """The history of the last commit."""
        return commit_info_of(self.store, self.version)  # type: ignore[arg-type]

    def lines(self) -> list[Json]:
        """All actions of the last commit."""
        return actions_of(self.store, self.version)  # type: ignore[arg-type]


def fields(columns: Mapping[str, str]) -> StructType:
    """A schema by its types in SQL."""
    return StructType([Field(name, parse_type(kind)) for name, kind in columns.items()])


def run_options(target_size: int | None = None, **options: Any) -> RunOptions:
    """A run whose files have a target size."""
    return RunOptions(files=FileOptions(target_file_size_bytes=target_size), **options)


def numbered(start: int, stop: int, **more: Any) -> list[dict[str, Any]]:
    """Rows `id`, with the same other values."""
    return [{"id": number, **more} for number in range(start, stop)]


def ids_of(rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The ids of rows."""
    return [row["id"] for row in rows]


CLUSTERED = {"id": "long", "x": "long", "y-new": "long", "s": "struct<z:long>"}
SCATTERED = {"id": "long", "x": "long", "y": "string", "s": "struct<z:double>", "p": "string"}


def cubes(table: OptimizedTable) -> set[str | None]:
    """The cubes that files are in; None for those that are in none."""
    found = table.files().column("tags").to_pylist()
    return {None if tags is None else dict(tags)["ZCUBE_ID"] for tags in found}


def clustered(*columns: str, **options: Any) -> OptimizedTable:
    """Two files of random rows, which are to be clustered."""
    draw = random.Random(7)
    rows = [
        {"id": n, "x": draw.randrange(1000), "y-new": draw.randrange(1000)} for n in range(4000)
    ]
    table = OptimizedTable(CLUSTERED, rows[:2000], rows[2000:], **options)
    table.cluster_by(*columns)
    return table


def scattered(count: int) -> list[list[dict[str, Any]]]:
    """Random rows of `SCATTERED`, for four files."""
    draw = random.Random(7)
    rows: list[dict[str, Any]] = [
        {
            "id": number,
            "x": draw.randrange(1000),
            "y": f"{draw.randrange(1000):04}",
            "s": {"z": draw.random()},
            "p": "ab"[number % 2],
        }
        for number in range(count)
    ]
    return [rows[start : start + count // 4] for start in range(0, count, count // 4)]
