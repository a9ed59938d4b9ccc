"""Create tables column by column, with the methods of `delta.tables`.

Protocol: Generated Columns, Identity Columns
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pyspark.sql import types as spark_types

from deltalog._util.similar_names import SimilarNames, answers_options
from deltalog.errors import InvalidInputError
from deltalog.log.listing import has_table
from deltalog.protocol.features.char_varchar import CHAR_VARCHAR_KEY
from deltalog.query.names import QualifiedName
from deltalog.schema import Field, StructType
from deltalog.schema.types import (
    IDENTITY_ALLOW_EXPLICIT_INSERT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    LONG,
)
from deltalog.spark.session.failures import (
    SparkTableExistsError,
    SparkTableNotFoundError,
    WrongIdentityTypeError,
    WrongTypeError,
    as_spark_does,
    check_type,
    speaks_spark,
)
from deltalog.spark.session.names import is_by_name, location_of
from deltalog.spark.session.settings import session_defaults, session_settings
from deltalog.spark.session.types import defined_schema, quoted
from deltalog.spark.writing.frame import NO_PLACE, NamedPlace, place_of_name
from deltalog.spark.writing.plan import open_to_write
from deltalog.table.creating import TableDefinition, create_table
from deltalog.transaction import CommitOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

    from deltalog.log.context import TableContext

_GENERATION: str = "delta.generationExpression"
Way = Literal["create", "createIfNotExists", "replace", "createOrReplace"]


@dataclass(frozen=True)
class IdentityGenerator:
    """Generator of the values of an identity column.

    Args:
        start: the first value.
        step: the difference between two values.

    Raises:
        WrongTypeError: `start` or `step` is not a whole number.
        InvalidInputError: the step is 0.
    """

    start: int = 1
    step: int = 1

    def __post_init__(self) -> None:
        """Check both numbers."""
        check_type(self.start, int, "start", "a whole number")
        check_type(self.step, int, "step", "a whole number")
        if self.step == 0:
            raise InvalidInputError("step: expected a whole number other than 0, found 0")


_MEANT: Final = {
    **dict.fromkeys(("partitionBy", "partition_by", "partitioned_by"), "partitionedBy(column, …)"),
    **dict.fromkeys(("schema", "columns"), "addColumns(schema)"),
    **dict.fromkeys(("properties", "tblproperties", "option"), "property(key, value)"),
    **dict.fromkeys(("name", "table"), "tableName(name)"),
    "path": "location(path)",
    "saveAsTable": "tableName(name), and execute()",
    **dict.fromkeys(("save", "create", "run"), "execute()"),
}
"""What users of other libraries look for → what to use instead."""


@speaks_spark
@answers_options({**dict.fromkeys(("type", "dtype", "data_type"), "dataType=…")})
class DeltaTableBuilder(SimilarNames):
    """Builder of the definition of a table. Only `execute` creates the table.

    Args:
        spark: the session, whose settings apply to a new table.
        way: how the table is created: `create`, `createIfNotExists`, `replace` or
            `createOrReplace`.
        load_version: a function that returns the result of `execute`, the created table.
        storage_options: credentials and settings for the store.
    """

    _meant = _MEANT

    def __init__(
        self,
        spark: SparkSession,
        way: Way,
        load_version: Callable[[TableContext], Any],
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._spark = spark
        self._way = way
        self._open = load_version
        self._storage = storage_options
        self._location: str | None = None
        self._name: str | None = None
        self._comment: str | None = None
        self._fields: list[Field] = []
        self._partitions: tuple[str, ...] = ()
        self._clusters: tuple[str, ...] | None = None
        self._properties: dict[str, str] = {}

    def tableName(self, identifier: str) -> Self:  # noqa: N802  # Delta's name
        """Set the name of the table.

        ``delta.`/path``` and `uc://…` set the location instead. For any other name, `execute`
        creates
        an entry: in a catalog of the session, or in Spark's catalog if the session has registered a
        format. If no location is set, the catalog chooses one.
        """
        check_type(identifier, str, "tableName", "a name")
        path = identifier if is_by_name(identifier) else location_of(identifier)
        if path is None:
            self._name = identifier
        else:
            self._location = path
        return self

    def location(self, location: str | PurePath) -> Self:
        """Set the table's location."""
        check_type(location, (str, PurePath), "location", "a path")
        self._location = str(location)
        return self

    def comment(self, comment: str) -> Self:
        """Set the table's comment."""
        check_type(comment, str, "comment", "a string")
        self._comment = comment
        return self

    def addColumn(  # noqa: N802  # Delta's name
        self,
        colName: str,  # noqa: N803  # Delta's name
        dataType: str | spark_types.DataType,  # noqa: N803  # Delta's name
        nullable: bool = True,  # noqa: FBT001, FBT002  # Delta's signature
        generatedAlwaysAs: str | IdentityGenerator | None = None,  # noqa: N803  # Delta's name
        generatedByDefaultAs: IdentityGenerator | None = None,  # noqa: N803  # Delta's name
        comment: str | None = None,
    ) -> Self:
        """Add a column.

        Args:
            colName: the name of the column.
            dataType: Spark's type, or its name in SQL.
            nullable: whether the column may contain NULL.
            generatedAlwaysAs: Spark SQL that computes the values, or an `IdentityGenerator`.
            generatedByDefaultAs: an `IdentityGenerator`, whose values writers may replace by their
                own.
            comment: the comment of the column.

        Raises:
            WrongTypeError: an argument has the wrong type.
            WrongIdentityTypeError: an identity column does not have the type BIGINT.
            InvalidInputError: an argument is invalid, or two of them contradict each other.
        """
        _check_column(colName, dataType, nullable, comment)
        _check_generated(colName, generatedAlwaysAs, generatedByDefaultAs)
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            raise InvalidInputError(
                f"column {colName!r}: generatedByDefaultAs and generatedAlwaysAs cannot both be set"
            )
        metadata: dict[str, Any] = {} if comment is None else {"comment": comment}
        if isinstance(generatedAlwaysAs, str):
            metadata[_GENERATION] = generatedAlwaysAs
        elif generatedAlwaysAs is not None or generatedByDefaultAs is not None:
            numbers = generatedAlwaysAs or generatedByDefaultAs or IdentityGenerator()
            metadata[IDENTITY_START_KEY] = numbers.start
            metadata[IDENTITY_STEP_KEY] = numbers.step
            metadata[IDENTITY_ALLOW_EXPLICIT_INSERT_KEY] = generatedAlwaysAs is None
        parsed = (
            _field_of(colName, dataType)
            if isinstance(dataType, str)
            else spark_schema(spark_types.StructType().add(colName, dataType)).fields[0]
        )
        if IDENTITY_START_KEY in metadata and parsed.type != LONG:
            raise WrongIdentityTypeError(
                f"column {colName!r}: expected BIGINT for an identity column, found {dataType!r}"
            )
        metadata = {**parsed.metadata, **metadata}
        self._fields.append(Field(parsed.name, parsed.type, nullable=nullable, metadata=metadata))
        return self

    def addColumns(self, cols: spark_types.StructType | list[spark_types.StructField]) -> Self:  # noqa: N802  # Delta's name
        """Add the columns of a Spark schema, with their metadata."""
        words = "a StructType or a list of StructField"
        check_type(cols, (spark_types.StructType, list), "addColumns", words)
        for one in cols:
            check_type(one, spark_types.StructField, "addColumns", words)
        struct = cols if isinstance(cols, spark_types.StructType) else spark_types.StructType(cols)
        self._fields += defined_schema(struct).fields
        return self

    def partitionedBy(self, *cols: Any) -> Self:  # noqa: N802  # Delta's name
        """Partition the table by columns."""
        self._partitions = names_of(cols)
        return self

    def clusterBy(self, *cols: Any) -> Self:  # noqa: N802  # Delta's name
        """Cluster the table by columns. Clustering and partitioning cannot be combined."""
        self._clusters = names_of(cols)
        return self

    def property(self, key: str, value: str) -> Self:
        """Set a table property."""
        check_type(key, str, "property: key", "a string")
        check_type(value, str, f"property {key!r}: value", "a string")
        self._properties[key] = value
        return self

    def execute(self) -> Any:
        """Create and open the table.

        Raises:
            TableExistsError: the way is `create`, but the table exists.
            TableNotFoundError: the way is `replace`, but the table does not exist.
            InvalidInputError: no location is set, and no catalog chooses one for the name.
        """
        with as_spark_does():
            named = self._place()
        place = named.place
        store = place.context.store
        shown = f"{self._name} " if self._name else ""
        if self._way == "replace" and not has_table(store):
            raise SparkTableNotFoundError(
                f"cannot replace the table {shown}at {store.root}: it cannot be found; "
                "use createOrReplace to create the table"
            )
        if self._way == "create" and (named.is_known or has_table(store)):
            raise SparkTableExistsError(
                f"cannot create the table {shown}at {store.root}: it already exists; "
                "use createIfNotExists to open it, or createOrReplace to replace it"
            )
        properties = session_settings(self._spark).commit_properties()
        mode: Any = {"create": "error", "createIfNotExists": "ignore"}.get(self._way, "overwrite")
        with session_defaults(self._spark), as_spark_does():
            context = create_table(
                place,
                TableDefinition(
                    schema=StructType(self._fields),
                    partition_by=self._partitions,
                    name=self._name,
                    description=self._comment,
                    configuration=self._properties,
                    cluster_by=self._clusters,
                ),
                mode=mode,
                options=CommitOptions(properties=properties),
            )
        named.note(self._spark)
        return self._open(context)

    def _place(self) -> NamedPlace:
        found = None
        if self._name is not None:
            name = QualifiedName.parse(self._name)
            found = place_of_name(self._spark, name, self._location, self._storage)
        elif self._location is not None:
            found = NamedPlace(place=open_to_write(self._location, self._storage))
        if found is None:
            raise InvalidInputError(f"cannot create the table {self._name!r}: {NO_PLACE}")
        return found


