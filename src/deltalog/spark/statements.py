"""`deltalog.spark.sql`: run statements about Delta tables on a cluster.

`deltalog.statements` interprets a statement about Delta tables, and Spark tasks run its operations
(see `cluster_session`). Spark runs queries, and all statements without a Delta table.

Protocol: none
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame

from deltalog._util.escaping import name_key
from deltalog.errors import DeltaError, InvalidInputError, TableNotFoundError
from deltalog.query.lexer import TextParts, Word, begins_query, split
from deltalog.query.names import QualifiedName, end_of_value, unquoted
from deltalog.spark.cluster_session import ClusterSession
from deltalog.spark.session.failures import (
    SparkTableNotFoundError,
    as_spark_does,
    check_session,
    session_first,
)
from deltalog.spark.session.names import catalogs_of
from deltalog.spark.session.settings import (
    formats_of,
    left_to_spark,
    session_defaults,
    session_settings,
)
from deltalog.spark.session.splicing import CHANGES, completed
from deltalog.spark.session.workers import check_source
from deltalog.statements.catalog_names import UseStatement, names_in
from deltalog.statements.changes import InsertStatement, SeveralInserts
from deltalog.statements.create import CreateStatement
from deltalog.statements.grammar import parse_statement
from deltalog.statements.maintenance import (
    GenerateStatement,
    OptimizeStatement,
    ReorgStatement,
    RepairStatement,
    RestoreStatement,
    VacuumStatement,
)
from deltalog.statements.reader import Parameters, StatementReader
from deltalog.statements.shows import (
    DescribeDetailStatement,
    DescribeHistoryStatement,
    SelectStatement,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltalog.statements.statement import Query, SqlStatement

    Run = Callable[[str, Parameters], DataFrame | None]
    Act = Callable[[], DataFrame | None]

_OF_DELTA: Final = re.compile(
    r"\bdelta(?:log)?\b|^\s*(?:convert|fsck|generate|optimize|reorg|restore|vacuum)\b",
    re.IGNORECASE,
)
"""The pattern of statements for which deltalog's parser reports a better error than Spark's."""
_ONLY_OF_DELTA: Final = (
    DescribeDetailStatement,
    DescribeHistoryStatement,
    GenerateStatement,
    OptimizeStatement,
    ReorgStatement,
    RepairStatement,
    RestoreStatement,
    VacuumStatement,
)
"""Statements that Spark's grammar lacks. Delta's jar adds them."""
_NOT_UNDERSTOOD: Final = re.compile(
    r"PARSE_SYNTAX_ERROR|table or view `(?:detail|history)` cannot be found", re.IGNORECASE
)
"""The errors of Spark about these statements. `DESCRIBE HISTORY t` is column `t` of `HISTORY`."""


@session_first
def sql(
    spark: SparkSession,
    statement: str,
    parameters: Parameters = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Run an SQL statement on a cluster, and return its rows.

    deltalog runs statements about Delta tables, in the SQL dialect of Spark and Delta Lake. A query
    may also use other tables. Spark runs statements without a Delta table.

    Args:
        spark: the session, classic or remote.
        statement: one statement. The name of a table is ``delta.`/path```, a name in the session's
            catalog that has a location, or the name of a view that deltalog created.
        parameters: values for `?` (a sequence) or for `:name` (a mapping).
        storage_options: credentials and settings for tables that are named by their location.

    Raises:
        InvalidInputError: a statement about a Delta table is not valid SQL.
        DeltaError: the operation of the statement failed.
    """
    check_session(spark)
    session = ClusterSession(spark, storage_options)
    text, values = with_names(spark, statement, parameters)

    def run(inner: str, given: Parameters) -> DataFrame:
        return sql(spark, inner, given, storage_options=storage_options)

    try:
        found = parse_statement(text, values, takes_foreign=True)
    except InvalidInputError as error:
        by_spark = partial(_by_spark, spark, statement, parameters, error)
        if not isinstance(text, str):
            raise
        with left_to_spark():
            rows = other_rows(spark, session, text, values, run)
            if rows is None:
                rows = left_alone(session, text, error, by_spark)
        return by_spark() if rows is None else rows
    # Without USING, CREATE TABLE … AS SELECT creates a Delta table if the query reads Delta tables.
    # So deltalog runs this statement, although `writes_elsewhere` may be true.
    makes = isinstance(found, CreateStatement)
    if not makes and writes_elsewhere(spark, session, found):
        refuse_view(spark, found)
        with left_to_spark():
            rows = other_rows(spark, session, text, values, run)
    else:
        rows = _answer(spark, session, found)
    return _by_spark(spark, statement, parameters, _unknown_table(found)) if rows is None else rows


