"""`OPTIMIZE`, `REORG`, `VACUUM`, `RESTORE`, `FSCK REPAIR TABLE`, `GENERATE`, and branches.

Protocol: none; follows Delta Lake's SQL reference, which has no branches
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.clock import utc_moment
from deltalog.errors import BranchNotFoundError, InvalidInputError
from deltalog.log.branches import on_named_branch
from deltalog.statements.statement import (
    Query,
    Session,
    SqlCondition,
    SqlStatement,
    StatementAnswer,
    clusters_of,
    condition_of,
    counted,
    qualifiers_of,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deltalog.query.names import QualifiedName, Version
    from deltalog.statements.reader import StatementReader

_FILES: Final[pa.DataType] = pa.struct(
    [
        ("min", pa.int64()),
        ("max", pa.int64()),
        ("avg", pa.float64()),
        ("totalFiles", pa.int64()),
        ("totalSize", pa.int64()),
    ]
)
_METRICS: Final[dict[str, pa.DataType]] = {
    "numFilesAdded": pa.int64(),
    "numFilesRemoved": pa.int64(),
    "filesAdded": _FILES,
    "filesRemoved": _FILES,
    "partitionsOptimized": pa.int64(),
    "numBatches": pa.int64(),
    "totalConsideredFiles": pa.int64(),
    "totalFilesSkipped": pa.int64(),
    "preserveInsertionOrder": pa.bool_(),
    "numDeletionVectorsRemoved": pa.int64(),
    "numDeletedRowsPurged": pa.int64(),
}
_PLANNED: Final[dict[str, pa.DataType]] = {
    "numFiles": pa.int64(),
    "numFilesToRewrite": pa.int64(),
    "sizeInBytesToRewrite": pa.int64(),
    "properties": pa.map_(pa.string(), pa.string()),
}
_PUBLISHED: Final[dict[str, pa.DataType]] = {
    "version": pa.int64(),
    "was_published": pa.bool_(),
}
_BRANCHES: Final[dict[str, pa.DataType]] = {
    "name": pa.string(),
    "base_version": pa.int64(),
    "created_at": pa.timestamp("ms", "UTC"),
    "expires_at": pa.timestamp("ms", "UTC"),
    "state": pa.string(),
}
_OPTIMIZED: Final[dict[str, pa.DataType]] = {
    "path": pa.string(),
    "metrics": pa.struct(list(_METRICS.items())),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeStatement(SqlStatement):
    """`OPTIMIZE table [FULL] [WHERE partitions] [ZORDER BY (columns)]`."""

    table: QualifiedName
    where: SqlCondition | None = None
    z_order_by: Sequence[tuple[str, ...]] | None = None
    is_full: bool = False

    def run(self, session: Session) -> StatementAnswer:
        """Rewrite the files, and return the numbers of removed and added files."""
        table = session.open(self.table)
        where = condition_of(session, self.where, table, qualifiers_of(self.table))
        if self.is_full and not clusters_of(table):
            raise InvalidInputError(f"cannot OPTIMIZE {self.table} FULL: it is not clustered")
        options = session.options
        given: dict[str, Any] = {
            "commit_properties": options.properties,
            "post_commithook_properties": options.hooks,
        }
        if self.z_order_by is not None:
            found = table.optimize.z_order(self.z_order_by, where, **given)
        elif self.is_full:
            found = table.optimize.cluster(full=True, **given)
        else:
            found = table.optimize.compact(where, **given)
        return _optimized(table.table_uri, found)


@dataclass(frozen=True, slots=True)
class ReorgStatement(SqlStatement):
    """`REORG TABLE table [WHERE partitions] APPLY (PURGE)`."""

    table: QualifiedName
    where: SqlCondition | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Rewrite the files that contain deleted rows or dropped columns."""
        table = session.open(self.table)
        options = session.options
        found = table.optimize.purge(
            condition_of(session, self.where, table, qualifiers_of(self.table)),
            commit_properties=options.properties,
            post_commithook_properties=options.hooks,
        )
        return _optimized(table.table_uri, found)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeUniformStatement(SqlStatement):
    """`REORG TABLE table APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = n)) [DRY RUN]`."""

    table: QualifiedName
    version: int
    is_dry_run: bool = False

    def run(self, session: Session) -> StatementAnswer:
        """Make the table readable by Iceberg."""
        table = session.open(self.table)
        found = table.optimize.upgrade_uniform(self.version, dry_run=self.is_dry_run)
        if found.metrics is not None:
            return _optimized(table.table_uri, found.metrics)
        row = (
            found.num_files,
            found.num_files_to_rewrite,
            found.size_bytes_to_rewrite,
            list(found.properties.items()),
        )
        return StatementAnswer(table_of(_PLANNED, [row]))


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumStatement(SqlStatement):
    """`VACUUM table [FULL|LITE] [USING INVENTORY …] [RETAIN n HOURS] [DRY RUN]`."""

    table: QualifiedName
    is_full: bool = True
    inventory: Query | QualifiedName | None = None
    retention_hours: float | None = None
    is_dry_run: bool = False

    def run(self, session: Session) -> StatementAnswer:
        """Delete files. Return the path of the table, or the paths of the files for a dry run."""
        table = session.open(self.table)
        inventory = None if self.inventory is None else session.source(self.inventory)
        try:
            found = table.vacuum(
                self.retention_hours,
                dry_run=self.is_dry_run,
                enforce_retention_duration=session.enforces_retention,
                full=self.is_full and inventory is None,
                inventory=inventory,
            )
        except InvalidInputError as error:
            from deltalog.operations.vacuum import UNCHECKED  # noqa: PLC0415  # only for errors

            shorter = f"first shorten it by {self._shortening()}"
            raise InvalidInputError(str(error).replace(UNCHECKED, shorter)) from error
        root = table.table_uri
        paths = [f"{root.rstrip('/')}/{path}" for path in found] if self.is_dry_run else [root]
        metrics = None if self.is_dry_run else {"num_deleted_files": len(found)}
        return StatementAnswer(
            table_of({"path": pa.string()}, [(path,) for path in paths]), metrics
        )

    def _shortening(self) -> str:
        """Return the statement that lets the table keep removed files only for these hours."""
        hours = self.retention_hours or 0
        period = f"{hours:g} hours" if hours == int(hours) else f"{hours * 3600:.0f} seconds"
        name = f"'delta.deletedFileRetentionDuration' = 'interval {period}'"
        return f"ALTER TABLE {self.table} SET TBLPROPERTIES ({name})"


