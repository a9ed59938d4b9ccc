"""Resolve the column names in a merge's SQL to the table or the source.

Owns aliases and ambiguity. Resolved expressions see two structs, `target` and `source`.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from deltalog.errors import InvalidInputError
from deltalog.expressions import Column, map_columns, parse_sql
from deltalog.names import name_key
from deltalog.schema import Field, StructType

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from deltalog.expressions import Expression

TARGET: Final = "target"
SOURCE: Final = "source"
BOTH: Final = (TARGET, SOURCE)


class Names:
    """The columns and aliases of both sides.

    Args:
        target: schema of the table.
        source: schema of the source.
        target_alias: of the table in SQL, besides the name `target`.
        source_alias: of the source in SQL, besides the name `source`.
        parameters: values for `:name` in SQL.

    Attributes:
        schema: of the rows that expressions see: `target` and `source` are structs.
    """

    def __init__(
        self,
        target: StructType,
        source: StructType,
        *,
        target_alias: str | None = None,
        source_alias: str | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        self._sides = {TARGET: target, SOURCE: source}
        self.schema: StructType = StructType(
            [Field(TARGET, target, nullable=False), Field(SOURCE, source, nullable=False)]
        )
        self._parameters = parameters
        self._aliases = {SOURCE: SOURCE, TARGET: TARGET}
        given = [(source_alias, SOURCE), (target_alias, TARGET)]
        keys = [name_key(alias) for alias, _ in given if alias is not None]
        if len(set(keys)) < len(keys):
            raise InvalidInputError(f"source and target cannot both be called {source_alias!r}")
        for alias, side in given:
            if alias is not None:
                self._aliases[name_key(alias.strip("`"))] = side
        self._shown = {SOURCE: source_alias or SOURCE, TARGET: target_alias or TARGET}

    def parse(self, sql: str | Expression, sides: Collection[str] = BOTH) -> Expression:
        """Parse SQL, or take an expression, and qualify its columns with their sides.

        Args:
            sql: as the caller gave it.
            sides: the sides that have a row where the expression is evaluated.

        Raises:
            InvalidInputError: a column is unknown or ambiguous, or its side has no row.
        """
        if isinstance(sql, str):
            names = {name for side in sides for name in self._sides[side].names}
            parsed = parse_sql(sql, parameters=self._parameters, columns=names, quotes_names=True)
        else:
            parsed = sql
        return map_columns(parsed, lambda column: self._place(column, sides))

    def target_path(self, key: str | tuple[str, ...], parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return the path of an assigned column, without the table's alias.

        Raises:
            InvalidInputError: the column belongs to the source.
        """
        known = {name_key(name) for name in self._sides[TARGET].names}
        side = self._aliases.get(name_key(parts[0]))
        if len(parts) == 1 or side is None or (name_key(parts[0]) in known and parts[0] != TARGET):
            return parts
        if side == SOURCE:
            raise InvalidInputError(
                f"cannot assign {key!r}: it is a column of the source, and the table's change"
            )
        return parts[1:]

    def _place(self, column: Column, sides: Collection[str]) -> Column:
        path = column.path
        side = self._aliases.get(name_key(path[0]))
        if side is not None and len(path) > 1:
            if side not in sides:
                raise InvalidInputError(
                    f"cannot use {column.name!r} here: there is no row of the {side}"
                )
            return Column((side, *path[1:]))
        found = [
            side
            for side in sides
            if name_key(path[0]) in {name_key(name) for name in self._sides[side].names}
        ]
        if len(found) == 1:
            return Column((found[0], *path))
        if found:
            raise InvalidInputError(
                f"the column {column.name!r} is ambiguous: it may be "
                f"{' or '.join(repr(f'{self._shown[side]}.{column.name}') for side in found)}"
            )
        raise InvalidInputError(f"there is no column {column.name!r}: {self._hint(column, sides)}")

    def _hint(self, column: Column, sides: Collection[str]) -> str:
        known = {
            f"{self._shown[side]}.{name_key(name)}": f"{self._shown[side]}.{name}"
            for side in sides
            for name in self._sides[side].names
        }
        bare = {name.rpartition(".")[2]: shown for name, shown in known.items()}
        close = difflib.get_close_matches(name_key(column.name), [*known, *bare], n=1)
        if close:
            return f"did you mean {(known.get(close[0]) or bare[close[0]])!r}?"
        return f"the columns are {', '.join(map(repr, list(known.values())[:20]))}"


def sides_of(paths: Collection[tuple[str, ...]]) -> set[str]:
    """Return the sides that the columns of an expression belong to."""
    return {path[0] for path in paths}


def without_side(expression: Expression) -> Expression:
    """Return an expression over one side with the side's name removed from its columns."""
    return map_columns(expression, lambda column: Column(column.path[1:]))