def run_statement(
    spark: SparkSession,
    statement: str,
    parameters: Parameters,
    *,
    own: frozenset[str],
    frames: Mapping[str, DataFrame],
) -> DataFrame | None:
    """Return the rows of a statement about deltalog's tables; None if Spark must run the statement.

    Args:
        spark: the session.
        statement: the argument of `spark.sql`.
        parameters: the values of the statement's parameters.
        own: the names under which the session has registered deltalog's formats.
        frames: the dataframes that the statement can use: name → dataframe.

    Raises:
        DeltaError: the operation of the statement failed.
    """
    session = ClusterSession(spark, None, own=own, frames=frames)
    text, values = with_names(spark, statement, parameters)
    try:
        found = parse_statement(text, values, takes_foreign=True)
        if not isinstance(found, SelectStatement) and _has_columns(values):
            known = _with_values(spark, values)
            found = parse_statement(text, known, takes_foreign=True)
    except InvalidInputError as error:
        rows = _of_others(spark, session, text, values, own)
        is_ours = _OF_DELTA.search(statement) is not None
        by_spark = partial(_by_spark, spark, statement, parameters, error if is_ours else None)
        if rows is None and not frames:
            rows = left_alone(session, text, error, by_spark)
        return by_spark() if rows is None and is_ours else rows
    check = partial(refuse_view, spark, found) if "delta" in own else None
    if writes_elsewhere(spark, session, found):
        if check is not None:
            check()
        return _of_others(spark, session, text, values, own)
    try:
        rows = _answer(spark, session, found)
    except TableNotFoundError:
        if check is not None:
            check()
        raise
    if rows is None and check is not None:
        check()
    unknown = None if rows is not None else _unknown_table(found)
    return rows if unknown is None else _by_spark(spark, statement, parameters, unknown)


def _unknown_table(statement: SqlStatement) -> DeltaError | None:
    """Return the error about a statement that only Delta knows, whose table was not found."""
    if not isinstance(statement, _ONLY_OF_DELTA):
        return None
    name = next(names_in(statement))
    return SparkTableNotFoundError(
        f"cannot find the Delta table {name}: expected a table in Spark's catalog or in a "
        "registered catalog; a location is written delta.`/path`"
    )


def _of_others(
    spark: SparkSession,
    session: ClusterSession,
    statement: str,
    parameters: Parameters,
    own: frozenset[str],
) -> DataFrame | None:
    """Run a statement that only Spark's grammar contains; None if Spark must run it unchanged."""

    def run(text: str, given: Parameters) -> DataFrame | None:
        return run_statement(spark, text, given, own=own, frames={})

    return other_rows(spark, session, statement, parameters, run)


def _has_columns(parameters: Parameters) -> bool:
    given = parameters.values() if isinstance(parameters, Mapping) else parameters or ()
    return any(isinstance(value, Column) for value in given)


def _with_values(spark: SparkSession, parameters: Any) -> Parameters:
    """Return the parameters. Each Spark column in them is replaced by its value."""
    names = list(parameters) if isinstance(parameters, Mapping) else range(len(parameters))
    asked = [name for name in names if isinstance(parameters[name], Column)]
    columns = [parameters[name].alias(f"c{place}") for place, name in enumerate(asked)]
    (row,) = spark.range(1).select(*columns).collect()
    values = dict(zip(asked, row, strict=True))
    if isinstance(parameters, Mapping):
        return {**parameters, **values}
    return [values.get(place, value) for place, value in enumerate(parameters)]


def _answer(spark: SparkSession, session: ClusterSession, found: SqlStatement) -> DataFrame | None:
    """Run a statement and return its rows; None if it uses no table of deltalog."""
    if not session.is_concerned(found):
        if isinstance(found, UseStatement):
            catalogs_of(spark).names.leave()
        return None
    with as_spark_does(), session_defaults(spark):
        merges = bool(session_settings(spark).merge_schema)
        answer = completed(found, session.full_name, merges=merges).run(session)
    if isinstance(answer.rows, DataFrame):
        return answer.rows
    return session.frame(answer.rows)


