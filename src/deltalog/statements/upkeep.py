"""`OPTIMIZE`, `REORG`, `VACUUM`, `RESTORE`, `FSCK REPAIR TABLE` and `GENERATE`.

Protocol: none; Delta Lake's SQL reference
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.statements.reader import Condition, Query
from deltalog.statements.statement import (
    Answer,
    Session,
    Statement,
    alias_of,
    clusters_of,
    condition_of,
    counted,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.query.names import TableName, Version
    from deltalog.statements.reader import StatementReader

_FILES: Final = (
    "struct<min: bigint, max: bigint, avg: double, totalFiles: bigint, totalSize: bigint>"
)
_METRICS: Final = {
    "numFilesAdded": "bigint",
    "numFilesRemoved": "bigint",
    "filesAdded": _FILES,
    "filesRemoved": _FILES,
    "partitionsOptimized": "bigint",
    "numBatches": "bigint",
    "totalConsideredFiles": "bigint",
    "totalFilesSkipped": "bigint",
    "preserveInsertionOrder": "boolean",
    "numDeletionVectorsRemoved": "bigint",
    "numDeletedRowsPurged": "bigint",
}
_OPTIMIZED: Final = {
    "path": "string",
    "metrics": f"struct<{', '.join(f'{name}: {kind}' for name, kind in _METRICS.items())}>",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeStatement(Statement):
    """`OPTIMIZE table [FULL] [WHERE partitions] [ZORDER BY (columns)]`."""

    table: TableName
    where: Condition | None = None
    z_order_by: Sequence[tuple[str, ...]] | None = None
    is_full: bool = False

    def run(self, session: Session) -> Answer:
        """Rewrite the files, and return how many."""
        table = session.open(self.table)
        where = condition_of(session, self.where, table, alias_of(self.table, None))
        if self.is_full and not clusters_of(table):
            raise InvalidInputError(f"cannot OPTIMIZE {self.table} FULL: it is not clustered")
        if self.z_order_by is not None:
            found = table.optimize.z_order(self.z_order_by, where)
        elif self.is_full:
            found = table.optimize.cluster(full=True)
        else:
            found = table.optimize.compact(where)
        return _optimized(table.table_uri, found)


@dataclass(frozen=True, slots=True)
class ReorgStatement(Statement):
    """`REORG TABLE table [WHERE partitions] APPLY (PURGE)`."""

    table: TableName
    where: Condition | None = None

    def run(self, session: Session) -> Answer:
        """Rewrite the files with deleted rows or dropped columns."""
        table = session.open(self.table)
        found = table.optimize.purge(
            condition_of(session, self.where, table, alias_of(self.table, None))
        )
        return _optimized(table.table_uri, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumStatement(Statement):
    """`VACUUM table [FULL|LITE] [USING INVENTORY …] [RETAIN n HOURS] [DRY RUN]`."""

    table: TableName
    is_full: bool = True
    inventory: Query | TableName | None = None
    retention_hours: float | None = None
    is_dry_run: bool = False

    def run(self, session: Session) -> Answer:
        """Delete files; return the table's path, or for a dry run those of the files."""
        table = session.open(self.table)
        inventory = None if self.inventory is None else session.source(self.inventory)
        found = table.vacuum(
            self.retention_hours,
            dry_run=self.is_dry_run,
            full=self.is_full and inventory is None,
            inventory=inventory,
        )
        root = table.table_uri
        paths = [f"{root.rstrip('/')}/{path}" for path in found] if self.is_dry_run else [root]
        metrics = None if self.is_dry_run else {"num_deleted_files": len(found)}
        return Answer(table_of({"path": "string"}, [(path,) for path in paths]), metrics)


@dataclass(frozen=True, slots=True)
class RestoreStatement(Statement):
    """`RESTORE TABLE table TO VERSION|TIMESTAMP AS OF …`."""

    table: TableName
    version: Version

    def run(self, session: Session) -> Answer:
        """Commit the older version again, and return the numbers of files."""
        table = session.open(self.table)
        found = table.restore(self.version)
        detail = table.detail()
        return counted(
            found,
            table_size_after_restore=detail["sizeInBytes"],
            num_of_files_after_restore=detail["numFiles"],
            num_removed_files=found.get("numRemovedFile"),
            num_restored_files=found.get("numRestoredFile"),
            removed_files_size=found.get("removed_bytes"),
            restored_files_size=found.get("restored_bytes"),
        )


