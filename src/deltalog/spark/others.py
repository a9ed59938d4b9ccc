"""Statements of Spark that hold others, or name tables of ours: EXECUTE IMMEDIATE, VIEW, CACHE.

Spark also runs those that write a table of another format; they read ours through a view.

Protocol: none; Spark's SQL reference
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException

from deltalog.errors import InvalidInputError
from deltalog.spark.session.completing import CHANGES
from deltalog.spark.session.formats import left_to_spark
from deltalog.statements.create import CreateStatement
from deltalog.statements.grammar import parse_statement
from deltalog.statements.insert import InsertStatement, SeveralInserts
from deltalog.statements.reader import StatementReader
from deltalog.statements.shows import SelectStatement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from deltalog.query.names import QualifiedName
    from deltalog.spark.cluster_session import ClusterSession
    from deltalog.statements.reader import Parameters
    from deltalog.statements.slices import Query
    from deltalog.statements.statement import SqlStatement

    Run = Callable[[str, Parameters], DataFrame | None]
    Act = Callable[[], DataFrame | None]


# Behind these `TABLE name` is no query.
_BEFORE_TABLE: Final = ("INTO", "OVERWRITE", "CREATE", "REPLACE", "EXTERNAL")


class _OtherReader(StatementReader):
    """Reads statements of which only the queries are known."""

    def before_query(self) -> str:
        """Read up to a query, and return the words before it."""
        start = self.word.start
        while not self.is_at_end and (
            any(map(self._words[self._place - 1].says, _BEFORE_TABLE)) or not self.is_at_query
        ):
            self._place += 1
        return self.sql[start : self.word.start]


def other_rows(
    spark: SparkSession, session: ClusterSession, text: str, parameters: Parameters, run: Run
) -> DataFrame | None:
    """Return the rows of a statement that our grammar does not have; None if Spark must run it.

    Args:
        spark: the session.
        session: in which tables are found.
        text: of the statement.
        parameters: its values.
        run: runs a statement inside of this one.

    Raises:
        InvalidInputError: it names a table of ours where only Spark's tables can be.
    """
    try:
        reader = _OtherReader(text, parameters, takes_foreign=True)
        act: Act | None = None
        if reader.take("EXECUTE IMMEDIATE"):
            act = _read_executed(spark, session, reader, run)
        elif reader.take("CACHE"):
            act = _read_cached(session, reader)
        elif reader.take("CREATE"):
            act = _read_viewed(session, reader) or _read_created(spark, session, text, parameters)
        else:
            act = _read_inserted(spark, session, reader, parameters)
    except InvalidInputError:
        return None  # Spark says what is wrong with it
    return None if act is None else act()


def writes_elsewhere(spark: SparkSession, session: ClusterSession, statement: SqlStatement) -> bool:
    """Whether a statement makes or fills only tables that are Spark's, and may read ours."""
    if isinstance(statement, CreateStatement):
        return not session.makes(statement)
    inserts = statement.inserts if isinstance(statement, SeveralInserts) else (statement,)
    return all(
        isinstance(one, InsertStatement)
        and session.is_concerned(one)
        and not session.is_concerned(one.table)
        and (one.table.location is not None or spark.catalog.tableExists(str(one.table)))
        for one in inserts
    )


def refuse_view(spark: SparkSession, statement: SqlStatement) -> None:
    """Refuse a change of the rows that a view shows.

    Raises:
        InvalidInputError: its table is a view.
    """
    inserts = statement.inserts if isinstance(statement, SeveralInserts) else (statement,)
    for one in inserts:
        if isinstance(one, CHANGES) and one.table.location is None:
            try:
                known = spark.catalog.getTable(str(one.table))
            except (AnalysisException, PySparkException):
                continue
            if known.isTemporary or known.tableType == "VIEW":
                raise InvalidInputError(
                    f"cannot change rows through the view {one.table}: name the table that it shows"
                )


def _read_executed(
    spark: SparkSession, session: ClusterSession, reader: StatementReader, run: Run
) -> Act:
    expression = _expression(reader)
    sets = reader.take("INTO")
    if sets:
        reader.listed(reader.path, is_bracketed=False)
    values: list[tuple[str, str | None]] = []
    if reader.take("USING"):
        is_bracketed = reader.take("(")
        values = reader.listed(lambda: _read_value(reader), is_bracketed=False)
        if is_bracketed:
            reader.expect(")")
    reader.expect_end()

    def act() -> DataFrame | None:
        (text, *found) = spark.sql(
            f"SELECT {', '.join((expression, *(value for value, _ in values)))}"  # its own words
        ).collect()[0]
        names = [name for _, name in values if name is not None]
        given: Parameters = dict(zip(names, found, strict=True)) if names else found or None
        if sets and session.is_concerned(parse_statement(text, given, takes_foreign=True)):
            raise InvalidInputError(
                "cannot run EXECUTE IMMEDIATE … INTO about a Delta table: take the rows of "
                "spark.sql, and set the variables"
            )
        return None if sets else run(text, given)

    return act


