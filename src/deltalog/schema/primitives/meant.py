"""Which type was meant by what is none: a type of Python, Arrow, pandas or SQL, or its name."""

from __future__ import annotations

import datetime as dt
import decimal
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa

from deltalog.errors import InvalidInputError
from deltalog.schema.primitives.table import PRIMITIVES, primitive_in_sql, primitive_of_arrow

# A class, or its name. An integer of Python has no width: the widest holds most.
_OF_PYTHON: Final = {
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "binary",
    dt.date: "date",
    dt.datetime: "timestamp",
    decimal.Decimal: "decimal(38,18)",
}
_OF_NAMES: Final = {kind.__name__.lower(): name for kind, name in _OF_PYTHON.items()}
# What neither Arrow nor SQL calls so.
_OTHERS: Final = {"object": "string", "text": "string", "datetime64[ns]": "timestamp"}

# The stubs know it for constants only.
_arrow_type: Any = pa.type_for_alias


def unknown_type(value: object) -> InvalidInputError:
    """Return the error for what is no type of a table, with the type that may be meant."""
    known = ", ".join(sorted(PRIMITIVES))
    shown = repr(value) if isinstance(value, str) else f"{value!r}, a {type(value).__name__}"
    meant = _meant(value)
    hint = f"; did you mean {meant!r}?" if meant else ""
    return InvalidInputError(
        f"cannot make a type of {shown}: expected a type such as ArrayType(…), or the name of one: "
        f"{known}, with parameters where it has them, as decimal(p,s){hint}"
    )


def _meant(value: object) -> str | None:
    if isinstance(value, type):
        return _OF_PYTHON.get(value)
    if isinstance(value, pa.DataType):
        return _of_arrow(value)
    if not isinstance(value, str):
        return None
    name = value.strip().lower()
    in_sql = primitive_in_sql(name)
    if in_sql is not None:
        return in_sql.name
    found = _OF_NAMES.get(name) or _OTHERS.get(name)
    if found is None:
        try:
            found = _of_arrow(_arrow_type(name))
        except ValueError:
            found = next(iter(get_close_matches(name, PRIMITIVES, n=1)), None)
    return found


def _of_arrow(kind: pa.DataType) -> str | None:
    found = primitive_of_arrow(kind)
    if found is None:
        return None
    row, parameters = found
    return f"{row.name}({','.join(parameters)})" if parameters else row.name