def spark_schema(schema: str | spark_types.StructType) -> StructType:
    """Convert a Spark schema, or a string such as `a INT, b STRING`, to deltalog's schema."""
    if isinstance(schema, spark_types.StructType):
        return defined_schema(schema)
    return StructType(_fields_of(schema))


def _fields_of(text: str) -> list[Field]:
    # `Any`, because PySpark's type hints declare that `fromDDL` returns a `DataType`.
    parsed: Any = spark_types.StructType.fromDDL(text)
    return list(defined_schema(parsed).fields)


def _field_of(name: str, type_text: str) -> Field:
    """Return a column with a SQL type. A string that contains more than the type is an error."""
    fields = _fields_of(f"{quoted(name)} {type_text}")
    said = {key for field in fields for key in field.metadata} - {CHAR_VARCHAR_KEY}
    if len(fields) != 1 or not fields[0].nullable or said:
        raise InvalidInputError(
            f"column {name!r}: expected only a type in dataType, found {type_text!r}; use the "
            "parameters nullable and comment, and call addColumn once for each column"
        )
    return fields[0]


def _check_column(name: object, data_type: object, nullable: object, comment: object) -> None:
    check_type(name, str, "colName", "a name")
    kinds = (str, spark_types.DataType)
    check_type(data_type, kinds, f"column {name!r}: dataType", "a type of Spark or its name")
    check_type(nullable, bool, f"column {name!r}: nullable", "True or False")
    if comment is not None:
        check_type(comment, str, f"column {name!r}: comment", "a string")


def _check_generated(name: str, always: object, by_default: object) -> None:
    if always is not None:
        what, words = f"column {name!r}: generatedAlwaysAs", "SQL or an IdentityGenerator"
        check_type(always, (str, IdentityGenerator), what, words)
        if isinstance(always, str) and not always.strip():
            raise InvalidInputError(f"{what}: expected {words}, found {always!r}")
    if by_default is not None:
        what = f"column {name!r}: generatedByDefaultAs"
        check_type(by_default, IdentityGenerator, what, "an IdentityGenerator")


def names_of(given: tuple[Any, ...]) -> tuple[str, ...]:
    """Return column names that the caller passes as separate arguments or as one list."""
    if len(given) == 1 and isinstance(given[0], list | tuple):
        given = tuple(given[0])
    if not all(isinstance(name, str) for name in given):
        raise WrongTypeError(f"expected column names, found {given!r}")
    return given
