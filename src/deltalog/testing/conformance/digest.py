"""A digest of rows ("digest v1") that ignores their order, chunks, and the width of integers.

Each cell becomes a short string that includes the kind of its value (`"i:5"`, `"d:1.5"`, `"T:0"`).
Each row becomes a JSON array of its cells, ordered by column name. The digest is the SHA-256 of the
column names and of the sorted SHA-256 values of the rows. So duplicate rows count.

Protocol: none
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog._util.json import dumps
from deltalog._util.kernels import compute
from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.strings import is_bytes, is_text
from deltalog.schema.variant.reader import PLAIN_READERS, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Make = Callable[[Any], list[str]]

_BATCH_ROWS: Final = 65_536  # limits the number of strings in memory
_NULL: Final = "null"
_MICROSECONDS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


def digest(table: pa.Table) -> str:
    """Return the digest of the rows of a table: `v1:` and 64 hexadecimal digits.

    Args:
        table: the rows. The names of its columns must differ.

    Raises:
        InvalidInputError: two columns have the same name, or a type is not supported.

    Cost: one Python string per cell.
    """
    names = sorted(table.column_names)
    if len(set(names)) < len(names):
        raise InvalidInputError(f"cannot digest a table with duplicate column names: {names}")
    rows = sorted(
        hashlib.sha256(text.encode()).digest()
        for batch in table.select(names).to_batches(max_chunksize=_BATCH_ROWS)
        for text in _row_texts(batch)
    )
    whole = hashlib.sha256(dumps(names) + b"\n")
    for row in rows:
        whole.update(row)
    return f"v1:{whole.hexdigest()}"


def _row_texts(batch: pa.RecordBatch) -> Iterator[str]:
    if not batch.num_columns:
        yield from ["[]"] * batch.num_rows
        return
    columns = [_texts(column) for column in batch.columns]
    for cells in zip(*columns, strict=True):
        yield f"[{','.join(cells)}]"


def _texts(array: Any) -> list[str]:
    """Return one JSON string for each value of an array."""
    array = _plain(array)
    for applies, make in _KINDS:
        if applies(array.type):
            return make(array)
    raise InvalidInputError(f"cannot digest values of the Arrow type {array.type}")


def _plain(array: Any) -> Any:
    """Return an equal array without extension types, dictionaries, run ends and list views."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(array.storage)
    if pt.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pt.is_run_end_encoded(kind):
        return _plain(compute.run_end_decode(array))
    if pt.is_fixed_size_list(kind) or pt.is_list_view(kind) or pt.is_large_list_view(kind):
        return array.cast(pa.large_list(kind.value_field))
    return array


def _quoted(value: str) -> str:
    return dumps(value).decode()


def _each(text: Callable[[Any], str]) -> Make:
    """Return a function that converts the values of an array to strings, one after the other."""
    return lambda array: [_NULL if one is None else text(one) for one in array.to_pylist()]


def _stored(width: Any, tag: str) -> Make:
    """Return a function that converts values that Arrow stores as integers to strings."""
    return lambda array: _tagged(array.view(width).to_pylist(), tag)


def _tagged(numbers: list[int | None], tag: str) -> list[str]:
    return [_NULL if number is None else f'"{tag}:{number}"' for number in numbers]


def _in_micros(width: Any, tag: Callable[[Any], str]) -> Make:
    """Return a function that converts times to microseconds (rounded down), and then to strings."""

    def make(array: Any) -> list[str]:
        unit = array.type.unit
        numbers = [
            None if one is None else one // 1000 if unit == "ns" else one * _MICROSECONDS[unit]
            for one in array.view(width).to_pylist()
        ]
        return _tagged(numbers, tag(array.type))

    return make


