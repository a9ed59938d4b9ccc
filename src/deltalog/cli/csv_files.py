"""Opening CSV files, and rows whose columns have types that the user names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.escaping import name_key
from deltalog._util.kernels import pc
from deltalog.cli.csv_text import fault_of_header, fault_of_quotes, first_record
from deltalog.data.write.fit import Fit
from deltalog.data.write.source import RereadableRows, open_batches
from deltalog.errors import InvalidInputError
from deltalog.schema import StructType, from_arrow_schema, to_arrow_schema
from deltalog.schema.types import BINARY, VOID, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from deltalog.schema import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvForm:
    """What a user says about a CSV file.

    Args:
        delimiter: what separates values; None means a comma, if no other sign is likely.
        has_header: whether the first line has the names of the columns.
    """

    delimiter: str | None = None
    has_header: bool = True

    @property
    def separator(self) -> str:
        """What separates values."""
        return self.delimiter or ","


_CHANGED: Final = r"^\s*(?:[+-]?0[0-9xX]|\+[0-9]+\s*$)"
"""Text that a number would not keep: leading zeros, a plus sign of an integer, hexadecimal."""
_LONG: Final = r"^\s*-?[0-9]{17,}\s*$"
"""An integer that a double may not keep."""


def open_csv(path: Path, form: CsvForm, known: Collection[str], names: list[str]) -> Any:
    """Return a CSV file, or a directory of CSV files, as a dataset of pyarrow.

    Columns are strings if Arrow's types would change values: those that get types later, and those
    with values such as 00705, which Arrow reads as a number.

    Args:
        path: the file.
        form: its form.
        known: columns that get types later, as `name_key` folds names.
        names: the names of the columns; empty means those in the first line.

    Raises:
        pyarrow.ArrowInvalid: the file is not valid.

    Cost: one pass over the columns of numbers that get no types later.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415, TID251  # reads a file of the user, only here
    from pyarrow import csv  # noqa: PLC0415  # only this function needs it

    # Without this option, Arrow rejects values with line breaks in files of several blocks.
    parse = csv.ParseOptions(delimiter=form.separator, newlines_in_values=True)

    def opened(strings: Collection[str]) -> Any:
        # Only an empty cell without quotes is NULL.
        convert = csv.ConvertOptions(
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            column_types=dict.fromkeys(strings, pa.string()),
        )
        read = csv.ReadOptions(column_names=names or None)
        return ds.dataset(
            path,
            format=ds.CsvFileFormat(
                parse_options=parse, convert_options=convert, read_options=read
            ),
        )

    found = opened(())
    strings = {name for name in found.schema.names if name_key(name) in known}
    others = [field for field in found.schema if field.name not in strings]
    # Delta has no type for times of day.
    strings |= {field.name for field in others if pa.types.is_time(field.type)}
    numbers = {field.name: field.type for field in others if _is_number(field.type)}
    if numbers:
        strings |= _changed(opened(numbers), numbers)
    return opened(strings) if strings else found


def _is_number(kind: Any) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _changed(texts: Any, numbers: Mapping[str, Any]) -> set[str]:
    """Return the columns with a value that a number would not keep.

    Args:
        texts: a dataset, in which the columns are strings.
        numbers: name of a column → the type of number that Arrow chooses.
    """
    patterns = {
        name: _CHANGED if pa.types.is_integer(kind) else f"{_CHANGED}|{_LONG}"
        for name, kind in numbers.items()
    }
    found: set[str] = set()
    for batch in texts.to_batches(columns=list(numbers)):
        for name in numbers.keys() - found:
            if pc.any(pc.match_substring_regex(batch.column(name), patterns[name])).as_py():
                found.add(name)
    return found


def fault_of_text(path: Path, form: CsvForm) -> str:
    """Return what is wrong with a CSV file, but not for Arrow; empty if nothing is."""
    if fault := fault_of_quotes(path, form.separator):
        return fault
    line, names = first_record(path, form.separator)
    return fault_of_header(line, names, form.separator) if form.has_header else ""


def names_by_position(
    path: Path, shown: str, form: CsvForm, target: StructType | None
) -> list[str]:
    """Return the names of the columns of a file without a header.

    Args:
        path: the file.
        shown: what it is called in errors.
        form: its form.
        target: the columns of the table; None gives the names `col1`, `col2` and so on.

    Raises:
        InvalidInputError: the table has another number of columns.
    """
    _, values = first_record(path, form.separator)
    if target is None:
        return [f"col{number}" for number in range(1, len(values) + 1)]
    if values and len(values) != len(target.names):
        raise InvalidInputError(
            f"cannot read {shown} as csv with --no-header: expected {len(target.names)} "
            f"values in its first line, as the table has the columns {', '.join(target.names)}, "
            f"found {len(values)}; add a line with the names of the columns that the file has"
        )
    return list(target.names)


def is_of_text(kind: DataType) -> bool:
    """Whether a write converts strings to a type."""
    return isinstance(kind, PrimitiveType) and kind not in {BINARY, VOID}


class TypedRows(RereadableRows):
    """Rows whose columns are converted to types that the user names.

    Args:
        rows: opens the rows.
        types: the name of a column → its type.

    Raises:
        SchemaMismatchError: a value does not have the type (raised on reading).
    """

    __slots__ = ("_rows", "_types")

    def __init__(self, rows: Callable[[], Any], types: Mapping[str, DataType]) -> None:
        self._rows = rows
        self._types = types

    def opened(self) -> pa.RecordBatchReader:
        """Return the converted rows."""
        reader = open_batches(self._rows())
        found = from_arrow_schema(reader.schema)
        schema = StructType(
            [replace(field, type=self._types.get(field.name, field.type)) for field in found]
        )
        fit = Fit(reader.schema, schema, time_zone="UTC", casts=True)
        fit.counts_rows = True
        arrow = to_arrow_schema(schema)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in reader:
                yield pa.RecordBatch.from_arrays(list(fit.apply(batch).values()), schema=arrow)

        return pa.RecordBatchReader.from_batches(arrow, batches())
