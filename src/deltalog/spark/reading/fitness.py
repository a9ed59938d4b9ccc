"""Which files Spark's own Parquet reader reads exactly as the table means them.

Owns the reasons against it: `explain` shows them, and such files are left to our reader.

Protocol: Column Mapping (Reader Requirements for Column Mapping)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as pt

from deltalog.column_mapping import field_id, physical_name
from deltalog.kernels import compute
from deltalog.names import name_key
from deltalog.paths import decode_path, store_kind
from deltalog.schema import ArrayType, MapType, PrimitiveType, StructType
from deltalog.schema.arrow import parquet_field_id
from deltalog.schema.columns import walk
from deltalog.schema.primitives import Family
from deltalog.schema.types import VOID
from deltalog.schema.widening import widening_changes
from deltalog.storage.parquet import open_parquet
from deltalog.storage.pool import map_in_pool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from deltalog.paths import StringColumn
    from deltalog.scan import ReadSpec
    from deltalog.schema import DataType
    from deltalog.schema.widening import TypeChange
    from deltalog.storage.store import Store

_SCHEME: Final = r"^[A-Za-z][A-Za-z0-9+.-]*:/+"
# Spark silently skips files whose names start with a dot or an underscore. It takes brackets and
# the like for glob patterns, and Hadoop takes a colon for the end of a scheme.
_ODD_NAME: Final = r"(?:^|/)[_.][^/]*$|[^A-Za-z0-9._=/-][^/]*$|\._COPYING_$"
_ODD_DIRECTORY: Final = r"[{}\[\]*?\\:\x00-\x1f]"
MOST_FOOTERS: Final = 1000
"""Most files whose footers the driver reads; if there are more, all are left to our reader."""


def objection_to_place(root: str) -> str | None:
    """Why Spark cannot read any file of a table at `root`; None if it can."""
    kind = store_kind(root)
    return None if kind.is_hadoop else f"Spark has no file system for {kind.name!r}"


def objection_to_columns(spec: ReadSpec) -> str | None:
    """Why Spark cannot read the columns of a scan from files; None if it can."""
    for path, field in walk(spec.data_columns):
        if field.type == VOID:
            return f"column {'.'.join(path)!r} is of type void, which no file holds"
        if isinstance(field.type, StructType) and not len(field.type):
            return f"column {'.'.join(path)!r} is a struct without fields"
        if any(_is_narrow(change) for change in widening_changes(field)):
            return f"column {'.'.join(path)!r} became a decimal that Spark reads from no integer"
    return None


def _is_narrow(change: TypeChange) -> bool:
    kind = change.to_type
    if not isinstance(kind, PrimitiveType) or not kind.is_decimal:
        return False
    before = change.from_type
    if not isinstance(before, PrimitiveType) or before.primitive.family is not Family.INTEGRAL:
        return False
    # With fewer digits before the point, Spark reads no decimal from an integer.
    return kind.precision - kind.scale < before.primitive.decimal_digits


def are_unfit_by_name(locations: StringColumn) -> pa.BooleanArray:
    """Mark files whose names Spark skips, or takes for patterns."""
    paths = compute.replace_substring_regex(locations, _SCHEME, "")
    odd: Any = compute.or_(
        compute.match_substring_regex(paths, _ODD_NAME),
        compute.match_substring_regex(paths, _ODD_DIRECTORY),
    )
    return odd.combine_chunks() if isinstance(odd, pa.ChunkedArray) else odd  # type: ignore[return-value]  # of booleans


def are_unfit_by_id(store: Store, spec: ReadSpec, files: pa.Table) -> pa.BooleanArray:
    """Mark files of a table with column ids in which names lead to other columns than ids.

    Spark finds columns by id only in sessions configured for it, and otherwise by name.

    Args:
        store: of the table.
        spec: what is read.
        files: `path` and `size` of each.

    Cost: the footer of every file.
    """
    if files.num_rows > MOST_FOOTERS:
        return pa.array([True] * files.num_rows, pa.bool_())

    def is_unfit(file: Mapping[str, Any]) -> bool:
        reader = open_parquet(
            store, decode_path(file["path"]), size_bytes=file["size"], footer_only=True
        )
        try:
            return not _names_agree(spec.data_columns, reader.arrow_schema)
        finally:
            reader.close()

    rows = files.select(["path", "size"]).to_pylist()
    return pa.array(map_in_pool(is_unfit, rows), pa.bool_())


def _names_agree(wanted: StructType, found: Iterable[pa.Field[Any]]) -> bool:
    """Whether the names of a file's columns lead to the same columns as the ids do."""
    fields = list(found)
    by_id = {number: one for one in fields if (number := parquet_field_id(one)) is not None}
    names = [name_key(one.name) for one in fields]
    for field in wanted:
        name = physical_name(field)
        number = field_id(field)
        match = None if number is None else by_id.get(number)
        if match is None:
            agrees = name_key(name) not in names
        else:
            is_only = match.name == name and names.count(name_key(name)) == 1
            agrees = is_only and _types_agree(field.type, match.type)
        if not agrees:
            return False
    return True


def _types_agree(wanted: DataType, found: Any) -> bool:
    match wanted:
        case StructType():
            return not pt.is_struct(found) or _names_agree(wanted, found)
        case ArrayType():
            return not pt.is_list(found) or _types_agree(wanted.element_type, found.value_type)
        case MapType():
            return not pt.is_map(found) or (
                _types_agree(wanted.key_type, found.key_type)
                and _types_agree(wanted.value_type, found.item_type)
            )
        case _:
            return True
