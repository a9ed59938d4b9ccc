"""Statements made from a grammar, run by the reference and by us on copies of one table."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import deltalog
from deltalog import DeltaTable
from tests.support import reference
from tests.support.reference_scenarios import FULL
from tests.support.sql_by_both import assert_same_rows, changes, facts, in_order, same, told
from tests.support.sql_generated import CREATE, FILL, statements

STATEMENTS = 300 if FULL else 16
FILLED = 1  # the version of the table that all statements are for
SEED = int(os.environ.get("DELTALOG_SQL_SEED", "16"))

# What is computed for constants before the rows are read may leave out an operand that fails.
_RULES = "ConstantFolding BooleanSimplification SimplifyConditionals PruneFilters NullPropagation"
_OPTIMIZED = "RESET spark.sql.optimizer.excludedRules"
_AS_WRITTEN = "SET spark.sql.optimizer.excludedRules=" + ",".join(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in _RULES.split()
)


@pytest.fixture(scope="module")
def tables(spark: reference.Spark) -> Iterator[Path]:
    """A directory with the table as it is whole, and as it is partitioned with vectors."""
    spark.run(_AS_WRITTEN)
    with tempfile.TemporaryDirectory(prefix="generated-", ignore_cleanup_errors=True) as path:
        for name, layout, vectors in (
            ("whole", "", "true"),
            ("parted", "PARTITIONED BY (g)", "false"),
        ):
            create = CREATE.format(layout=layout, vectors=vectors)
            columns = "i, l, d, x, s, dt, ts, b, st, `odd name`, g"
            fill = FILL.replace("INSERT INTO T", f"INSERT INTO T ({columns})")
            spark.tell(Path(path) / name, create, fill)
        yield Path(path)
    spark.run(_OPTIMIZED)


def of(statement: str, table: Path) -> str:
    return re.sub(r"\bT\b", f"delta.`{table}`", statement)


def check(spark: reference.Spark, tables: Path, statement: str, name: str) -> None:
    """Compare what both answer, and the tables that both leave."""
    theirs = mine = tables / name
    is_query = statement.startswith("SELECT")
    if not is_query:
        theirs, mine = tables / "theirs", tables / "mine"
        for copy in (theirs, mine):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(tables / name, copy)
    expected = told(lambda: spark.query(of(statement, theirs)))
    found = told(lambda: deltalog.sql(of(statement, mine)).to_arrow())
    if isinstance(expected, reference.ReferenceError) and not isinstance(found, Exception):
        # A file that is left out for a bound which is a constant expression has no row that fails.
        spark.run(_OPTIMIZED)
        expected = told(lambda: spark.query(of(statement, theirs)))
        spark.run(_AS_WRITTEN)
    if isinstance(expected, reference.ReferenceError):
        assert isinstance(found, Exception), f"the reference refused, we did not: {expected}"
        return
    assert not isinstance(expected, Exception)
    assert not isinstance(found, Exception), f"we refused: {found}"
    if is_query:
        assert_same_rows(statement, expected, found)
        return
    both = [DeltaTable(table) for table in (theirs, mine)]
    rows = [in_order(table.to_pyarrow_table()) for table in both]
    same("rows", rows[1], rows[0])
    same("rows as the reference reads them", in_order(spark.read(mine)), rows[0])
    same("facts", facts(both[1]), facts(both[0]))
    same("changes", feed(both[1]), feed(both[0]))


def feed(table: DeltaTable) -> list[str]:
    """The changes since the table was filled; one of both may commit nothing where nothing is."""
    return sorted(row for rows in changes(table)[:-FILLED] for row in rows)


@seed(SEED)
@settings(
    max_examples=STATEMENTS,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(statement=statements(), name=st.sampled_from(["whole", "parted"]))
def test_generated_statements_do_the_same_by_both(
    spark: reference.Spark, tables: Path, statement: str, name: str
) -> None:
    check(spark, tables, statement, name)