def _expression(reader: StatementReader, *stops: str) -> str:
    return reader.condition("INTO", "USING", *stops, by_engine=True).text


def _read_value(reader: StatementReader) -> tuple[str, str | None]:
    return _expression(reader, "AS"), reader.name() if reader.take("AS") else None


def _read_cached(session: ClusterSession, reader: StatementReader) -> Act:
    reader.take("LAZY")
    reader.expect("TABLE")
    name = reader.table()
    if reader.take("OPTIONS"):
        reader.listed(lambda: (reader.text(), reader.take("="), reader.text()))
    about: SqlStatement | QualifiedName = name
    if reader.take("AS") or reader.is_at_query:
        about = SelectStatement(reader.query())
    reader.expect_end()

    def act() -> None:
        if session.is_concerned(about):
            raise InvalidInputError(
                f"cannot run CACHE TABLE {name} about a Delta table: cache a data frame, such as "
                "spark.table(…).cache()"
            )

    return act


def _read_created(
    spark: SparkSession, session: ClusterSession, text: str, parameters: Parameters
) -> Act | None:
    """Read `CREATE TABLE … AS SELECT` of a table of another format."""
    reader = _OtherReader(text, parameters, takes_foreign=True)
    reader.expect("CREATE")
    reader.take("EXTERNAL")
    if not reader.take("TABLE"):
        return None
    reader = _OtherReader(text, parameters, takes_foreign=True)
    return _writing(spark, session, [(reader.before_query(), reader.query())], parameters)


def _read_inserted(
    spark: SparkSession, session: ClusterSession, reader: _OtherReader, parameters: Parameters
) -> Act | None:
    """Read one INSERT into what is no table of ours, or several after FROM."""
    has_relation = reader.take_clauses(("INSERT",))
    found: list[tuple[str, Query]] = []
    while not found or (has_relation and not reader.is_at_end):
        if not reader.is_at("INSERT"):
            return None
        found.append((reader.before_query(), reader.rows()[0]))
    reader.expect_end()
    return _writing(spark, session, found, parameters)


def _writing(
    spark: SparkSession,
    session: ClusterSession,
    parts: Sequence[tuple[str, Query]],
    parameters: Parameters,
) -> Act:
    """Return what lets Spark write the rows of queries: for each, the words before it."""

    def act() -> DataFrame | None:
        if not any(session.is_concerned(SelectStatement(query)) for _, query in parts):
            return None
        given = dict(parameters) if isinstance(parameters, Mapping) else None
        for before, query in parts:
            view = f"deltalog_rows_{uuid4().hex}"
            session.select(query).createOrReplaceTempView(view)
            try:
                with left_to_spark():
                    text = f"{before} SELECT * FROM {view}"  # noqa: S608  # of the statement
                    spark.sql(text, args=given)
            finally:
                spark.catalog.dropTempView(view)
        return session.frame(None)

    return act


def _read_viewed(session: ClusterSession, reader: StatementReader) -> Act | None:
    replaces = reader.take("OR REPLACE")
    is_global = reader.take("GLOBAL")
    is_temporary = reader.take_one("TEMPORARY", "TEMP") is not None
    if not reader.take("VIEW"):
        return None
    reader.take("IF NOT EXISTS")
    name = reader.table()
    is_plain = reader.take("AS")
    if not is_plain:
        return None  # with names of columns, or a comment
    query = reader.query()
    reader.expect_end()

    def act() -> DataFrame | None:
        if not session.is_concerned(SelectStatement(query)):
            return None
        if not is_temporary or len(name.parts) > 1:
            raise InvalidInputError(
                f"cannot create the view {name} of a Delta table: expected CREATE TEMPORARY VIEW "
                "and a name of one part"
            )
        frame = session.select(query)
        way = ("createOrReplace" if replaces else "create") + ("Global" if is_global else "")
        getattr(frame, f"{way}TempView")(name.parts[0])
        return session.frame(None)

    return act
