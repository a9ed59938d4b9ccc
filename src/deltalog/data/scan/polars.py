"""A version of a table as a lazy frame of Polars.

This module implements the interface that Polars requires of a source: columns, a filter, a number
of rows. Files are pruned by the parts of the filter that have exactly the same meaning in deltalog.
Polars also applies the whole filter to each batch, with its own semantics of nulls and NaN.

Protocol: none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalog.data.scan.plan import plan_scan
from deltalog.data.scan.rows import require_library
from deltalog.expressions.polars import weaker_than_polars

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl
    import pyarrow as pa

    from deltalog.expressions import Expression
    from deltalog.log.snapshot import Snapshot


def lazy_frame(
    snapshot: Snapshot,
    *,
    columns: Sequence[str] | None = None,
    predicate: Expression | None = None,
) -> pl.LazyFrame:
    """Return the rows as a lazy frame, which reads only what a query needs, batch by batch.

    Args:
        snapshot: the version.
        columns: see `plan_scan`.
        predicate: a resolved condition; only rows for which it is true are returned.

    Raises:
        InvalidInputError: Polars is not installed, or a column is unknown.
        UnsupportedFeatureError, UnsupportedTypeError: deltalog cannot read the table's rows.

    Cost: no data is read before the frame is collected.
    """
    require_library("polars")
    from deltalog.data.scan.polars_files import frame_of_dataset  # noqa: PLC0415  # only for Polars

    schema_names = snapshot.configuration.schema.names
    if predicate is None and (columns is None or set(columns) <= set(schema_names)):
        frame = frame_of_dataset(snapshot)
        if frame is not None:
            return frame if columns is None else frame.select(columns)
    from polars.io.plugins import register_io_source  # noqa: PLC0415  # optional, and slow to import

    asked: Sequence[str] = snapshot.configuration.schema.names if columns is None else columns
    shown = plan_scan(snapshot, columns=asked, predicate=predicate, is_resolved=True).schema
    names = [plan_scan(snapshot, columns=[name]).schema.names[0] for name in asked]
    source = PolarsSource(snapshot, tuple(zip(names, asked, strict=True)), predicate)
    return register_io_source(
        source, schema=_frame(shown.empty_table()).schema, validate_schema=True, is_pure=True
    )


@dataclass(frozen=True, slots=True)
class PolarsSource:
    """A source for Polars that returns the rows of one version; picklable.

    Args:
        snapshot: the version.
        columns: for each column name in Polars, the column name for `plan_scan`.
        predicate: a resolved condition; only rows for which it is true are returned.
    """

    snapshot: Snapshot
    columns: tuple[tuple[str, str], ...]
    predicate: Expression | None

    def __call__(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows for which the filter is true, as data frames.

        Args:
            with_columns: the names of the requested columns, in order; None means all.
            predicate: the filter of Polars, or None.
            n_rows: maximum number of rows; None means all.
            batch_size: ignored, because scans limit the size of their batches themselves.
        """
        del batch_size
        used = None if with_columns is None else set(with_columns)
        if used is not None and predicate is not None:
            used |= set(predicate.meta.root_names())
        scan = plan_scan(
            self.snapshot,
            columns=[asked for name, asked in self.columns if used is None or name in used],
            predicate=self._narrowed(predicate),
            # If there is a filter, the limit must be applied after Polars has filtered the rows.
            limit=n_rows if predicate is None else None,
            is_resolved=True,
        )
        missing = n_rows
        for batch in scan.to_batches():
            frame = _frame(batch)
            frame = frame if predicate is None else frame.filter(predicate)
            frame = frame if with_columns is None else frame.select(with_columns)
            yield frame if missing is None else frame.head(missing)
            if missing is not None:
                missing -= min(missing, frame.height)
                if not missing:
                    return

    def _narrowed(self, filter_: pl.Expr | None) -> Expression | None:
        if filter_ is None:
            return self.predicate
        schema, session = self.snapshot.configuration.schema, self.snapshot.context.session
        pushed = weaker_than_polars(filter_, schema, session)
        if pushed is None or self.predicate is None:
            return self.predicate if pushed is None else pushed
        return self.predicate & pushed


def _frame(rows: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    found: Any = require_library("polars").from_arrow(rows)
    return found  # type: ignore[no-any-return]  # `from_arrow` returns a frame for a table
