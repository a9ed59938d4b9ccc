"""`deltalog.spark.sql`: statements about Delta tables on a cluster; all others go to Spark.

Spark answers the queries, and tasks do the verbs (`cluster_session`). What a statement means is the
business of `deltalog.statements`.

Protocol: none
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column, DataFrame

from deltalog.errors import DeltaError, InvalidInputError, TableNotFoundError
from deltalog.spark.cluster_session import ClusterSession
from deltalog.spark.identifiers import with_names
from deltalog.spark.others import other_rows, refuse_view, writes_elsewhere
from deltalog.spark.session.catalogs import catalogs_of
from deltalog.spark.session.completing import completed
from deltalog.spark.session.failures import as_spark_does, check_session
from deltalog.spark.session.formats import left_to_spark
from deltalog.spark.session.settings import session_defaults, session_settings
from deltalog.spark.unread import left_alone
from deltalog.statements.create import CreateStatement
from deltalog.statements.grammar import parse_statement
from deltalog.statements.namespaces import UseStatement
from deltalog.statements.shows import SelectStatement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltalog.statements.reader import Parameters
    from deltalog.statements.statement import SqlStatement

_OF_DELTA: Final = re.compile(
    r"\bdelta(?:log)?\b|^\s*(?:convert|fsck|generate|optimize|reorg|restore|vacuum)\b",
    re.IGNORECASE,
)
"""A statement of which our parser's error says more than Spark's."""


def sql(
    spark: SparkSession,
    statement: str,
    parameters: Parameters = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """Run an SQL statement on a cluster, and return its rows.

    Statements about Delta tables are done by deltalog, in Spark's and Delta Lake's SQL; a query may
    name such tables and others. A statement about nothing of deltalog goes to `spark.sql`.

    Args:
        spark: the session, classic or remote.
        statement: one. A table is named ``delta.`/path```, or by a name that the session's catalog
            has a location for, or by that of a view which deltalog made.
        parameters: values for `?` (a sequence) or `:name` (a mapping).
        storage_options: of the tables that are named by their location.

    Raises:
        InvalidInputError: a statement about a Delta table is not well formed.
        DeltaError: as the verb that it does.
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
    # Without USING, this function makes Delta tables of the rows of Delta tables.
    makes = isinstance(found, CreateStatement)
    if not makes and writes_elsewhere(spark, session, found):
        refuse_view(spark, found)
        with left_to_spark():
            rows = other_rows(spark, session, text, values, run)
    else:
        rows = _answer(spark, session, found)
    return _by_spark(spark, statement, parameters, None) if rows is None else rows


def run_statement(
    spark: SparkSession,
    statement: str,
    parameters: Parameters,
    *,
    own: frozenset[str],
    frames: Mapping[str, DataFrame],
) -> DataFrame | None:
    """Return the rows of a statement about tables in formats of ours; None if Spark must run it.

    Args:
        spark: the session.
        statement: as `spark.sql` got it.
        parameters: likewise.
        own: the formats that are deltalog's in the session.
        frames: that the statement names.

    Raises:
        DeltaError: as the verb that it does.
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
    return rows


def _of_others(
    spark: SparkSession,
    session: ClusterSession,
    statement: str,
    parameters: Parameters,
    own: frozenset[str],
) -> DataFrame | None:
    """Return the rows of a statement that holds others; None if it is none."""

    def run(text: str, given: Parameters) -> DataFrame | None:
        return run_statement(spark, text, given, own=own, frames={})

    return other_rows(spark, session, statement, parameters, run)


def _has_columns(parameters: Parameters) -> bool:
    given = parameters.values() if isinstance(parameters, Mapping) else parameters or ()
    return any(isinstance(value, Column) for value in given)


def _with_values(spark: SparkSession, parameters: Any) -> Parameters:
    """Return parameters with the values of those that are columns of Spark."""
    names = list(parameters) if isinstance(parameters, Mapping) else range(len(parameters))
    asked = [name for name in names if isinstance(parameters[name], Column)]
    columns = [parameters[name].alias(f"c{place}") for place, name in enumerate(asked)]
    (row,) = spark.range(1).select(*columns).collect()
    values = dict(zip(asked, row, strict=True))
    if isinstance(parameters, Mapping):
        return {**parameters, **values}
    return [values.get(place, value) for place, value in enumerate(parameters)]


def _answer(spark: SparkSession, session: ClusterSession, found: SqlStatement) -> DataFrame | None:
    """Run a statement; None if it is about nothing of ours."""
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
    """Let Spark run a statement; what Spark can't read either is our error."""
    given: Any = parameters if isinstance(parameters, dict) or parameters is None else [*parameters]
    try:
        with left_to_spark():
            return spark.sql(statement, args=given)
    except Exception as refused:
        if error is not None and "PARSE_SYNTAX_ERROR" in str(refused):
            raise error from refused
        raise
