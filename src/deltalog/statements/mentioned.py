"""The tables that a statement names, in its clauses and in its queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from deltalog.query.located import located
from deltalog.query.names import QualifiedName
from deltalog.query.translate import TableChangesCall
from deltalog.statements.slices import Query


def names_in(value: object) -> Iterator[QualifiedName]:
    """All tables that a statement names, in its queries too."""
    if isinstance(value, QualifiedName):
        yield value
    elif isinstance(value, Query):
        for one in located(value.text).tables:
            yield one.table.table if isinstance(one.table, TableChangesCall) else one.table
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from names_in(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from names_in(part)
    elif is_dataclass(value):
        for part in fields(value):
            yield from names_in(getattr(value, part.name))
