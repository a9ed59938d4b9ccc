"""A read of one version, which the queries of an engine narrow to what they need."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from deltalog import arguments, conditions
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import TextRules, resolve_predicate
from deltalog.expressions.substrait import as_meant
from deltalog.scan.plan import plan_scan
from deltalog.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from pathlib import PurePath

    import pyarrow as pa

    from deltalog.catalogs.named import NamedTable
    from deltalog.expressions import Expression
    from deltalog.scan.plan import Scan
    from deltalog.snapshot import Snapshot
    from deltalog.storage import Store
    from deltalog.storage.fsspec_store import StorageOptions

    Source = str | PurePath | Store | NamedTable | DeltaTable
    Version = int | str | datetime


def open_version(
    source: Source,
    version: Version | None = None,
    storage_options: StorageOptions | None = None,
    options: Mapping[str, Any] | None = None,
) -> DeltaTable:
    """Return a table that shows a version; a table that is given stays as it is.

    Args:
        source: location of the table, or the table.
        version: a number, a timestamp text or a datetime; None is the latest, or that of the table.
        storage_options: as for `DeltaTable`.
        options: other arguments of `DeltaTable`.

    Raises:
        TableNotFoundError: there is no Delta table.
        VersionNotFoundError: the version is not there.
        InvalidInputError: options are given beside a table.
    """
    if not isinstance(source, DeltaTable):
        return DeltaTable(
            source, version=version, storage_options=storage_options, **(options or {})
        )
    if storage_options is not None or options is not None:
        raise InvalidInputError(
            f"cannot scan {source!r} with storage_options or delta_table_options: the table is "
            "open already; give its location instead"
        )
    shown = copy.copy(source)
    if version is not None:
        shown.load_as_version(version)
    return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRead:
    """A read of one version of a table, before a query has narrowed it; picklable.

    Args:
        snapshot: the version.
        columns: the name of each column in its rows, with what a scan is asked for.
        predicate: resolved; rows for which it is not true are left out.
        schema: of the rows.
    """

    snapshot: Snapshot
    columns: tuple[tuple[str, str], ...]
    predicate: Expression | None
    schema: pa.Schema

    @classmethod
    def of(
        cls,
        table: DeltaTable,
        *,
        columns: Sequence[str] | None = None,
        predicates: Sequence[Any] = (),
        parameters: Sequence[object] | Mapping[str, object] | None = None,
    ) -> Self:
        """Plan a read.

        Args:
            table: whose version is read.
            columns: as for `DeltaTable.scan`.
            predicates: likewise; all must be true.
            parameters: likewise.

        Raises:
            InvalidInputError: an unknown column, or a predicate that is not understood.
            UnsupportedFeatureError, UnsupportedTypeError: deltalog cannot read the table's rows.

        Cost: no I/O on data.
        """
        snapshot = table.snapshot
        chosen = arguments.as_columns(columns)
        asked = list(table.schema().names if chosen is None else chosen)
        condition = conditions.as_condition(
            table.schema(), *predicates, session=snapshot.context.session, parameters=parameters
        )
        scan = plan_scan(snapshot, columns=asked, predicate=condition, is_resolved=True)
        names = [plan_scan(snapshot, columns=[name]).schema.names[0] for name in asked]
        return cls(
            snapshot=snapshot,
            columns=tuple(zip(names, asked, strict=True)),
            predicate=condition,
            schema=scan.schema,
        )

    def resolved(self, condition: Expression | None) -> Expression | None:
        """A condition of an engine over the table's columns; None if it cannot be resolved."""
        if condition is None:
            return None
        configuration, session = self.snapshot.configuration, self.snapshot.context.session
        try:
            schema = configuration.schema
            meant = as_meant(condition, schema)
            return resolve_predicate(meant, schema, session, text_rules=TextRules.NONE)
        except DeltaError:
            return None

    def scan(self, names: Sequence[str] | None = None, pushed: Expression | None = None) -> Scan:
        """Return the scan that a query needs.

        Args:
            names: some columns of `schema`, in the order wanted; None is all.
            pushed: a resolved condition besides the predicate.
        """
        wanted = self.schema.names if names is None else names
        asked = [text for name in wanted for own, text in self.columns if own == name]
        both = self.predicate if pushed is None else pushed
        if pushed is not None and self.predicate is not None:
            both = self.predicate & pushed
        return plan_scan(self.snapshot, columns=asked, predicate=both, is_resolved=True)
