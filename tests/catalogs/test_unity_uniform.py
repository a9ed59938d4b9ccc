# ruff: noqa: S608  # names and locations of tables are in the statements
"""Tables with Iceberg metadata: the catalog is told which file shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import connect, write_deltalake
from deltalog.catalogs.unity import UnityCatalog
from deltalog.errors import InvalidInputError
from deltalog.statements import Connection
from tests.catalogs.conftest import QUICK
from tests.support.unity_server import TOKEN, UnityServer

pytest.importorskip("pyiceberg", reason="pyiceberg is not installed")

ICEBERG = "'delta.universalFormat.enabledFormats' = 'iceberg'"
V3 = f"TBLPROPERTIES ({ICEBERG}, 'delta.enableIcebergCompatV3' = 'true')"
V2 = f"TBLPROPERTIES ({ICEBERG}, 'delta.enableIcebergCompatV2' = 'true')"


@pytest.fixture
def connection(unity: UnityServer) -> Iterator[Connection]:
    catalog = UnityCatalog(unity.url, token=TOKEN, allows_local_files=True, http_options=QUICK)
    with connect(catalog=catalog, schema="main.sales") as found:
        yield found


def shown(entry: dict[str, object]) -> dict[str, object]:
    """The metadata file that an entry names."""
    path = Path(str(entry["metadata-location"]).removeprefix("file://"))
    found: dict[str, object] = json.loads(path.read_bytes())
    return found


def test_a_managed_table_with_iceberg_metadata(connection: Connection, unity: UnityServer) -> None:
    connection.sql(f"CREATE TABLE t (id BIGINT) {V3}")
    for number in range(3):
        connection.sql(f"INSERT INTO t VALUES ({number})")
    connection.sql("ALTER TABLE t ADD COLUMN v STRING")
    connection.sql("DELETE FROM t WHERE id = 1")
    # Each commit is proposed before its own metadata can be written.
    versions = [entry["converted-delta-version"] for entry in unity.uniform]
    assert versions == [0, 0, 1, 2, 3, 4]
    for entry in unity.uniform:
        metadata = shown(entry)
        assert metadata["properties"]["delta-version"] == str(  # type: ignore[index]
            entry["converted-delta-version"]
        )
        assert metadata["properties"]["delta-timestamp"] == str(  # type: ignore[index]
            entry["converted-delta-timestamp"]
        )
    assert connection.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 2}]


def test_an_external_table_with_iceberg_metadata(
    connection: Connection, unity: UnityServer, tmp_path: Path
) -> None:
    connection.sql(f"CREATE TABLE e (id BIGINT) {V2} LOCATION '{tmp_path}/e'")
    connection.sql("INSERT INTO e VALUES (1)")
    (entry,) = unity.uniform
    assert entry["converted-delta-version"] == 0
    assert shown(entry)["format-version"] == 2
    connection.sql("DROP TABLE e")
    connection.sql(f"CREATE TABLE e LOCATION '{tmp_path}/e'")
    assert unity.uniform[-1]["converted-delta-version"] == 1


def test_iceberg_metadata_of_a_table_that_is_there(
    connection: Connection, unity: UnityServer, caplog: pytest.LogCaptureFixture
) -> None:
    connection.sql("CREATE TABLE t (id BIGINT)")
    connection.sql("INSERT INTO t VALUES (1)")
    on = "'delta.enableIcebergCompatV3' = 'true', 'delta.columnMapping.mode' = 'name'"
    connection.sql(f"ALTER TABLE t SET TBLPROPERTIES ({on})")
    connection.sql(f"ALTER TABLE t SET TBLPROPERTIES ({ICEBERG})")
    (told,) = unity.updates
    assert told is not None
    assert told["iceberg"]["converted-delta-version"] == 2
    connection.sql("INSERT INTO t VALUES (2)")
    assert [entry["converted-delta-version"] for entry in unity.uniform] == [3]
    connection.sql("CREATE TABLE u (id BIGINT)")
    with caplog.at_level("WARNING"):
        connection.sql(f"ALTER TABLE u SET TBLPROPERTIES ({on}, {ICEBERG})")
    assert "in a second statement" in caplog.text


def test_compatibility_that_managed_tables_do_not_take_is_refused(
    connection: Connection, unity: UnityServer
) -> None:
    with pytest.raises(
        InvalidInputError, match=r"or set delta.enableIcebergCompatV3 = true instead"
    ):
        connection.sql(f"CREATE TABLE t (id BIGINT) {V2}")
    assert not unity.tables


def test_other_tables_cost_nothing_more(
    connection: Connection, unity: UnityServer, tmp_path: Path
) -> None:
    write_deltalake(tmp_path / "e", pa.table({"id": [1]}))
    connection.sql(f"CREATE TABLE e LOCATION '{tmp_path}/e'")
    connection.sql("CREATE TABLE t (id BIGINT)")
    connection.sql("INSERT INTO t VALUES (1)")
    assert unity.uniform == []