def _days_of_ms(array: Any) -> list[str]:
    numbers = array.view(pa.int64()).to_pylist()
    return _tagged([None if one is None else one // 86_400_000 for one in numbers], "D")


def _decimal_text(value: Decimal) -> str:
    digits = format(value, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits in {"", "-0"} else digits


def _floating(array: Any) -> list[str]:
    numbers = array.cast(pa.float64()).to_pylist()
    return [_NULL if one is None else f'"f:{one!r}"' for one in numbers]


def _list(array: Any) -> list[str]:
    values = _ranges(array, _children(array, array.values))
    return [_NULL if one is None else f"[{','.join(one)}]" for one in values]


def _map(array: Any) -> list[str]:
    keys, items = (_children(array, part) for part in (array.keys, array.items))
    pairs = _ranges(array, list(zip(keys, items, strict=True)))
    return [
        _NULL
        if one is None
        else f'{{"@map":[{",".join(f"[{key},{item}]" for key, item in sorted(one))}]}}'
        for one in pairs
    ]


def _children(array: Any, values: Any) -> list[str]:
    """Return the strings for the values inside a list or map array. The array may be a slice."""
    offsets = array.offsets
    first, last = (offsets[at].as_py() for at in (0, len(offsets) - 1))
    return _texts(values.slice(first, last - first))


def _ranges(array: Any, values: list[Any]) -> list[list[Any] | None]:
    offsets = array.offsets.to_pylist()
    first = offsets[0]
    return [
        values[offsets[at] - first : offsets[at + 1] - first] if is_valid else None
        for at, is_valid in enumerate(array.is_valid().to_pylist())
    ]


def _struct(array: Any) -> list[str]:
    # `flatten` returns NULL for the fields of a NULL struct.
    children = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    valid = array.is_valid().to_pylist()
    if sorted(children) == ["metadata", "value"] and all(
        is_bytes(child.type) for child in children.values()
    ):
        metadata, values = (children[name].to_pylist() for name in ("metadata", "value"))
        return [
            _variant(meta, value) if is_valid and meta is not None and value is not None else _NULL
            for is_valid, meta, value in zip(valid, metadata, values, strict=True)
        ]
    names = sorted(children)
    columns = [[f"{_quoted(name)}:{one}" for one in _texts(children[name])] for name in names]
    rows = zip(*columns, strict=True) if columns else ([()] * len(array))
    return [
        f"{{{','.join(row)}}}" if is_valid else _NULL
        for is_valid, row in zip(valid, rows, strict=True)
    ]


def _variant(metadata: bytes, value: bytes) -> str:
    return f'{{"@variant":{_nested(read(metadata, value, _VARIANT_READERS))}}}'


def _nested(value: Any) -> str:
    if isinstance(value, dict):
        inner = ",".join(f"{_quoted(name)}:{_nested(value[name])}" for name in sorted(value))
        return f"{{{inner}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_nested, value))}]"
    return str(value)


def _variant_text(kind: int, text: Callable[[Any], str]) -> Callable[[bytes], str]:
    plain = PLAIN_READERS[kind]
    return lambda data: text(plain(data))


def _tag_text(tag: str) -> Callable[[Any], str]:
    return lambda value: f'"{tag}:{value}"'


_VARIANT_TEXTS: Final[dict[int, Callable[[Any], str]]] = {
    0: lambda _: _NULL,
    1: lambda _: "true",
    2: lambda _: "false",
    **dict.fromkeys((3, 4, 5, 6), lambda value: f'"n:{value}"'),
    **dict.fromkeys((7, 14), lambda value: f'"f:{value!r}"'),
    **dict.fromkeys((8, 9, 10), lambda value: f'"n:{_decimal_text(value)}"'),
    15: lambda value: f'"x:{value.hex()}"',
    16: lambda value: _quoted(f"s:{value}"),
    20: lambda value: f'"u:{value.hex}"',
    **{
        kind: _tag_text(tag)
        for kind, tag in {11: "D", 12: "T", 13: "N", 17: "H", 18: "TN", 19: "NN"}.items()
    },
}
_VARIANT_READERS: Final = {kind: _variant_text(kind, text) for kind, text in _VARIANT_TEXTS.items()}

_KINDS: Final[tuple[tuple[Callable[[Any], bool], Make], ...]] = (
    (pt.is_null, lambda array: [_NULL] * len(array)),
    (pt.is_boolean, _each(lambda value: "true" if value else "false")),
    (pt.is_integer, lambda array: _tagged(array.to_pylist(), "i")),
    (pt.is_floating, _floating),
    (pt.is_decimal, _each(lambda value: f'"d:{_decimal_text(value)}"')),
    (is_text, _each(lambda value: _quoted(f"s:{value}"))),
    (is_bytes, _each(lambda value: f'"x:{value.hex()}"')),
    (pt.is_date32, _stored(pa.int32(), "D")),
    (pt.is_date64, _days_of_ms),
    (pt.is_timestamp, _in_micros(pa.int64(), lambda kind: "T" if kind.tz else "N")),
    (pt.is_time32, _in_micros(pa.int32(), lambda _: "H")),
    (pt.is_time64, _in_micros(pa.int64(), lambda _: "H")),
    (pt.is_duration, _in_micros(pa.int64(), lambda _: "U")),
    (pt.is_map, _map),
    (pt.is_list, _list),
    (pt.is_large_list, _list),
    (pt.is_struct, _struct),
)
