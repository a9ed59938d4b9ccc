# ruff: noqa: D102  # the docstrings are those of PySpark's own methods
"""`df.writeTo` and `df.mergeInto` in registered sessions: tables by their names.

Protocol: none
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from pyspark.sql import Column

from deltalog._util.escaping import name_key
from deltalog.errors import InvalidInputError, TableNotFoundError
from deltalog.query.names import QualifiedName
from deltalog.spark.engine.engine import SparkEngine
from deltalog.spark.reading.scan import objection_to_native
from deltalog.spark.session.failures import (
    SparkTableExistsError,
    SparkTableNotFoundError,
    as_analysis_errors,
    check_condition,
)
from deltalog.spark.session.names import catalogs_of
from deltalog.spark.session.settings import left_to_spark, session_defaults, session_settings
from deltalog.spark.session.types import schema_of
from deltalog.spark.spellings.frames import AskedWrite, entry_of, known_place
from deltalog.spark.spellings.noting import PATH, NotingOptions, flattened
from deltalog.spark.table import DeltaTable as SparkTable
from deltalog.spark.writing.frame import NO_PLACE, place_of_name, write_frame, write_over_column
from deltalog.table.creating import TableDefinition, create_table
from deltalog.transaction import CommitOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from pyspark.sql import DataFrame

    from deltalog.spark.merge import DeltaMergeBuilder
    from deltalog.spark.writing.frame import NamedPlace

    Way = Literal["create", "replace", "createOrReplace"]

_PLAIN: Final = re.compile(r"Column<'(.*)'>", re.DOTALL)
_COMMENT: Final = "comment"
_LOCATION: Final = "location"


class AskedTable(AskedWrite):
    """What a writer to a table was told.

    Args:
        frame: the rows.
        name: of the table.
    """

    def __init__(self, frame: DataFrame, name: object) -> None:
        super().__init__(frame)
        self.name = name
        self.properties: dict[str, str] = {}

    def make(self, way: Way) -> bool:
        """Create or replace the table with the rows; False if PySpark must do it."""
        name = self._own_name()
        if name is None:
            return False
        properties = dict(self.properties)
        comment, location = (properties.pop(key, None) for key in (_COMMENT, _LOCATION))
        with as_analysis_errors():
            given = self._given(location)
            wanted = given.pop(PATH, None)
            _, storage, options = self._options({**given, PATH: wanted or str(name)})
            options = options.under(session_settings(self.spark))
            provider = self.meant(self.own_formats())
            found = place_of_name(self.spark, name, wanted, storage or None, provider=provider)
            if found is None:
                raise InvalidInputError(f"cannot {way} the table {name}: {NO_PLACE}")
            context = replace(found.place.context, time_zone=options.zone)
            self._check(way, name, found)
            definition = TableDefinition(
                schema=schema_of(self.frame.schema),
                partition_by=options.partition_by or (),
                cluster_by=options.cluster_by,
                configuration={**options.properties, **properties},
                description=comment,
                arbitrary_properties=True,
            )
            objection = objection_to_native(context.store)
            with left_to_spark(), session_defaults(self.spark):
                create_table(
                    replace(found.place, context=context),
                    definition,
                    mode="error" if way == "create" else "overwrite",
                    options=CommitOptions(
                        properties=options.commit_properties, hooks=options.hooks
                    ),
                    rows=self.frame,
                    engine=SparkEngine(
                        self.spark, objection=objection, gathers=options.optimize_write
                    ),
                    file_options=options.files,
                )
                found.note(self.spark)
        return True

    def _own_name(self) -> QualifiedName | None:
        """Return the name of a table that is ours or would be; None if PySpark must say."""
        formats = self.own_formats()
        if not formats or not isinstance(self.name, str):
            return None
        try:
            name = QualifiedName.parse(self.name)
        except InvalidInputError:
            return None  # PySpark says what is wrong with it
        if self.format is not None and self.format.lower() not in formats:
            return None
        if name.location is not None:
            return name if name.format in formats else None
        is_ours = (
            self.meant(formats) is not None
            or catalogs_of(self.spark).names.keeps(name)
            or (self.format is None and entry_of(self.spark, self.name, formats) is not None)
        )
        return name if is_ours else None

    @staticmethod
    def _check(way: Way, name: QualifiedName, found: NamedPlace) -> None:
        root = found.place.context.store.root
        if way == "create" and (found.is_known or found.has_table):
            raise SparkTableExistsError(
                f"cannot create the table {name} at {root}: it already exists; createOrReplace() "
                "replaces it, append() adds the rows"
            )
        if way == "replace" and not found.has_table:
            raise SparkTableNotFoundError(
                f"cannot replace the table {name} at {root}: it cannot be found; "
                "createOrReplace() makes one"
            )

    def write(
        self, *, overwrites: bool = False, where: object = None, dynamic: bool | None = None
    ) -> bool:
        """Write the rows by the names of columns; False if PySpark must do it.

        Args:
            overwrites: whether rows are replaced.
            where: only those for which this column of Spark, or text, is true.
            dynamic: only those of the partitions of new rows.
        """
        formats = self.own_formats()
        if not formats or not isinstance(self.name, str):
            return False
        with left_to_spark():
            found = known_place(self.spark, self.name, formats)
            if found is None:
                return False
            with as_analysis_errors():
                if not found.has_table:
                    raise TableNotFoundError(
                        f"cannot write to {self.name}: it has no Delta table; create() makes one"
                    )
                given = {**self._given(None), PATH: self.name}
                _, _, options = self._options(given, overwrite=overwrites)
                if dynamic is not None:
                    options = replace(options, dynamic=dynamic)
                mode: Literal["overwrite", "append"] = "overwrite" if overwrites else "append"
                if isinstance(where, Column):
                    write_over_column(self.frame, found.place, options, where)
                else:
                    options = replace(options, replace_where=where or options.replace_where)
                    write_frame(self.frame, found.place, options, mode=mode)
                found.note(self.spark)
        return True


class NotingTableWriter(NotingOptions):
    """The part of a writer to a table that notes what it is told."""

    _asked: AskedTable

    def using(self, provider: str) -> Self:
        super().using(provider)  # type: ignore[misc]  # PySpark's class comes next
        self._asked.format = provider
        return self

    def tableProperty(self, property: str, value: str) -> Self:  # noqa: A002, N802  # PySpark's
        super().tableProperty(property, value)  # type: ignore[misc]  # as above
        self._asked.properties[property] = value
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> Self:  # noqa: N802  # PySpark's
        super().partitionedBy(col, *cols)  # type: ignore[misc]  # as above
        self._asked.partition_by = tuple(_column_name(one, self._asked) for one in (col, *cols))
        return self

    def clusterBy(self, col: str, *cols: str) -> Self:  # noqa: N802  # PySpark's
        super().clusterBy(col, *cols)  # type: ignore[misc]  # as above
        self._asked.cluster_by = flattened((col, *cols))
        return self

    def create(self) -> None:
        if not self._asked.make("create"):
            super().create()  # type: ignore[misc]  # as above

    def replace(self) -> None:
        if not self._asked.make("replace"):
            super().replace()  # type: ignore[misc]  # as above

    def createOrReplace(self) -> None:  # noqa: N802  # PySpark's
        if not self._asked.make("createOrReplace"):
            super().createOrReplace()  # type: ignore[misc]  # as above

    def append(self) -> None:
        if not self._asked.write():
            super().append()  # type: ignore[misc]  # as above

    def overwrite(self, condition: Any) -> None:
        if not self._asked.write(overwrites=True, where=condition, dynamic=False):
            super().overwrite(condition)  # type: ignore[misc]  # as above

    def overwritePartitions(self) -> None:  # noqa: N802  # PySpark's
        if not self._asked.write(overwrites=True, dynamic=True):
            super().overwritePartitions()  # type: ignore[misc]  # as above


def _column_name(column: Any, asked: AskedTable) -> str:
    """Return the name of a partition column, which is no expression in a Delta table."""
    if isinstance(column, str):
        return column
    found = _PLAIN.fullmatch(str(column))
    name = "" if found is None else found[1].strip("`")
    known = {name_key(one): one for one in asked.frame.columns}
    if name_key(name) not in known:
        raise InvalidInputError(
            f"cannot partition by {column}: a Delta table is partitioned by columns; add one that "
            "is generated by the expression"
        )
    return known[name_key(name)]


class MergeIntoWriter:
    """A merge of a frame into a table of ours, with the methods of PySpark's `MergeIntoWriter`.

    Args:
        builder: of the merge.
        place: of the table.
    """

    def __init__(self, builder: DeltaMergeBuilder, place: NamedPlace, frame: DataFrame) -> None:
        self._builder = builder
        self._place = place
        self._frame = frame

    def whenMatched(self, condition: Column | None = None) -> WhenMatched:  # noqa: N802  # PySpark's
        """Begin what is done to rows of both sides."""
        return WhenMatched(self, condition)

    def whenNotMatched(self, condition: Column | None = None) -> WhenNotMatched:  # noqa: N802  # PySpark's
        """Begin what is done with rows of the frame alone."""
        return WhenNotMatched(self, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> WhenNotMatchedBySource:  # noqa: N802  # PySpark's
        """Begin what is done to rows of the table alone."""
        return WhenNotMatchedBySource(self, condition)

    def withSchemaEvolution(self) -> Self:  # noqa: N802  # PySpark's
        """Add the columns that only the frame has to the table."""
        self._builder = self._builder.withSchemaEvolution()
        return self

    def merge(self) -> None:
        """Merge, and commit."""
        spark = self._frame.sparkSession
        with left_to_spark(), as_analysis_errors():
            self._builder.execute()
            self._place.note(spark)

    def take(self, clause: str, **said: Any) -> Self:
        """Add a clause, and return the writer.

        Args:
            clause: the method of `DeltaMergeBuilder`.
            said: its arguments.
        """
        self._builder = getattr(self._builder, clause)(**said)
        return self


class _When:
    def __init__(self, writer: MergeIntoWriter, condition: Column | None) -> None:
        check_condition(condition)
        self._writer = writer
        self._condition = condition

    def _take(self, clause: str, **said: Any) -> MergeIntoWriter:
        return self._writer.take(clause, condition=self._condition, **said)


class WhenMatched(_When):
    """What is done to rows of both sides."""

    def updateAll(self) -> MergeIntoWriter:  # noqa: N802  # PySpark's
        """Update all columns from the frame."""
        return self._take("whenMatchedUpdateAll")

    def update(self, assignments: Mapping[str, Column]) -> MergeIntoWriter:
        """Update columns."""
        return self._take("whenMatchedUpdate", set=assignments)

    def delete(self) -> MergeIntoWriter:
        """Delete the row of the table."""
        return self._take("whenMatchedDelete")


class WhenNotMatched(_When):
    """What is done with rows of the frame alone."""

    def insertAll(self) -> MergeIntoWriter:  # noqa: N802  # PySpark's
        """Insert all columns."""
        return self._take("whenNotMatchedInsertAll")

    def insert(self, assignments: Mapping[str, Column]) -> MergeIntoWriter:
        """Insert columns."""
        return self._take("whenNotMatchedInsert", values=assignments)


class WhenNotMatchedBySource(_When):
    """What is done to rows of the table alone."""

    def updateAll(self) -> MergeIntoWriter:  # noqa: N802  # PySpark's
        """Refuse: there is no row of the frame.

        Raises:
            InvalidInputError: always.
        """
        raise InvalidInputError(
            "cannot update all columns of rows that the source does not match: there is no row to "
            "take them from; give update(…) their values"
        )

    def update(self, assignments: Mapping[str, Column]) -> MergeIntoWriter:
        """Update columns."""
        return self._take("whenNotMatchedBySourceUpdate", set=assignments)

    def delete(self) -> MergeIntoWriter:
        """Delete the row."""
        return self._take("whenNotMatchedBySourceDelete")


def merge_into(frame: DataFrame, name: object, condition: Any) -> MergeIntoWriter | None:
    """Begin a merge into a table of ours; None if PySpark must do it.

    Args:
        frame: the source.
        name: of the table; its last part is an alias of it.
        condition: which rows match.

    Raises:
        TableNotFoundError: the name is one of ours, and there is no table.
    """
    spark = frame.sparkSession
    formats = AskedWrite(frame).own_formats()
    if not formats or not isinstance(name, str):
        return None
    with left_to_spark():
        found = known_place(spark, name, formats)
        if found is None:
            return None
        with as_analysis_errors():
            check_condition(condition, is_required=True)
            if not found.has_table:
                raise TableNotFoundError(f"cannot merge into {name}: it has no Delta table")
            table = SparkTable.from_context(spark, found.place.context)
            qualified = QualifiedName.parse(name)
            if qualified.location is None:
                table = table.alias(qualified.parts[-1])
            return MergeIntoWriter(table.merge(frame, condition), found, frame)
