"""`deltalog write`: write the rows of a file to a table.

This module opens CSV, JSON and Parquet files, and explains what is wrong with a file.
"""

from __future__ import annotations

import re
import shutil
import sys
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

import pyarrow as pa
import typer

from deltalog._util.escaping import name_key, printable
from deltalog._util.readable import counted
from deltalog._util.similar_names import similar_or_known
from deltalog.cli.application import (
    As,
    NewestLocation,
    Options,
    OutputFormat,
    command,
    open_table,
    print_record,
    print_text,
    storage_options,
)
from deltalog.cli.csv_files import (
    CsvForm,
    TypedRows,
    fault_of_text,
    is_of_text,
    names_by_position,
    open_csv,
)
from deltalog.cli.csv_text import doubt_of_header, first_record, opened
from deltalog.cli.unreadable import (
    fault_of_csv,
    fault_of_encoding,
    fault_of_json,
    fault_of_parquet,
    reason_of,
)
from deltalog.errors import DeltaError, InvalidInputError, SchemaMismatchError, TableNotFoundError
from deltalog.schema.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Field, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deltalog.schema import DataType, StructType


class SourceKind(StrEnum):
    """The formats of files that `deltalog write` reads."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class WriteMode(StrEnum):
    """What `deltalog write` does if the table exists."""

    ERROR = "error"
    APPEND = "append"
    OVERWRITE = "overwrite"
    IGNORE = "ignore"


class SchemaMode(StrEnum):
    """How `deltalog write` changes the schema of an existing table."""

    MERGE = "merge"
    OVERWRITE = "overwrite"


@command("write")
def write(  # noqa: PLR0913, PLR0917  # typer's signature: each parameter is an option
    table: NewestLocation,
    file: Annotated[str, typer.Argument(help="A CSV, JSON or Parquet file. - reads stdin.")],
    mode: Annotated[
        WriteMode, typer.Option("--mode", "-m", help="What to do if the table exists.")
    ] = WriteMode.ERROR,
    partition_by: Annotated[
        str | None, typer.Option("--partition-by", "-p", help="Columns, with commas.")
    ] = None,
    schema_mode: Annotated[
        SchemaMode | None,
        typer.Option("--schema-mode", help="Add new columns, or replace the schema."),
    ] = None,
    kind: Annotated[
        SourceKind | None, typer.Option("--from", help="The file's format; default: its suffix.")
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            "--delimiter",
            "-d",
            metavar="<sign>",
            help="What separates the values of a CSV file, such as ; or tab; default: a comma.",
        ),
    ] = None,
    no_header: Annotated[  # noqa: FBT002  # typer's signature
        bool,
        typer.Option(
            "--no-header",
            help="The first line of a CSV file is a row; columns are the table's, or col1, col2 …",
        ),
    ] = False,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="<column=type>",
            help="The type of a new column, such as zip=string; may be repeated.",
        ),
    ] = None,
    option: Options = None,
    form: As = OutputFormat.TABLE,
) -> None:
    """Write the rows of a file to a new or an existing table.

    A JSON file has one object per line.

    Example: deltalog write flights delays.csv --mode append
    """
    from deltalog.table.write import write_by  # noqa: PLC0415  # only this command writes rows

    _check_order(table, file)
    csv_form = CsvForm(delimiter=delimiter, has_header=not no_header)
    source = RowsFile.of(file, kind, csv_form, _types_of(types))
    options: Any = {
        "mode": mode.value,
        "schema_mode": None if schema_mode is None else schema_mode.value,
    }
    with source.rows(_target(table, option, options)) as rows:
        committed = write_by(
            None,
            table,
            rows,
            partition_by=None if partition_by is None else partition_by.split(","),
            storage_options=storage_options(option),
            **options,
        )
    if committed is None:  # the table exists, and the mode is ignore
        version = open_table(table, option).version()
        if form is OutputFormat.TABLE:
            print_text(f"nothing written: the table exists, at version {version}")
        else:
            print_record({"version": version, "rows": 0}, form)
        return
    rows_written = int(committed.metrics.get("numOutputRows", 0))
    if form is not OutputFormat.TABLE:
        print_record({"version": committed.version, "rows": rows_written}, form)
        return
    print_text(f"{counted(rows_written, 'row')} written as version {committed.version}")
    if committed.version == 0 or schema_mode is SchemaMode.OVERWRITE:
        print_text(f"  columns: {_columns_in_words(committed.snapshot.configuration.schema)}")


_MOST_COLUMNS: Final = 20


def _columns_in_words(schema: StructType) -> str:
    """Return names and types of the columns, so that nobody is surprised by a type."""
    shown = [f"{field.name} {field.type}" for field in schema.fields[:_MOST_COLUMNS]]
    more = len(schema.fields) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


def _types_of(texts: list[str] | None) -> dict[str, DataType]:
    """Return the types of `--type column=type`, by the names of columns.

    Raises:
        InvalidInputError: there is no such type, or a column has two types.
    """
    found: dict[str, DataType] = {}
    for text in texts or ():
        name, equals, kind = text.rpartition("=")  # no type contains the sign, but names may
        if not equals or not name or not kind:
            raise InvalidInputError(
                f"cannot use --type {text!r}: expected column=type, as in --type zip=string"
            )
        if name in found:
            raise InvalidInputError(f"cannot use --type {text!r}: {name!r} has a type already")
        try:
            found[name] = Field(name, kind).type
        except InvalidInputError as error:
            raise InvalidInputError(f"cannot use --type {text!r}: {error}") from error
    return found


def _check_order(table: str, file: str) -> None:
    """Raise if the file is given before the table."""
    is_source = _suffix(table) in _SUFFIXES and Path(table).is_file()
    if is_source and file != "-" and not Path(file).is_file():
        raise InvalidInputError(
            f"cannot write to {table!r}: it is a file. The table is the first argument: "
            f"deltalog write {file} {table}"
        )


def _target(table: str, option: list[str] | None, options: dict[str, Any]) -> StructType | None:
    """Return the schema of an existing table, unless the write replaces it."""
    if options["schema_mode"] == "overwrite":
        return None
    try:
        return open_table(table, option).schema()
    except TableNotFoundError:
        return None


# --- the file with the rows


_TAB: Final = "\t"
_SUFFIXES: Final = {
    "csv": (SourceKind.CSV, ","),
    "tsv": (SourceKind.CSV, _TAB),
    "json": (SourceKind.JSON, ""),
    "jsonl": (SourceKind.JSON, ""),
    "ndjson": (SourceKind.JSON, ""),
    "parquet": (SourceKind.PARQUET, ""),
}
"""Suffix of a file's name → the format, and what separates the values of a row."""
_BY_PANDAS: Final = "write its sheet to a CSV file, or read it with pandas.read_excel in Python"
_OTHERWISE: Final = {
    **dict.fromkeys(("xlsx", "xlsm", "xls", "ods"), _BY_PANDAS),
    **dict.fromkeys(
        ("gz", "bz2", "xz", "zst"),
        "decompress it, as in gunzip -c FILE | deltalog write TABLE - --from csv",
    ),
    **dict.fromkeys(
        ("arrow", "arrows", "feather", "ipc", "orc", "avro"),
        "read it in Python, and pass the rows to write_deltalake",
    ),
}
"""Suffix of a file that this command does not read → what to do."""
_SEPARATORS: Final = {",": "','", ";": "';'", _TAB: "tab", "|": "'|'"}
"""What may separate values → how to write it in a shell."""
_HEADER_BYTES: Final = 1 << 16