@dataclass(frozen=True, slots=True)
class RestoreStatement(SqlStatement):
    """`RESTORE TABLE table TO VERSION|TIMESTAMP AS OF …`."""

    table: QualifiedName
    version: Version

    def run(self, session: Session) -> StatementAnswer:
        """Commit the state of an older version again, and return the numbers of files."""
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
class RepairStatement(SqlStatement):
    """`FSCK REPAIR TABLE table [DRY RUN]`."""

    table: QualifiedName
    is_dry_run: bool

    def run(self, session: Session) -> StatementAnswer:
        """Remove the entries of files that are missing in the store; return their paths."""
        found = session.open(self.table).repair(dry_run=self.is_dry_run)
        rows = [(path, True) for path in found["files_removed"]]
        answer = table_of({"dataFilePath": pa.string(), "dataFileMissing": pa.bool_()}, rows)
        return StatementAnswer(answer, None if self.is_dry_run else found)


@dataclass(frozen=True, slots=True)
class GenerateStatement(SqlStatement):
    """`GENERATE symlink_format_manifest FOR TABLE table`."""

    table: QualifiedName

    def run(self, session: Session) -> StatementAnswer:
        """Write the manifests."""
        session.open(self.table).generate()
        return StatementAnswer(None)


# --- Branches


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateBranchStatement(SqlStatement):
    """`CREATE BRANCH [IF NOT EXISTS] name FOR TABLE table [VERSION AS OF n] [RETAIN n DAYS]`."""

    name: str
    table: QualifiedName
    may_exist: bool = False
    expires_after: timedelta | None = None

    def run(self, session: Session) -> StatementAnswer:
        """Create the branch."""
        table = session.open(self.table)
        # A table that was opened at a version is shown at this version.
        version = table.version() if table.is_pinned or self.table.version is not None else None
        table.branch(
            self.name,
            version=version,
            exist_ok=self.may_exist,
            expires_after=self.expires_after,
        )
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropBranchStatement(SqlStatement):
    """`DROP BRANCH [IF EXISTS] name FOR TABLE table`."""

    name: str
    table: QualifiedName
    may_lack: bool = False

    def run(self, session: Session) -> StatementAnswer:
        """Delete the branch, with its rows."""
        try:
            session.open(self.table).drop_branch(self.name)
        except BranchNotFoundError:
            if not self.may_lack:
                raise
        return StatementAnswer(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishBranchStatement(SqlStatement):
    """`PUBLISH BRANCH name FOR TABLE table [CHECK (condition), …]`."""

    name: str
    table: QualifiedName
    checks: tuple[str, ...] = ()

    def run(self, session: Session) -> StatementAnswer:
        """Check the branch, and commit its changes to the table; return the new version."""
        table = session.open(self.table)
        context = on_named_branch(table.snapshot.context, self.name)
        draft = type(table).from_context(context, table.engine)
        found = draft.publish(self.checks, commit_properties=session.options.properties)
        row = (found.version, found.was_published)
        return StatementAnswer(table_of(_PUBLISHED, [row]))


@dataclass(frozen=True, slots=True)
class ShowBranchesStatement(SqlStatement):
    """`SHOW BRANCHES FROM table`."""

    table: QualifiedName

    def run(self, session: Session) -> StatementAnswer:
        """Return one row for each branch."""
        rows = [
            (
                branch.name,
                branch.base_version,
                utc_moment(branch.created_ms),
                None if branch.expires_ms is None else utc_moment(branch.expires_ms),
                branch.state.value,
            )
            for branch in session.open(self.table).branches()
        ]
        return StatementAnswer(table_of(_BRANCHES, rows))


def read_create_branch(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `CREATE BRANCH`."""
    may_exist = reader.take("IF NOT EXISTS")
    name, table = _branch_of_table(reader)
    version = reader.version()
    days = None
    if reader.take("RETAIN"):
        days = reader.integer("a number of days")
        reader.expect("DAYS")
    return CreateBranchStatement(
        name=name,
        table=table if version is None else type(table)(table.parts, version),
        may_exist=may_exist,
        expires_after=None if days is None else timedelta(days=days),
    )


def read_drop_branch(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `DROP BRANCH`."""
    may_lack = reader.take("IF EXISTS")
    name, table = _branch_of_table(reader)
    return DropBranchStatement(name=name, table=table, may_lack=may_lack)


def read_publish(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `PUBLISH`."""
    reader.expect("BRANCH")
    name, table = _branch_of_table(reader)
    checks: list[str] = []
    if reader.take("CHECK"):
        checks = reader.listed(reader.bracketed_source, is_bracketed=False)
    return PublishBranchStatement(name=name, table=table, checks=tuple(checks))


def read_show_branches(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `SHOW BRANCHES`."""
    reader.expect_one("FROM", "IN", "FOR TABLE")
    return ShowBranchesStatement(reader.location_or_table())


def _branch_of_table(reader: StatementReader) -> tuple[str, QualifiedName]:
    name = reader.name("the name of a branch")
    reader.expect("FOR TABLE")
    return name, reader.location_or_table()


# --- Parsers of the other statements


def read_optimize(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `OPTIMIZE`."""
    table = reader.location_or_table()
    is_full = reader.take("FULL")
    where = reader.condition("ZORDER BY") if reader.take("WHERE") else None
    columns = None
    if reader.take("ZORDER BY"):
        columns = reader.listed(reader.path, is_bracketed=reader.is_at("("))
    return OptimizeStatement(table=table, where=where, z_order_by=columns, is_full=is_full)


def read_reorg(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `REORG`."""
    reader.expect("TABLE")
    table = reader.table()
    where = reader.condition("APPLY") if reader.take("WHERE") else None
    reader.expect("APPLY (")
    if not reader.take("UPGRADE"):
        reader.expect("PURGE )")
        return ReorgStatement(table, where)
    if where is not None:
        reader.fail("UPGRADE UNIFORM applies to the whole table: leave out WHERE")
    reader.expect("UNIFORM ( ICEBERG_COMPAT_VERSION =")
    version = reader.integer()
    reader.expect(") )")
    is_dry_run = reader.take("DRY RUN")
    return UpgradeUniformStatement(table=table, version=version, is_dry_run=is_dry_run)


def read_vacuum(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `VACUUM`."""
    table = reader.location_or_table()
    is_full, inventory, hours, is_dry_run = True, None, None, False
    said: set[str] = set()
    while True:
        start = reader.word
        clause = reader.take_one("FULL", "LITE", "USING INVENTORY", "RETAIN", "DRY RUN")
        if clause is None:
            break
        kind = "FULL or LITE" if clause in {"FULL", "LITE"} else clause
        if kind in said:
            reader.fail_at(start, f"expected {kind} once")
        said.add(kind)
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


def read_restore(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `RESTORE`."""
    reader.take("TABLE")
    table = reader.location_or_table()
    reader.take("TO")
    found = reader.version()
    version = table.known_version if found is None else found
    if version is None:
        reader.fail("expected TO VERSION AS OF or TO TIMESTAMP AS OF")
    return RestoreStatement(type(table)(table.parts), version)


def read_repair(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `FSCK`."""
    reader.expect("REPAIR TABLE")
    table = reader.location_or_table()
    return RepairStatement(table, reader.take("DRY RUN"))


def read_generate(reader: StatementReader) -> SqlStatement:
    """Parse a statement after `GENERATE`."""
    reader.expect("SYMLINK_FORMAT_MANIFEST FOR TABLE")
    return GenerateStatement(reader.location_or_table())


def _optimized(path: str, found: Any) -> StatementAnswer:
    metrics = {name: found.get(name) for name in _METRICS}
    return StatementAnswer(table_of(_OPTIMIZED, [(path, metrics)]), found)
