"""What is wrong with a file of rows: its line, what is expected there, and what to do.

Arrow counts the rows of a block, or counts none. So a file that Arrow cannot read is read again
here, up to its first fault.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from typing import TYPE_CHECKING, Any, Final

from deltalog._util.json import dumps, iter_values
from deltalog.cli.csv_text import chunks_of, opened, sign_of
from deltalog.errors import MalformedLogError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BLOCK_BYTES: Final = 1 << 20
_IS_LONG: Final = "straddling object"
_MOST_LETTERS: Final = 60
_MAGIC: Final = (b"PAR1", b"PARE")
_COMPRESSED: Final = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\xfd7zXZ")
_IS_COMPRESSED: Final = (
    "it is compressed; decompress it, as in gunzip -c FILE | deltalog write TABLE - --from csv"
)
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CHANGED: Final = re.compile(r"Column\((.*)\) changed from (\w+) to (\w+) in row \d+")
_UNFIT: Final = re.compile(r"decimal\d+\((\d+), (\d+)\): (\S+) requires (precision|scale)")
_NUM_VALUES: Final = re.compile(r"Expected (\d+) columns, got \d+")
_CONVERTED: Final = re.compile(
    r"(?:In CSV column #(\d+): )?(?:Row #\d+: )?"
    r"CSV conversion error to (.+?): invalid value '(.*)'",
    re.DOTALL,
)
_PREFIX: Final = re.compile(r"^.*?(?:input source '[^']*'|<Buffer>): |\bInvalid: ", re.DOTALL)
"""What Arrow says before the reason why it cannot read a file."""


def fault_of_encoding(path: Path) -> str:
    """Return what is wrong with the encoding of a file of text; empty if it is in UTF-8.

    Cost: reads the file.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, is_start = 1, True
    for chunk in chunks_of(path):
        if is_start and chunk.startswith(_COMPRESSED):
            return _IS_COMPRESSED
        if is_start and chunk.startswith(_UTF_16):
            return "expected UTF-8, found UTF-16; iconv -f UTF-16 -t UTF-8 FILE converts it"
        held = decoder.getstate()[0]
        try:
            decoder.decode(chunk)
        except UnicodeDecodeError as error:
            data = held + chunk
            line += data.count(b"\n", 0, error.start)
            return _not_utf_8(line, data[error.start])
        line, is_start = line + chunk.count(b"\n"), False
    held = decoder.getstate()[0]
    return _not_utf_8(line, held[0]) if held else ""


def _not_utf_8(line: int, byte: int) -> str:
    return (
        f"line {line}: expected UTF-8, found the byte 0x{byte:02x}; convert the file from its "
        "encoding, as in iconv -f LATIN1 -t UTF-8 FILE"
    )


def fault_of_parquet(path: Path, error: Exception) -> str:
    """Return why Arrow cannot read a Parquet file."""
    if path.is_file():
        start, end = _ends_of(path)
        begins, ends = start in _MAGIC, end in _MAGIC
        if begins and not ends:
            return "it begins as a Parquet file, but its end is missing; copy or write it again"
        if not begins:
            return (
                f"expected a Parquet file, which begins with {_MAGIC[0]!r}, found {start!r}; "
                "--from csv or json reads a file of this format, whatever its name"
            )
    return f"{reason_of(error)}; if the file is damaged, copy or write it again"


def _ends_of(path: Path) -> tuple[bytes, bytes]:
    """Return the first and the last bytes of a file."""
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(max(path.stat().st_size - 4, 0))
        return start, file.read(4)


def fault_of_json(path: Path, error: Exception) -> str:
    """Return why Arrow cannot read a file of JSON, with the line."""
    text = reason_of(error)
    if text.startswith("Empty JSON"):
        return "it is empty; expected one JSON object per line"
    if _IS_LONG in text:
        with path.open("rb") as file:
            long = (line for line, row in enumerate(file, 1) if len(row) > _BLOCK_BYTES)
            return _fault_of_size(next(long, None), "")
    if unfit := _UNFIT.search(text):
        most = f"{unfit[2]} digits after the point" if unfit[4] == "scale" else f"{unfit[1]} digits"
        return (
            f"expected numbers of at most {most}, as in the table, found {unfit[3]}; correct the "
            "value, or write to a column of another type"
        )
    changed = _CHANGED.search(text)
    try:
        for line, value in _values(path):
            if not isinstance(value, dict):
                return (
                    f"line {line}: expected a JSON object, such as "
                    f'{{"column": 1}}, found {_shown_json(value)}; correct or remove the line'
                )
            if changed and (fault := _fault_of_kind(value, changed)):
                return f"line {line}, {fault}"
    except MalformedLogError as fault:
        return f"{fault}; expected one JSON object per line: correct or remove the line"
    except UnicodeDecodeError:
        return text
    return text


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    with opened(path) as file:
        yield from iter_values(file)


