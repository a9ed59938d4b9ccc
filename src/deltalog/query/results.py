"""The result of a query or another statement: its rows, and the numbers of changed rows and files.

Protocol: none
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from deltalog._util.call_errors import WrongCallError, called_first
from deltalog._util.cards import card, cell_of_row, details_of, grid, plain
from deltalog._util.escaping import printable, printable_lines
from deltalog._util.readable import counted, details, outcome
from deltalog._util.similar_names import NoSequence, SimilarNames, suggests_arguments
from deltalog.data.scan.rows import (
    DtypeBackend,
    check_frame_options,
    duckdb_relation,
    require_library,
    to_frame,
)
from deltalog.data.write.source import OpenableRows, open_batches
from deltalog.errors import InvalidInputError
from deltalog.schema.check import python_values, readable_tuples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd
    import polars as pl

_SHOWN_ROWS: Final = 20
_IN_QUERY: Final = "the query, such as SELECT … WHERE … ORDER BY … LIMIT …"
_MEANT: Final = {
    **dict.fromkeys(("fetchall", "fetchmany", "collect", "rows", "to_dicts"), "to_pylist()"),
    **dict.fromkeys(("fetchone", "first"), "to_pylist()[0]"),
    **dict.fromkeys(("head", "limit", "take"), "show(num_rows), or LIMIT in the statement"),
    **dict.fromkeys(("filter", "where", "select", "sort", "sort_by", "order_by"), _IN_QUERY),
    **dict.fromkeys(("group_by", "groupby", "groupBy", "agg", "join"), _IN_QUERY),
    **dict.fromkeys(("df", "fetchdf", "toPandas", "to_df"), "to_pandas()"),
    **dict.fromkeys(("pl",), "to_polars()"),
    **dict.fromkeys(("arrow", "fetch_arrow_table", "to_arrow_table"), "to_arrow()"),
    "to_pyarrow_table": "to_arrow()",
    **dict.fromkeys(("columns", "description", "dtypes"), "schema"),
    **dict.fromkeys(("num_rows", "count"), "to_arrow().num_rows"),
    **dict.fromkeys(
        ("read_next_batch_with_custom_metadata", "iter_batches_with_custom_metadata"),
        "to_reader(), which is a pyarrow.RecordBatchReader",
    ),
    **dict.fromkeys(("write_parquet", "to_parquet"), "to_polars().write_parquet(path)"),
    **dict.fromkeys(("write_csv", "to_csv"), "to_pandas().to_csv(path)"),
    "to_pydict": "to_arrow().to_pydict()",
    **dict.fromkeys(("shape", "size", "height"), "to_arrow().shape"),
    **dict.fromkeys(("column_names", "names", "fields", "types", "printSchema"), "schema"),
    **dict.fromkeys(("lazy", "toDF"), "to_polars()"),
    **dict.fromkeys(
        ("fetch_record_batch", "fetch_arrow_reader", "to_arrow_reader"),
        "to_reader()",
    ),
    **dict.fromkeys(
        ("write", "write_delta", "save", "insert_into"), "deltalog.write_deltalake(location, rows)"
    ),
    **dict.fromkeys(("execute", "sql", "query"), "deltalog.sql(query, t=rows)"),
    "explain": "EXPLAIN in the statement",
}
"""What the results of other libraries have under these names."""


@called_first(
    *("to_reader", "to_table", "to_arrow", "to_pandas", "to_polars", "to_duckdb", "to_pylist")
)
@suggests_arguments
class SqlResult(SimilarNames, NoSequence, OpenableRows):
    """The rows of a statement, and the numbers of rows and files that it changed.

    The rows are a stream: they can be read once, either all together or batch by batch. A notebook
    that displays the first rows does not consume them, and neither does `show`. The result has the
    methods of `pyarrow.RecordBatchReader`, and is accepted where rows are: by `write_deltalake`,
    `merge`, and libraries that read Arrow streams. So a `for` loop over it has batches of rows, not
    rows: loop over `to_pylist()` for dictionaries, or over a cursor for tuples.

    Attributes:
        metrics: the numbers of changed rows and files, under the names in the operation's result;
            None if the statement changes nothing.
        num_affected_rows: the number of changed rows; None if it is unknown.

    Args:
        rows: a table, or any object that streams Arrow batches; None if there are no rows.
        statement: the SQL of the statement.
        metrics: see the attribute.
        num_affected_rows: see the attribute.
    """

    _meant = _MEANT
    _internal = frozenset({"opened"})
    _frames = "the statement, or to_polars() or to_pandas()"
    _counted = "to_arrow().num_rows"
    _items = "to_pandas() for a dataframe, to_arrow() for columns, or to_pylist() for rows"

    def __init__(
        self,
        rows: Any,
        statement: str,
        *,
        metrics: Mapping[str, Any] | None = None,
        num_affected_rows: int | None = None,
    ) -> None:
        self.metrics = metrics
        self.num_affected_rows = num_affected_rows
        self._statement = statement
        self._reader: pa.RecordBatchReader | None = open_batches(
            pa.table({}) if rows is None else rows
        )
        self._schema: pa.Schema = self._reader.schema
        self._ahead: list[pa.RecordBatch] = []
        self._is_ended = False

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of record batches.

        Raises:
            InvalidInputError: the rows were already read.
        """
        reader, ahead = self._left(), self._ahead
        self._reader, self._ahead = None, []
        if not ahead:
            return reader
        return pa.RecordBatchReader.from_batches(self._schema, chain(ahead, reader))

    def opened(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of record batches: see `to_reader`."""
        return self.to_reader()

    def to_arrow(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        return self.to_reader().read_all()

    def to_table(self) -> pa.Table:
        """Return the rows as a pyarrow Table: see `to_arrow`."""
        return self.to_arrow()

    def to_pandas(self, dtype_backend: DtypeBackend | None = None, **options: Any) -> pd.DataFrame:
        """Return the rows as a pandas dataframe.

        Args:
            dtype_backend: see `DeltaTable.to_pandas`.
            options: options of `pyarrow.Table.to_pandas`.

        Raises:
            InvalidInputError: the rows were already read, or pandas cannot represent a value.
        """
        require_library("pandas")
        check_frame_options(self, options)
        return to_frame(self.to_arrow(), dtype_backend, **options)

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars dataframe."""
        frame: pl.DataFrame = require_library("polars").from_arrow(self.to_arrow())
        return frame

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return the rows as a DuckDB relation, by default of a new in-memory connection."""
        return duckdb_relation(self.to_arrow(), connection)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries.

        Raises:
            InvalidInputError: the rows were already read, or Python cannot represent a value.
        """
        found = self.to_arrow()
        return [dict(zip(found.column_names, row, strict=True)) for row in rows_of(found)]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows batch by batch."""
        return iter(self)

    def show(self, num_rows: int = _SHOWN_ROWS) -> None:
        """Print the first rows as a text table, without consuming them.

        Args:
            num_rows: the number of rows.
        """
        if num_rows < 0:
            raise InvalidInputError(f"show: expected a number of rows, found {num_rows!r}")
        print(self._text(num_rows))  # noqa: T201  # its purpose

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows batch by batch; `to_pylist()` has single rows."""
        self._left()
        return self._batches()

    def __next__(self) -> pa.RecordBatch:
        """Return the next batch of rows, as `next` of a `pyarrow.RecordBatchReader` does."""
        return self.read_next_batch()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                yield self.read_next_batch()
            except StopIteration:
                return

    # The other methods of `pyarrow.RecordBatchReader`

    def read_all(self) -> pa.Table:
        """Return the rows that were not read yet as a pyarrow Table."""
        return self.to_arrow()

    def read_pandas(self, **options: Any) -> pd.DataFrame:
        """Return the rows that were not read yet as a pandas dataframe."""
        return self.to_pandas(**options)

    def read_next_batch(self) -> pa.RecordBatch:
        """Return the next batch; raise StopIteration after the last."""
        if self._is_ended:
            raise StopIteration
        reader = self._left()
        if self._ahead:
            return self._ahead.pop(0)
        try:
            return reader.read_next_batch()
        except StopIteration:
            self._reader, self._is_ended = None, True
            raise

    def cast(self, target_schema: pa.Schema) -> pa.RecordBatchReader:
        """Return the rows as a stream of record batches of another schema."""
        return self.to_reader().cast(target_schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream in Arrow's C interface."""
        found: Any = self.to_reader()
        stream: object = found.__arrow_c_stream__(requested_schema)
        return stream

    def _export_to_c(self, out_ptr: int) -> None:
        """Export the rows as pyarrow's readers do; older libraries call this method."""
        found: Any = self.to_reader()
        found._export_to_c(out_ptr)  # noqa: SLF001  # the name that these libraries call

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Raise an error, because a stream of rows cannot be pickled or copied."""
        raise WrongCallError("a SqlResult cannot be pickled or copied: use its to_arrow()")

    def close(self) -> None:
        """Release the resources of the rows that were not read."""
        if self._reader is not None:
            self.to_reader().close()

    def __enter__(self) -> Self:
        """Return this object; `close` is called at the end of the `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Call `close`."""
        self.close()

    def _left(self) -> pa.RecordBatchReader:
        if self._reader is None:
            raise InvalidInputError(
                f"cannot read the rows of {self._statement!r} again: they were already read; run "
                "the statement again, or store the result of to_arrow()"
            )
        return self._reader

    def __repr__(self) -> str:
        """Return a text table of the first rows."""
        return self._text(_SHOWN_ROWS)

    def _text(self, num_rows: int) -> str:
        head, more = self._head(num_rows)
        if head is None:
            return f"SqlResult({self._statement!r}, rows already read)"
        lines = [self._sentence() or _text_table(head), *(["…"] if more else [])]
        if facts := details(self.metrics or {}):
            lines.append(printable(", ".join(f"{name}: {fact}" for name, fact in facts.items())))
        return "\n".join(lines)

    def _sentence(self) -> str:
        """Return what the statement changed, which its rows contain, too; "" for other rows."""
        sentence = outcome(self.metrics or {})
        verb = self._statement.split(maxsplit=1)[0].upper() if sentence else ""
        return f"{verb}: {sentence}" if verb.isalpha() else sentence

    def _repr_html_(self) -> str:
        """Return an HTML table of the first rows, and the numbers of changed rows and files."""
        head, more = self._head(_SHOWN_ROWS)
        if head is None:
            return card(repr(self))
        pieces = []
        if head.num_columns:
            rows = ([cell_of_row(one) for one in row] for row in readable_tuples(head))
            pieces.append(grid(rows, head.column_names))
        if more:
            pieces.append(plain(f"the first {counted(head.num_rows, 'row')}"))
        if self.metrics:
            facts = details(self.metrics)
            if sentence := self._sentence():
                return card(sentence, details_of(facts))
            pieces.append(grid(facts.items()))
        return card("" if pieces else "done", *pieces)

    def _head(self, num_rows: int) -> tuple[pa.Table | None, bool]:
        """Return the first rows without consuming them, and whether there are further rows."""
        if self._reader is None:
            return None, False
        while sum(batch.num_rows for batch in self._ahead) <= num_rows:
            try:
                self._ahead.append(self._reader.read_next_batch())
            except StopIteration:
                break
        rows = pa.Table.from_batches(self._ahead, self._schema)
        return rows.slice(0, num_rows), rows.num_rows > num_rows


def rows_of(rows: pa.Table | pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Yield rows as tuples of Python values. Several columns may have the same name.

    Raises:
        InvalidInputError: Python cannot represent a value.
    """
    pairs = zip(rows.schema.names, rows.columns, strict=True)
    advice = "read the rows as Arrow data, or as strings with CAST(… AS STRING)"
    columns = (python_values(column, f"column {name!r}", advice) for name, column in pairs)
    return zip(*columns, strict=True)


def _text_table(rows: pa.Table) -> str:
    names = rows.column_names
    if not names:
        return "done"
    cells = [[cell_of_row(one) for one in row] for row in readable_tuples(rows)]
    if len(names) == len(cells) == 1:  # one cell, for example the lines of SHOW CREATE TABLE
        (shown_name,), ((cell,),) = map(printable, names), cells
        width = max(len(shown_name), *map(len, cell.split("\n")))
        return "\n".join([shown_name, "-" * width, printable_lines(cell)])
    lines = [list(map(printable, line)) for line in (names, *cells)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(names))]
    shown = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([shown[0], "  ".join("-" * width for width in widths), *shown[1:]])