@dataclass(frozen=True, slots=True)
class RepairStatement(Statement):
    """`FSCK REPAIR TABLE table [DRY RUN]`."""

    table: TableName
    is_dry_run: bool

    def run(self, session: Session) -> Answer:
        """Remove files from the table that are missing in the store, and return their paths."""
        found = session.open(self.table).repair(dry_run=self.is_dry_run)
        rows = [(path, True) for path in found["files_removed"]]
        answer = table_of({"dataFilePath": "string", "dataFileMissing": "boolean"}, rows)
        return Answer(answer, None if self.is_dry_run else found)


@dataclass(frozen=True, slots=True)
class GenerateStatement(Statement):
    """`GENERATE symlink_format_manifest FOR TABLE table`."""

    table: TableName

    def run(self, session: Session) -> Answer:
        """Write the manifests."""
        session.open(self.table).generate()
        return Answer(None)


def read_optimize(reader: StatementReader) -> Statement:
    """Read what follows `OPTIMIZE`."""
    table = reader.table()
    is_full = reader.take("FULL")
    where = reader.condition("ZORDER BY") if reader.take("WHERE") else None
    columns = None
    if reader.take("ZORDER BY"):
        columns = reader.listed(reader.path, is_bracketed=reader.is_at("("))
    return OptimizeStatement(table=table, where=where, z_order_by=columns, is_full=is_full)


def read_reorg(reader: StatementReader) -> Statement:
    """Read what follows `REORG`."""
    reader.expect("TABLE")
    table = reader.table()
    where = reader.condition("APPLY") if reader.take("WHERE") else None
    reader.expect("APPLY (")
    if reader.is_at("UPGRADE"):
        reader.fail("expected PURGE: UPGRADE UNIFORM needs Iceberg metadata, which is not written")
    reader.expect("PURGE )")
    return ReorgStatement(table, where)


def read_vacuum(reader: StatementReader) -> Statement:
    """Read what follows `VACUUM`."""
    table = reader.table()
    is_full, inventory, hours, is_dry_run = True, None, None, False
    while clause := reader.take_one("FULL", "LITE", "USING INVENTORY", "RETAIN", "DRY RUN"):
        match clause:
            case "FULL" | "LITE":
                is_full = clause == "FULL"
            case "USING INVENTORY":
                inventory = reader.bracketed_query() if reader.is_at("(") else reader.table()
            case "RETAIN":
                start = reader.word
                hours = reader.constant()
                if isinstance(hours, bool) or not hasattr(hours, "__float__"):
                    reader.fail_at(start, f"expected a number of hours, found {hours!r}")
                hours = float(hours)
                reader.expect("HOURS")
            case _:
                is_dry_run = True
    return VacuumStatement(
        table=table,
        is_full=is_full,
        inventory=inventory,
        retention_hours=hours,
        is_dry_run=is_dry_run,
    )


def read_restore(reader: StatementReader) -> Statement:
    """Read what follows `RESTORE`."""
    reader.take("TABLE")
    table = reader.table()
    reader.take("TO")
    version = reader.version() or table.version
    if version is None:
        reader.fail("expected TO VERSION AS OF or TO TIMESTAMP AS OF")
    return RestoreStatement(type(table)(table.parts), version)


def read_repair(reader: StatementReader) -> Statement:
    """Read what follows `FSCK`."""
    reader.expect("REPAIR TABLE")
    table = reader.table()
    return RepairStatement(table, reader.take("DRY RUN"))


def read_generate(reader: StatementReader) -> Statement:
    """Read what follows `GENERATE`."""
    reader.expect("SYMLINK_FORMAT_MANIFEST FOR TABLE")
    return GenerateStatement(reader.table())


def _optimized(path: str, found: Any) -> Answer:
    metrics = {name: found.get(name) for name in _METRICS}
    return Answer(table_of(_OPTIMIZED, [(path, metrics)]), found)
