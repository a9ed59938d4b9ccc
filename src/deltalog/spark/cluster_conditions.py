"""The part of a cluster's session that Spark evaluates or explains: conditions and plans.

Protocol: none
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from deltalog.spark.reading.conditions import as_spark_condition
from deltalog.spark.session.foreign import foreign_text
from deltalog.spark.writing.frame import replacing_by_spark
from deltalog.statements.conditions import resolved

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from deltalog.expressions import Expression
    from deltalog.statements.slices import Query, SqlCondition
    from deltalog.statements.statement import Qualifiers
    from deltalog.table import DeltaTable
    from deltalog.verbs.write import Write


class ClusterConditions(ABC):
    """What `ClusterSession` does with conditions; see `deltalog.statements.Session`."""

    _spark: SparkSession

    @abstractmethod
    def select(self, query: Query) -> DataFrame:
        """Return the rows of a query."""

    @abstractmethod
    def values(self, query: Query) -> pa.Table:
        """Return the rows of a query in a condition."""

    def expression(
        self,
        given: SqlCondition,
        columns: Sequence[str] = (),
        qualifiers: Qualifiers = (),
        *,
        keeps_last: bool = False,
    ) -> Expression | str:
        """Return the expression of a condition; a text if only Spark knows what it says."""
        if not given.is_foreign:
            return resolved(self.values, given, columns)
        return foreign_text(self.values, given, columns, qualifiers, keeps_last=keeps_last)

    def known_part(self, condition: Any, table: DeltaTable) -> Expression | None:
        """Return the part of a condition by which files are found; None if there is none."""
        if condition is None:
            return None
        schema, session = table.snapshot.configuration.schema, table.snapshot.context.session
        found = as_spark_condition(condition, schema, session, by_spark=True)
        return condition if found.is_known else found.pruning

    def replacing(self, write: Write, table: DeltaTable) -> Write:
        """Return the verb that replaces those rows of a table that match a predicate."""
        return replacing_by_spark(write, table)

    def explain(self, query: Query) -> str:
        """Return Spark's plan of a query."""
        text = "".join(str(row[0]) for row in self._explained(query))
        return text.strip()

    def _explained(self, query: Query) -> Any:
        frame = self.select(query)
        frame.createOrReplaceTempView("deltalog_explained")
        try:
            return self._spark.sql("EXPLAIN EXTENDED SELECT * FROM deltalog_explained").collect()
        finally:
            self._spark.catalog.dropTempView("deltalog_explained")
