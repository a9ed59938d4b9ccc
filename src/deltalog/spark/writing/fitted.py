"""Rows of a data frame in the columns and types of a table, by Spark's store assignment.

Protocol: none
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812  # as everywhere in PySpark's world

from deltalog.errors import SchemaMismatchError
from deltalog.expressions import to_sql
from deltalog.names import name_key
from deltalog.spark.engine.assign import as_type_of, checked_values
from deltalog.statements.statement import absent_partitions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from deltalog.expressions import Expression
    from deltalog.table import DeltaTable


def fitted(
    spark: SparkSession,
    frame: DataFrame,
    table: DeltaTable,
    *,
    columns: Sequence[str] | None,
    constants: Mapping[str, Expression] = MappingProxyType({}),
    evolves: bool = False,
) -> DataFrame:
    """Return the rows of a frame in the columns and types of a table.

    Args:
        spark: the session.
        frame: the rows.
        table: that gets them.
        columns: of the table, which those of the frame are by their place; None goes by name.
        constants: column → its value in each row.
        evolves: whether columns stay that the table does not have; by place, those that are left.

    Raises:
        SchemaMismatchError: they do not fit.
    """
    schema = table.snapshot.configuration.schema
    known = {name_key(name): name for name in schema.names}
    given = frame.columns
    more = given[len(columns) :] if columns is not None and evolves else []
    if columns is not None and len(columns) + len(more) != len(given):
        raise SchemaMismatchError(
            f"cannot insert into {table.table_uri}: expected {len(columns)} columns "
            f"({', '.join(columns)}), found {len(given)} ({', '.join(given)})"
        )
    frame = frame.toDF(*(f"c{place}" for place in range(len(given))))
    values: dict[tuple[str, ...], Column] = {}
    extra: list[Column] = []
    for place, name in enumerate(given if columns is None else [*columns, *more]):
        is_extra = evolves and (columns is None or place >= len(columns))
        if is_extra and name_key(name) not in known:
            extra.append(F.col(f"c{place}").alias(name))
        elif columns is not None and is_extra:
            raise SchemaMismatchError(
                f"cannot insert into {table.table_uri}: expected {len(columns)} columns "
                f"({', '.join(columns)}) and new ones after them, found {name!r} again"
            )
        elif name_key(name) in known:
            values[(known[name_key(name)],)] = F.col(f"c{place}")
        else:
            raise SchemaMismatchError(
                f"cannot insert into {table.table_uri}: it has no column {name!r}"
            )
    given_names = (path[0] for path in values)
    absent = absent_partitions(table, {*constants, *given_names})
    for name, value in {**constants, **absent}.items():
        values[(known.get(name_key(name), name),)] = F.expr(to_sql(value))
    checked = checked_values(schema, values, spark)
    parts = [as_type_of(schema, path, value).alias(path[0]) for path, value in checked.items()]
    return frame.select(*parts, *extra)
