# names and locations of tables are in the statements
"""`CREATE TABLE … LOCATION` of a place where a table is: it gets the name, as in Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from deltalog import DeltaTable, connect, write_deltalake
from deltalog.catalogs import UnityCatalog
from deltalog.errors import InvalidInputError, TableExistsError
from tests.catalogs.conftest import QUICK
from tests.support.unity_server import TOKEN, UnityServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalog.statements import Connection

KEY = ("main", "sales", "t")


@pytest.fixture(params=[False, True], ids=["delta api", "older api"])
def connection(request: pytest.FixtureRequest, unity: UnityServer) -> Iterator[Connection]:
    unity.has_delta_api = not request.param
    catalog = UnityCatalog(unity.url, token=TOKEN, allows_local_files=True, http_options=QUICK)
    with connect(catalog=catalog, schema="main.sales") as found:
        yield found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table of two versions that no catalog knows."""
    rows = pa.table({"id": [1, 2], "p": ["a", "b"]})
    for _ in range(2):
        write_deltalake(
            tmp_path / "t",
            rows,
            mode="append",
            partition_by=["p"],
            configuration={"team": "blue"},
        )
    return tmp_path / "t"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE IF NOT EXISTS t LOCATION '{0}'",
        "CREATE TABLE t USING DELTA LOCATION '{0}'",
        "CREATE TABLE IF NOT EXISTS t (id BIGINT, p STRING) PARTITIONED BY (p) LOCATION '{0}'",
        "CREATE TABLE t (id BIGINT, p STRING) TBLPROPERTIES ('team' = 'blue') LOCATION '{0}'",
        "CREATE TABLE IF NOT EXISTS t SHALLOW CLONE delta.`{0}-other` LOCATION '{0}'",
    ],
)
def test_a_table_that_is_there_gets_the_name(
    connection: Connection, unity: UnityServer, place: Path, statement: str
) -> None:
    write_deltalake(f"{place}-other", pa.table({"x": [1]}))
    connection.sql(statement.format(place))
    entry = unity.tables[KEY]
    assert (entry.table_type, entry.location) == ("EXTERNAL", str(place))
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(4,)]
    assert DeltaTable(place).version() == 1
    connection.sql("INSERT INTO t VALUES (3, 'c')")
    assert DeltaTable(place).count() == 5
    connection.sql(f"CREATE TABLE IF NOT EXISTS t LOCATION '{place}'")  # it is known now
    with pytest.raises(TableExistsError):
        connection.sql(f"CREATE TABLE t LOCATION '{place}'")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE OR REPLACE TABLE t (x INT) LOCATION '{0}'",
        "CREATE OR REPLACE TABLE t LOCATION '{0}' AS SELECT 1 AS x",
        "CREATE OR REPLACE TABLE t SHALLOW CLONE delta.`{0}-other` LOCATION '{0}'",
    ],
)
def test_a_table_that_is_replaced_gets_the_name(
    connection: Connection, unity: UnityServer, place: Path, statement: str
) -> None:
    write_deltalake(f"{place}-other", pa.table({"x": pa.array([1], pa.int32())}))
    connection.sql(statement.format(place))
    assert unity.tables[KEY].location == str(place)
    assert DeltaTable(place).version() == 2
    assert [field.name for field in DeltaTable(place).schema()] == ["x"]


@pytest.mark.parametrize(
    ("rest", "what"),
    [
        ("(id INT, p STRING)", "the columns"),
        ("(id BIGINT)", "the columns"),
        ("(id BIGINT, p STRING) PARTITIONED BY (id)", "the partition columns"),
        ("TBLPROPERTIES ('team' = 'red')", "the property team"),
    ],
)
@pytest.mark.parametrize("mode", ["", "IF NOT EXISTS"])
def test_another_table_than_is_defined_does_not(
    connection: Connection, unity: UnityServer, place: Path, mode: str, rest: str, what: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"{what} of the existing table differ"):
        connection.sql(f"CREATE TABLE {mode} t {rest} LOCATION '{place}'")
    assert KEY not in unity.tables


@pytest.mark.parametrize("mode", ["", "IF NOT EXISTS"])
def test_rows_for_a_table_that_is_there(
    connection: Connection, unity: UnityServer, place: Path, mode: str
) -> None:
    with pytest.raises(TableExistsError, match="from rows: a table already exists"):
        connection.sql(f"CREATE TABLE {mode} t LOCATION '{place}' AS SELECT 1 AS id")
    assert KEY not in unity.tables
    assert DeltaTable(place).version() == 1
