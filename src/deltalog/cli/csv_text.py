"""What the text of a CSV file says, which Arrow does not: open quotes, and what the header lacks.

Arrow ends a value at the end of the file, whether or not its quotes are closed.
"""

from __future__ import annotations

import codecs
import csv
import re
from io import StringIO
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from deltalog._util.escaping import name_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_CHUNK_BYTES: Final = 1 << 20
_COMPRESSED_SUFFIXES: Final = frozenset({".gz", ".bz2", ".zst", ".lz4"})
"""Suffixes of the files that Arrow decompresses."""
_MOST_BYTES: Final = 2 << 20
"""Arrow refuses a longer row, and says so."""
_HEADER_BYTES: Final = 1 << 16
_MOST_LETTERS: Final = 40
_MOST_NAMES: Final = 5
_QUOTED: Final = rb'"[^"]*+(?:""[^"]*+)*+"'
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_YEAR: Final = re.compile(r"[12]\d{3}")
_SIGNS: Final = {",": "a comma", "\t": "a tab"}


def opened(path: Path) -> Any:
    """Open a file for reading bytes, decompressed if Arrow would decompress it."""
    is_compressed = path.suffix.lower() in _COMPRESSED_SUFFIXES
    return pa.input_stream(str(path)) if is_compressed else path.open("rb")


def chunks_of(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, decompressed if Arrow would decompress it."""
    with opened(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


def sign_of(delimiter: str) -> str:
    """Return what a delimiter is called in errors."""
    return _SIGNS.get(delimiter, repr(delimiter))


def fault_of_quotes(path: Path, delimiter: str) -> str:
    """Return which value has quotes that are not closed, or that end too early; empty if none has.

    Arrow reads both without an error: the first takes all following rows into the value.

    Args:
        path: a CSV file.
        delimiter: what separates its values.

    Cost: one pass over the bytes, by a regular expression.
    """
    if delimiter == '"':
        return ""
    sign = re.escape(delimiter.encode())
    # A quote within a value without quotes, as in 5" pipe, is a letter.
    valid = re.compile(
        rb'(?:[^"]++|(?<=[^%b\r\n])"|%b(?=[%b\r\n]))*+' % (sign, _QUOTED, sign), re.DOTALL
    )
    early = re.compile(rb"(%b)[^%b\r\n]{1,20}" % (_QUOTED, sign))
    # The text begins with the byte before the first that is not yet known to be valid.
    text, line = b"\n", 1
    for chunk in chain(_without_mark(path), (b"\n",)):
        text += chunk
        found = valid.match(text, 1)
        end = 1 if found is None else found.end()
        line += text.count(b"\n", 1, end)
        text = text[end - 1 :]
        if ended := early.match(text, 1):
            return (
                f"line {line}: expected {sign_of(delimiter)} or the end of the line after the "
                f"double quotes around a value, found {_shown(ended[0])}; a double quote within "
                f"double quotes is written twice"
            )
        if len(text) > _MOST_BYTES:
            return ""
    if len(text) == 1:
        return ""
    return (
        f"line {line}: a value begins with a double quote that is not closed at the end of the "
        f"file: {_shown(text[1:-1])}; close it; a double quote that is a part of a value is "
        "written twice, within double quotes"
    )


def _without_mark(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file without a byte-order mark."""
    chunks = chunks_of(path)
    yield next(chunks, b"").removeprefix(codecs.BOM_UTF8)
    yield from chunks


def _shown(data: bytes) -> str:
    text = data[: 4 * _MOST_LETTERS].decode("utf-8", "replace")
    return repr(text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}...")


def first_record(path: Path, delimiter: str) -> tuple[int, list[str]]:
    """Return the number of the line in which the first record begins, and its values.

    There are no values if the file has no record, or if its first is very long.
    """
    text = next(_without_mark(path), b"").decode("utf-8", "replace")[:_HEADER_BYTES]
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    line = 1
    try:
        for row in reader:
            if row:
                is_cut = len(text) == _HEADER_BYTES and next(reader, None) is None
                return line, [] if is_cut else row
            line = reader.line_num + 1
    except csv.Error:
        pass
    return line, []


def fault_of_header(line: int, names: Sequence[str], delimiter: str) -> str:
    """Return which columns have no name or the name of another column; empty if none has."""
    advice = "; if the line is no header, add --no-header"
    nameless = [number for number, name in enumerate(names, 1) if not name]
    if nameless == [len(names)] and len(names) > 1:
        return (
            f"line {line}: the header ends with {sign_of(delimiter)}, so that column {len(names)} "
            f"has no name; name it, or remove what is after the last name from all lines{advice}"
        )
    if nameless:
        numbers = ", ".join(map(str, nameless))
        return (
            f"line {line}: the header has no name for column(s) {numbers} of {len(names)}; "
            f"name them in the file{advice}"
        )
    numbers_of: dict[str, list[int]] = {}
    for number, name in enumerate(names, 1):
        numbers_of.setdefault(name_key(name), []).append(number)
    twice = [
        f"{' and '.join(repr(names[number - 1]) for number in same)} (columns "
        f"{', '.join(map(str, same))})"
        for same in numbers_of.values()
        if len(same) > 1
    ]
    if not twice:
        return ""
    return (
        f"line {line}: the header has the same name more than once, ignoring case: "
        f"{'; '.join(twice)}; give each column another name in the file{advice}"
    )


def doubt_of_header(names: Sequence[str]) -> str:
    """Return a warning if names are numbers, so that they are probably values; empty if none is.

    Years are not, because they are often names of columns.
    """
    odd = [name for name in names if _NUMBER.fullmatch(name) and not _YEAR.fullmatch(name)]
    if not odd:
        return ""
    shown = ", ".join(map(repr, names[:_MOST_NAMES])) + (", …" if len(names) > _MOST_NAMES else "")
    return (
        f"the first line became the names of the columns, {shown}, although {odd[0]!r} is a "
        "number; if the line is no header, write the file again with --no-header"
    )