def _by_spark(
    spark: SparkSession, statement: str, parameters: Parameters, error: DeltaError | None
) -> DataFrame:
    """Run a statement in Spark. If Spark cannot parse it either, deltalog's error is raised."""
    given: Any = parameters if isinstance(parameters, dict) or parameters is None else [*parameters]
    try:
        with left_to_spark():
            return spark.sql(statement, args=given)
    except Exception as refused:
        if error is not None and _NOT_UNDERSTOOD.search(str(refused)):
            raise error from refused
        raise


# --- statements that only Spark's grammar contains: EXECUTE IMMEDIATE, CREATE VIEW, CACHE TABLE


# Words before `TABLE`. After another word, `TABLE name` is a query that returns the table's rows.
_BEFORE_TABLE: Final = ("INTO", "OVERWRITE", "CREATE", "REPLACE", "EXTERNAL")


class _OtherReader(StatementReader):
    """Parser of statements in which deltalog can parse only the queries."""

    def before_query(self) -> str:
        """Skip to the next query, and return the words before it."""
        start = self.word.start
        while not self.is_at_end and (
            any(map(self._words[self._place - 1].says, _BEFORE_TABLE)) or not self.is_at_query
        ):
            self._place += 1
        return self.sql[start : self.word.start]


def other_rows(
    spark: SparkSession, session: ClusterSession, text: str, parameters: Parameters, run: Run
) -> DataFrame | None:
    """Run a statement that deltalog's grammar lacks; None if Spark must run it unchanged.

    Args:
        spark: the session.
        session: the session that finds tables by name.
        text: the statement.
        parameters: the values of its parameters.
        run: a function that runs a nested statement.

    Raises:
        InvalidInputError: the statement uses a deltalog table in a place where Spark supports only
            its own tables.
    """
    try:
        reader = _OtherReader(text, parameters, takes_foreign=True)
        act: Act | None = None
        if reader.take("EXECUTE IMMEDIATE"):
            act = _read_executed(spark, session, reader, run)
        elif reader.take("CACHE"):
            act = _read_cached(session, reader)
        elif reader.take("CREATE"):
            act = _read_viewed(spark, session, reader)
            act = act or _read_created(spark, session, text, parameters)
        else:
            act = _read_inserted(spark, session, reader, parameters)
    except InvalidInputError:
        return None  # Spark reports the error in the statement
    return None if act is None else act()


