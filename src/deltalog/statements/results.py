"""The result of a statement: its rows, and the numbers of changed rows and files.

Protocol: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.cards import card, cell_of_row, grid, plain
from deltalog._util.escaping import printable, printable_lines
from deltalog._util.similar_names import NoSequence, SimilarNames
from deltalog.data.scan.rows import to_frame
from deltalog.data.write.source import open_batches
from deltalog.errors import InvalidInputError
from deltalog.schema.check import python_values, readable_tuples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd
    import polars as pl

    from deltalog.statements.statement import StatementAnswer

_SHOWN_ROWS: Final = 20
_MEANT: Final = {
    **dict.fromkeys(("fetchall", "fetchmany", "collect", "rows", "to_dicts"), "to_pylist()"),
    **dict.fromkeys(("fetchone", "first"), "to_pylist()[0]"),
    **dict.fromkeys(("show", "head", "limit"), "to_pandas(), or LIMIT in the statement"),
    **dict.fromkeys(("df", "fetchdf", "toPandas"), "to_pandas()"),
    **dict.fromkeys(("pl",), "to_polars()"),
    **dict.fromkeys(("arrow", "fetch_arrow_table", "to_arrow_table", "read_all"), "to_arrow()"),
    **dict.fromkeys(("columns", "description", "dtypes"), "schema"),
}
"""What the results of other libraries have under these names."""


class SqlResult(SimilarNames, NoSequence):
    """The rows of a statement, and the numbers of rows and files that it changed.

    The rows are a stream: they can be read once, either all together or batch by batch. A notebook
    that displays the first rows does not consume them.

    Attributes:
        metrics: the numbers of changed rows and files, under the names in the operation's result;
            None if the statement changes nothing.
        num_affected_rows: the number of changed rows; None if it is unknown.

    Args:
        answer: the rows and numbers that the statement returned.
        statement: the SQL of the statement.
    """

    _meant = _MEANT
    _counted = "to_arrow().num_rows"
    _items = "to_arrow() for columns, or to_pylist() for rows"

    def __init__(self, answer: StatementAnswer, statement: str) -> None:
        self.metrics: Mapping[str, Any] | None = answer.metrics
        self.num_affected_rows: int | None = answer.num_affected_rows
        self._statement = statement
        empty = pa.table({}) if answer.rows is None else answer.rows
        self._reader: pa.RecordBatchReader | None = open_batches(empty)
        self._schema: pa.Schema = self._reader.schema
        self._ahead: list[pa.RecordBatch] = []

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return self._schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of record batches.

        Raises:
            InvalidInputError: the rows were already read.
        """
        return pa.RecordBatchReader.from_batches(self._schema, iter(self))

    def to_arrow(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        return self.to_reader().read_all()

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame.

        Raises:
            InvalidInputError: the rows were already read, or pandas cannot represent a value.
        """
        return to_frame(self.to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars data frame."""
        import polars as pl  # noqa: PLC0415  # an optional dependency

        found = pl.from_arrow(self.to_arrow())
        assert isinstance(found, pl.DataFrame)  # noqa: S101  # because the argument is a table
        return found

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries.

        Raises:
            InvalidInputError: the rows were already read, or Python cannot represent a value.
        """
        found = self.to_arrow()
        return [dict(zip(found.column_names, row, strict=True)) for row in rows_of(found)]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a stream in Arrow's C interface."""
        found: Any = self.to_reader()
        stream: object = found.__arrow_c_stream__(requested_schema)
        return stream

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows batch by batch."""
        reader, ahead = self._reader, self._ahead
        if reader is None:
            raise InvalidInputError(
                f"cannot read the rows of {self._statement!r} again: they were already read; run "
                "the statement again, or store the result of to_arrow()"
            )
        self._reader, self._ahead = None, []
        return self._rest(reader, ahead)

    @staticmethod
    def _rest(
        reader: pa.RecordBatchReader, ahead: list[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        yield from ahead
        yield from reader

    def __repr__(self) -> str:
        """Return a text table of the first rows."""
        head, more = self._head()
        if head is None:
            return f"SqlResult({self._statement!r}, rows taken)"
        text = _text_table(head)
        if self.metrics:
            metrics = ", ".join(f"{name}: {value}" for name, value in self.metrics.items())
            text += f"\n{printable(metrics)}"
        return text + ("\n…" if more else "")

    def _repr_html_(self) -> str:
        """Return an HTML table of the first rows, and the numbers of changed rows and files."""
        head, more = self._head()
        if head is None:
            return card(repr(self))
        pieces = []
        if head.num_columns:
            rows = ([cell_of_row(one) for one in row] for row in readable_tuples(head))
            pieces.append(grid(rows, head.column_names))
        if more:
            pieces.append(plain(f"the first {head.num_rows} rows"))
        if self.metrics:
            facts = ((name, cell_of_row(value)) for name, value in self.metrics.items())
            pieces.append(grid(facts))
        return card("" if pieces else "done", *pieces)

    def _head(self) -> tuple[pa.Table | None, bool]:
        """Return the first rows without consuming them, and whether there are further rows."""
        if self._reader is None:
            return None, False
        while sum(batch.num_rows for batch in self._ahead) <= _SHOWN_ROWS:
            try:
                self._ahead.append(self._reader.read_next_batch())
            except StopIteration:
                break
        rows = pa.Table.from_batches(self._ahead, self._schema)
        return rows.slice(0, _SHOWN_ROWS), rows.num_rows > _SHOWN_ROWS


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
