"""Delta Lake tables in pure Python: the whole protocol, fast, from any fsspec store.

`DeltaTable` is where to start. Names are loaded when they are first used, so that importing
deltalog costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deltalog.actions.model import Metadata, Protocol
    from deltalog.expressions.nodes import col, lit
    from deltalog.query import QueryBuilder
    from deltalog.schema.types import (
        ArrayType,
        DataType,
        Field,
        MapType,
        PrimitiveType,
        Schema,
        StructType,
        VariantType,
    )
    from deltalog.table import DeltaTable

__version__ = "0.1.0"

_ORIGINS = {
    "ArrayType": "deltalog.schema.types",
    "DataType": "deltalog.schema.types",
    "DeltaTable": "deltalog.table",
    "Field": "deltalog.schema.types",
    "MapType": "deltalog.schema.types",
    "Metadata": "deltalog.actions.model",
    "PrimitiveType": "deltalog.schema.types",
    "Protocol": "deltalog.actions.model",
    "QueryBuilder": "deltalog.query",
    "Schema": "deltalog.schema.types",
    "StructType": "deltalog.schema.types",
    "VariantType": "deltalog.schema.types",
    "col": "deltalog.expressions.nodes",
    "lit": "deltalog.expressions.nodes",
}

__all__ = [
    "ArrayType",
    "DataType",
    "DeltaTable",
    "Field",
    "MapType",
    "Metadata",
    "PrimitiveType",
    "Protocol",
    "QueryBuilder",
    "Schema",
    "StructType",
    "VariantType",
    "__version__",
    "col",
    "lit",
]


def __getattr__(name: str) -> Any:
    """Load a public name from where it lives (PEP 562)."""
    origin = _ORIGINS.get(name)
    if origin is None:
        raise AttributeError(f"module 'deltalog' has no attribute {name!r}")
    value = getattr(import_module(origin), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return __all__