def writes_elsewhere(spark: SparkSession, session: ClusterSession, statement: SqlStatement) -> bool:
    """Return whether a statement creates or fills only tables that deltalog does not manage."""
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
    """Refuse a change of rows through a view.

    Raises:
        InvalidInputError: the statement's table is a view.
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
                    f"cannot change rows through the view {one.table}: name the table that it reads"
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
        # All expressions in this query are parts of the user's statement.
        (text, *found) = spark.sql(
            f"SELECT {', '.join((expression, *(value for value, _ in values)))}"
        ).collect()[0]
        names = [name for _, name in values if name is not None]
        given: Parameters = dict(zip(names, found, strict=True)) if names else found or None
        if sets and session.is_concerned(parse_statement(text, given, takes_foreign=True)):
            raise InvalidInputError(
                "cannot run EXECUTE IMMEDIATE … INTO about a Delta table: read the rows that "
                "spark.sql returns, and set the variables"
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
                f"cannot run CACHE TABLE {name} about a Delta table: cache a dataframe, such as "
                "spark.table(…).cache()"
            )

    return act


def _read_created(
    spark: SparkSession, session: ClusterSession, text: str, parameters: Parameters
) -> Act | None:
    """Parse `CREATE TABLE … AS SELECT`, if the new table has another format."""
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
    """Parse INSERT into a table of another format, or several such INSERTs after FROM."""
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
    """Return a function that makes Spark insert the rows of queries into other tables.

    Args:
        spark: the session.
        session: the session that finds tables by name.
        parts: each query, with the words of the statement before it.
        parameters: the values of the statement's parameters.
    """

    def act() -> DataFrame | None:
        if not any(session.is_concerned(SelectStatement(query)) for _, query in parts):
            return None
        given = dict(parameters) if isinstance(parameters, Mapping) else None
        for before, query in parts:
            view = f"deltalog_rows_{uuid4().hex}"
            session.select(query).createOrReplaceTempView(view)
            try:
                with left_to_spark():
                    text = f"{before} SELECT * FROM {view}"  # noqa: S608  # only parts of the user's statement
                    spark.sql(text, args=given)
            finally:
                spark.catalog.dropTempView(view)
        return session.frame(None)

    return act


def _read_viewed(
    spark: SparkSession, session: ClusterSession, reader: StatementReader
) -> Act | None:
    replaces = reader.take("OR REPLACE")
    is_global = reader.take("GLOBAL")
    is_temporary = reader.take_one("TEMPORARY", "TEMP") is not None
    if not reader.take("VIEW"):
        return None
    reader.take("IF NOT EXISTS")
    name = reader.table()
    if reader.take("USING"):
        # Spark's data source reads such a view.
        return (
            partial(check_source, spark) if name_key(reader.name()) in formats_of(spark) else None
        )
    is_plain = reader.take("AS")
    if not is_plain:
        return None  # column names or a comment follow the view's name, so Spark must parse them
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


# --- `IDENTIFIER(…)` in Spark's SQL, whose argument is a constant expression for a name


_CALLED: Final = re.compile(r"\bidentifier\s*\(", re.IGNORECASE)


def with_names(spark: SparkSession, text: Any, parameters: Parameters) -> tuple[str, Parameters]:
    """Replace `IDENTIFIER(…)` by names. Return the statement and the parameters that remain.

    If the value of an expression is not a constant, the expression is not replaced, because
    `identifier` may also be the name of a function or table.

    Args:
        spark: the session, which evaluates expressions.
        text: the statement.
        parameters: values for `?` or `:name`.

    Cost: one call to Spark for each `IDENTIFIER(…)`.
    """
    if not (isinstance(text, str) and _CALLED.search(text)):
        return text, parameters
    try:
        words = split(text)
    except InvalidInputError:
        return text, parameters
    is_listed = isinstance(parameters, Sequence) and not isinstance(parameters, str | bytes)
    left: list[Any] = list(parameters) if is_listed else []  # type: ignore[arg-type]
    kept: list[Any] = []
    parts = TextParts(text)
    place = 0
    while (word := words[place]).kind != "end":
        end = place + 1
        is_part = place > 0 and words[place - 1].says(".")
        if word.says("IDENTIFIER") and words[end].says("(") and not is_part:
            end = end_of_value(words, place)
        marks = sum(one.says("?") for one in words[place:end])
        given, left = left[:marks], left[marks:]
        name = None
        if end > place + 1:
            expression = text[words[place + 1].start : words[end - 1].end]
            name = _name(spark, expression, given if is_listed else parameters)
        if name is None:
            kept += given
        else:
            parts.replace(word.start, words[end - 1].end, str(name))
        place = end
    return parts.done(len(text)).text, [*kept, *left] if is_listed else parameters


def _name(spark: SparkSession, expression: str, given: Any) -> QualifiedName | None:
    values = dict(given) if isinstance(given, Mapping) else given or None
    try:
        with left_to_spark():
            found = spark.sql(f"SELECT {expression}", args=values).collect()
        return QualifiedName.parse(found[0][0])
    except Exception:  # noqa: BLE001  # if it is no constant name, Spark reports the error
        return None


# --- errors for statements that use deltalog's tables and that only Spark can parse


_BEFORE_UNREAD: Final = ("JOIN", "INTO", "TABLE", "UPDATE", "USING", "OVERWRITE")
_AFTER_RELATIONS: Final = ("SELECT", "WHERE", "GROUP", "ORDER", "HAVING", "SET", "ON", ">", ";")
_BY_ITSELF: Final = re.compile(
    r"PYTHON_DATA_SOURCE_ERROR|NOT_SUPPORTED_COMMAND_FOR_V2_TABLE|INVALID_PARTITION_OPERATION"
    r"|UNSUPPORTED_FEATURE\.TABLE_OPERATION|[Tt]able does not support"
)
_NOT_FOUND: Final = "TABLE_OR_VIEW_NOT_FOUND"
"""Spark's error for a location as a name, which only deltalog's own statements know."""
# Matches the end of a parser error, from the position of the error. Errors at the first word of a
# statement do not match, because their messages only list all kinds of statements.
_PLACE: Final = re.compile(r"at line (?!1, character 1:)\d+, character \d+: .*", re.DOTALL)
_EXCERPT: Final = 80
_KIND_WORDS: Final = 6


def left_alone(
    session: ClusterSession,
    text: str,
    problem: InvalidInputError,
    run: Callable[[], DataFrame],
) -> DataFrame | None:
    """Make Spark run a statement that names a deltalog table; return None for others.

    Args:
        session: the session that finds tables by name.
        text: the statement.
        problem: deltalog's error, which explains why deltalog cannot parse the statement.
        run: a function that runs the statement in Spark.

    Raises:
        InvalidInputError: Spark would read or change the table without deltalog.
    """
    try:
        words = split(text)
    except InvalidInputError:
        return None
    table = next(filter(session.is_concerned, _tables(words)), None)
    if table is None:
        return None
    shown = text.strip()
    shown = shown if len(shown) <= _EXCERPT else shown[:_EXCERPT] + "…"
    attempt = f"cannot run the statement {shown!r} about the Delta table {table}"
    if words[0].says("BEGIN"):
        raise InvalidInputError(
            f"{attempt} in a script: run the statements of BEGIN … END one by one with spark.sql"
        )
    if any(map(words[0].says, ("CREATE", "ALTER"))):
        kinds = words[1:_KIND_WORDS]
        if any(word.says("FUNCTION") for word in kinds):
            raise InvalidInputError(
                f"{attempt}: a function of Spark cannot read it; write the query in place of the "
                "function call"
            )
        if any(word.says("VIEW") for word in kinds):
            raise InvalidInputError(
                f"{attempt}: expected CREATE [OR REPLACE] TEMPORARY VIEW name AS query; set the "
                "column names in the query"
            )
    found = _PLACE.search(str(problem))
    why = f" ({found[0]})" if found is not None else ""
    refusal = (
        f"{attempt}: deltalog does not support this form{why}, and Spark alone can neither read "
        f"nor change the table; use another form, or the dataframe spark.table({str(table)!r})"
    )
    try:
        frame = run()
        is_read = begins_query(words, 0) and bool(frame.columns)
    except Exception as error:
        is_unknown = table.location is not None and _NOT_FOUND in str(error)
        if not is_unknown and _BY_ITSELF.search(str(error)) is None:
            raise
        raise InvalidInputError(refusal) from error
    if is_read:
        raise InvalidInputError(refusal) from problem
    return frame


def _tables(words: Sequence[Word]) -> Iterator[QualifiedName]:
    """Yield the names in places where SQL expects a table, except names that WITH defines."""
    given = {
        name_key(unquoted(word.text))
        for place, word in enumerate(words[:-2])
        if words[place + 1].says("AS") and words[place + 2].says("(")
    }
    # A stack: the first element is for the statement, and each further element is for an open
    # parenthesis. An element contains whether the text is a query, and whether the current word is
    # in the query's FROM clause. In a FROM clause, the name of a table follows each comma.
    around = [[True, False]]
    for place, word in enumerate(words[:-1]):
        before = words[place - 1] if place else words[-1]
        follows = False
        if word.says("("):
            around.append([begins_query(words, place + 1), False])
        elif word.says(")"):
            del around[max(1, len(around) - 1) :]
        elif word.says("FROM"):
            follows = around[-1][1] = around[-1][0] and not before.says("DISTINCT")
        elif word.says(","):
            follows = around[-1][1]
        elif any(map(word.says, _AFTER_RELATIONS)):
            around[-1][1] = False
        else:
            follows = any(map(word.says, _BEFORE_UNREAD))
        parts = _path(words, place + 1) if follows else ()
        if parts and not (len(parts) == 1 and name_key(parts[0]) in given):
            yield QualifiedName(parts)


def _path(words: Sequence[Word], place: int) -> tuple[str, ...]:
    """Return the parts of the dotted name that starts at a word; empty if no name starts there."""
    parts: list[str] = []
    while words[place].kind in {"word", "quoted"}:
        parts.append(unquoted(words[place].text))
        if not words[place + 1].says("."):
            break
        place += 2
    return tuple(parts)