def _fault_of_kind(row: dict[str, Any], changed: re.Match[str]) -> str:
    """Return that a value has another type than the others of its column; empty if it has not."""
    steps = changed[1].removeprefix("/").split("/")
    for value in _at(row, steps):
        if _KINDS.get(type(value)) == changed[3]:
            name = ".".join(step for step in steps if step != "[]")
            article = "an" if changed[2][0] in "ao" else "a"
            return (
                f"column {name!r}: expected {article} {changed[2]}, as in the lines before or in "
                f"the table, found the {changed[3]} {_shown_json(value)}; write all values of the "
                "column with the same type"
            )
    return ""


_KINDS: Final = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""Type of a value → what Arrow calls the type."""


def _at(value: Any, steps: list[str]) -> Iterator[Any]:
    """Yield the values at a path, whose step `[]` means each item of an array."""
    if not steps:
        yield value
    elif steps[0] == "[]":
        for item in value if isinstance(value, list) else ():
            yield from _at(item, steps[1:])
    elif isinstance(value, dict):
        yield from _at(value.get(steps[0]), steps[1:])


def fault_of_csv(path: Path, error: Exception, delimiter: str, names: Sequence[str] = ()) -> str:
    """Return why Arrow cannot read a file of CSV, with the line.

    Args:
        path: the file.
        error: what Arrow says.
        delimiter: what separates the values.
        names: the names of the columns, if the file has no header.
    """
    text = reason_of(error)
    if "Empty CSV" in text:
        return "it is empty; expected a first line with the names of the columns"
    if _IS_LONG in text:
        return _fault_of_size(_long_record(path, delimiter), ", or close its quotes")
    wanted, converted = _NUM_VALUES.search(text), _CONVERTED.search(text)
    if not wanted and not converted:
        return text
    for line, row in _records(path, delimiter):
        if row and wanted and len(row) != int(wanted[1]):
            return _fault_of_length(line, row, int(wanted[1]), delimiter)
        fault = _fault_of_value(names, row, converted) if names and converted else ""
        if fault:
            return f"line {line}, {fault}"
        names = names or row
    return text


def _records(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not blank, with the number of its first line.

    A record with a very long value is empty, and the last one.
    """
    with opened(path) as file:
        text = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
        reader = csv.reader(text, delimiter=delimiter)
        line = 1
        try:
            for row in reader:
                if row:
                    yield line, row
                line = reader.line_num + 1
        except csv.Error:
            yield line, []


def _long_record(path: Path, delimiter: str) -> int | None:
    """Return the first line of the first record that is longer than a block of Arrow."""
    limit = csv.field_size_limit(_BLOCK_BYTES)
    try:
        records = _records(path, delimiter)
        return next(
            (line for line, row in records if not row or sum(map(len, row)) > _BLOCK_BYTES), None
        )
    finally:
        csv.field_size_limit(limit)


def _fault_of_size(line: int | None, advice: str) -> str:
    place = "a line" if line is None else f"line {line}"
    return (
        f"{place}: expected a row of at most 1 MiB, found a longer one; write it in Python with "
        f"write_deltalake{advice}"
    )


def _fault_of_length(line: int, row: list[str], wanted: int, delimiter: str) -> str:
    shown = delimiter.join(row)
    shown = repr(shown if len(shown) <= _MOST_LETTERS else shown[: _MOST_LETTERS - 3] + "...")
    values = "1 value" if wanted == 1 else f"{wanted} values"
    return (
        f"line {line}: expected {values}, as in the first line, found {len(row)}: {shown}; correct "
        f"the line; a value that contains {sign_of(delimiter)} or a line break needs double quotes"
    )


def _fault_of_value(names: Sequence[str], row: list[str], converted: re.Match[str]) -> str:
    """Return that a value does not have the type of its column; empty if it is another value."""
    numbers = [int(converted[1])] if converted[1] else range(len(row))
    for number in numbers:
        if number < min(len(row), len(names)) and row[number] == converted[3]:
            return (
                f"column {names[number]!r}: expected the type {converted[2]}, as in the first "
                f"lines, found {converted[3]!r}; correct the value, or add "
                f"--type {names[number]}=string"
            )
    return ""


def _shown_json(value: Any) -> str:
    text = dumps(value).decode()
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."


def reason_of(error: Exception) -> str:
    """Return the reason that Arrow states, without its description of what it did."""
    return _PREFIX.sub("", str(error)).strip().rstrip(".")