def _suffix(file: str) -> str:
    return file.rpartition(".")[2].lower()


def _checked_delimiter(delimiter: str, file: str, kind: SourceKind) -> str:
    if kind is not SourceKind.CSV:
        raise InvalidInputError(
            f"cannot read {file!r} as {kind.value} with --delimiter: only CSV files have delimiters"
        )
    found = {"tab": _TAB, r"\t": _TAB}.get(delimiter.lower(), delimiter)
    if len(found) != 1 or not found.isascii():
        raise InvalidInputError(
            f"cannot use --delimiter {found!r}: expected one ASCII character, or tab"
        )
    return found


class RowsFile:
    """A file of rows, or standard input.

    Args:
        file: the path of the file; `-` is standard input.
        kind: the format of the file.
        form: what the user says about a CSV file.
        types: the name of a column → the type that the user gives it.
    """

    def __init__(
        self, file: str, kind: SourceKind, form: CsvForm, types: dict[str, DataType]
    ) -> None:
        self._file = file
        self._kind = kind
        self._form = form
        self._types = types
        self._names: list[str] = []  # of a file without a header

    @classmethod
    def of(
        cls, file: str, kind: SourceKind | None, form: CsvForm, types: dict[str, DataType]
    ) -> RowsFile:
        """Return the file with its format, which its suffix tells if it is not given.

        Raises:
            InvalidInputError: the format is unknown, or the delimiter is not one character.
        """
        suffix = _suffix(file)
        known, usual = _SUFFIXES.get(suffix, (None, ""))
        if kind is None and known is None:
            advice = "its format is unknown; add --from csv, json or parquet"
            if Path(file).is_dir():
                advice = (
                    "it is a directory; deltalog convert makes a table of one with Parquet files, "
                    "and deltalog sql copies rows of a Delta table"
                )
            if suffix in _OTHERWISE:
                advice = f"files of the format {suffix} are not supported; {_OTHERWISE[suffix]}"
            raise InvalidInputError(f"cannot write {file!r}: {advice}")
        chosen = kind or known or SourceKind.CSV
        if types and chosen is SourceKind.PARQUET:
            raise InvalidInputError(
                f"cannot read {file!r} as parquet with --type: a Parquet file has types"
            )
        if not form.has_header and chosen is not SourceKind.CSV:
            raise InvalidInputError(
                f"cannot read {file!r} as {chosen.value} with --no-header: only CSV files have "
                "headers"
            )
        delimiter = form.delimiter
        if delimiter is not None:
            delimiter = _checked_delimiter(delimiter, file, chosen)
        elif usual == _TAB:
            delimiter = usual
        return cls(file, chosen, replace(form, delimiter=delimiter), types)

    @contextmanager
    def rows(self, target: StructType | None) -> Iterator[Any]:
        """Yield the rows of the file, which are read in batches.

        Args:
            target: the columns of the table to which the rows are written; None if it does not
                exist.

        Raises:
            InvalidInputError: the file does not exist, or is not of this format.
        """
        with TemporaryDirectory() as directory:
            path = Path(self._file)
            if self._file == "-":
                path = _copied(sys.stdin.buffer, directory)
            elif path.is_fifo():  # Arrow refuses a pipe, such as <(command) of a shell
                with path.open("rb") as pipe:
                    path = _copied(pipe, directory)
            if not path.exists():
                raise InvalidInputError(f"cannot read {self._file!r}: there is no such file")
            try:
                found = self._opened(path, target)
            except (pa.ArrowInvalid, OSError) as error:
                raise self._unreadable(path, error) from error
            try:
                yield found
            except (pa.ArrowInvalid, OSError) as error:
                # An error of Arrow about the content of a file has no number.
                if isinstance(error, OSError) and (
                    isinstance(error, DeltaError) or error.errno is not None
                ):
                    raise
                raise self._unreadable(path, error) from error
            except SchemaMismatchError as error:
                has_header = self._kind is SourceKind.CSV and self._form.has_header
                header = ", without its header" if has_header else ""
                text, of_data, _ = str(error).partition(" of the data")
                if not of_data:
                    raise
                raise error.with_message(f"{text} of {self._name}{header}") from error

    def _opened(self, path: Path, target: StructType | None) -> Any:
        """Open a file. Its columns in the table are strings if Arrow's types would change values.

        Arrow would read "00705" as a number, and "2024-01-01" in JSON as a timestamp. The write
        converts the strings to the types of the table.
        """
        known = {} if target is None else {name_key(field.name): field.type for field in target}
        kinds = known | {name_key(name): kind for name, kind in self._types.items()}
        match self._kind:
            case SourceKind.PARQUET:
                import pyarrow.dataset as ds  # noqa: PLC0415, TID251  # reads a file of the user

                form: Any = "parquet"
                return ds.dataset(path, format=form)
            case SourceKind.CSV:
                self._check_csv(path, target)
                found = open_csv(path, self._form, kinds, self._names)
                return self._typed(found.schema.names, known, lambda: found)
            case SourceKind.JSON:
                names, opened = self._opened_json(path, kinds)
                return self._typed(names, known, opened)

    def _typed(
        self, names: list[str], known: dict[str, DataType], opened: Callable[[], Any]
    ) -> Any:
        """Return rows with the types that the user gives.

        Args:
            names: the columns of the file.
            known: folded name of a column of the table → its type.
            opened: opens the rows.

        Raises:
            InvalidInputError: the file lacks a column, or the table has it with another type.
        """
        folded = {name_key(name): name for name in names}
        types = {}
        for name, kind in self._types.items():
            key = name_key(name)
            if key not in folded:
                hint = similar_or_known(name, names, "column")
                raise InvalidInputError(
                    f"cannot use --type '{name}={kind}': {self._name} has no column {name!r}{hint}"
                )
            if known.get(key, kind) != kind:
                raise InvalidInputError(
                    f"cannot use --type '{name}={kind}': the column of the table is of type "
                    f"{known[key]}; omit it, as the values are converted to the type of the table"
                )
            if self._kind is SourceKind.CSV and not is_of_text(kind):
                raise InvalidInputError(
                    f"cannot use --type '{name}={kind}': the text of a CSV file is not converted "
                    f"to {kind}; write the rows in Python with write_deltalake"
                )
            if key not in known:
                types[folded[key]] = kind
        return TypedRows(opened, types) if types else opened()

    def _check_csv(self, path: Path, target: StructType | None) -> None:
        """Raise if the text of a CSV file, or of one in a directory, is not valid."""
        self._check_delimiter(path)
        for file in _files_of(path):
            if fault := fault_of_encoding(file) or fault_of_text(file, self._form):
                name = self._name if file == path else repr(str(file))
                raise InvalidInputError(f"cannot read {name} as csv: {fault}")
        if not self._form.has_header:
            self._names = names_by_position(path, self._name, self._form, target)
        elif target is None and path.is_file():
            _, names = first_record(path, self._form.separator)
            if doubt := doubt_of_header(names):
                typer.echo(printable(f"warning: {self._name}: {doubt}"), err=True)

    def _check_delimiter(self, path: Path) -> None:
        """Raise if the first line lacks the delimiter, but has another sign that separates values.

        A comma that the user chose is not questioned, so that a file of one column can be read.
        """
        if self._form.delimiter == ",":
            return
        chosen = self._form.separator
        line = _beginning(path).partition("\n")[0].rstrip("\r")
        if not line.replace(_TAB, "").isprintable():
            return  # compressed, or no text
        bare = re.sub(r'"[^"]*"', "", line)
        sign = next((sign for sign in _SEPARATORS if sign in bare), None)
        if sign is not None and chosen not in bare:
            lacking = {",": "comma", _TAB: "tab"}.get(chosen, repr(chosen))
            one = "--delimiter ','" if chosen == "," else "put the name in quotes,"
            raise InvalidInputError(
                f"cannot read {self._name} as csv: its first line {line[:60]!r} has no {lacking}; "
                f"add --delimiter {_SEPARATORS[sign]}, or {one} if it is one column"
            )

    def _opened_json(
        self, path: Path, known: dict[str, DataType]
    ) -> tuple[list[str], Callable[[], Any]]:
        """Return the columns of a file of JSON, and what opens its rows."""
        import pyarrow.dataset as ds  # noqa: PLC0415, TID251  # reads a file of the user
        from pyarrow import json  # noqa: PLC0415  # only this function needs it

        self._check_encoding(path)
        if _beginning(path).lstrip().startswith("["):
            raise InvalidInputError(
                f"cannot read {self._name} as json: expected one object per line, found an array; "
                "jq -c '.[]' FILE prints one item per line"
            )
        form: Any = "json"
        found = ds.dataset(path, format=form)
        types = {name: _json_type(known.get(name_key(name))) for name in found.schema.names}
        fields = [pa.field(name, one) for name, one in types.items() if one is not None]
        if not fields:
            return found.schema.names, lambda: found
        options = json.ParseOptions(explicit_schema=pa.schema(fields))
        return found.schema.names, lambda: json.open_json(path, parse_options=options)

    @property
    def _name(self) -> str:
        return "standard input" if self._file == "-" else repr(self._file)

    def _unreadable(self, path: Path, error: Exception) -> InvalidInputError:
        """Return an error with the line of the file, what was expected and found, and advice."""
        if not path.is_file() or (isinstance(error, OSError) and error.errno is not None):
            reason = reason_of(error)
        elif self._kind is SourceKind.PARQUET:
            reason = fault_of_parquet(path, error)
        elif self._kind is SourceKind.JSON:
            reason = fault_of_json(path, error)
        else:
            reason = fault_of_csv(path, error, self._form.separator, self._names)
        return InvalidInputError(f"cannot read {self._name} as {self._kind.value}: {reason}")

    def _check_encoding(self, path: Path) -> None:
        """Raise if a file is not in UTF-8: Arrow would write other bytes as strings."""
        if path.is_file() and (fault := fault_of_encoding(path)):
            raise InvalidInputError(f"cannot read {self._name} as {self._kind.value}: {fault}")


def _copied(stream: BinaryIO, directory: str) -> Path:
    path = Path(directory) / "rows"
    with path.open("wb") as copy:
        shutil.copyfileobj(stream, copy)
    return path


def _files_of(path: Path) -> list[Path]:
    """Return the file, or the files of a directory that Arrow reads."""
    if not path.is_dir():
        return [path]
    return [
        file
        for file in sorted(path.rglob("*"))
        if file.is_file()
        and not any(p.startswith((".", "_")) for p in file.relative_to(path).parts)
    ]


def _beginning(path: Path) -> str:
    """Return the beginning of a file, without a byte-order mark; empty for a directory."""
    if not path.is_file():
        return ""
    with opened(path) as file:
        data: bytes = file.read(_HEADER_BYTES)
        return data.decode("utf-8-sig", "replace")


def _json_type(kind: DataType | None) -> Any:
    """Return the type as which a column of JSON is read; None lets Arrow choose."""
    if not isinstance(kind, PrimitiveType):
        return None
    if kind.is_decimal:
        # Arrow does not check the digits before the point, but the write does.
        return pa.decimal128(38, kind.scale)
    return pa.string() if kind in {STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ} else None
