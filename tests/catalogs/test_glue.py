"""Tables of AWS Glue, against moto's server."""

from __future__ import annotations

import logging
import pickle
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, StructType, write_deltalake
from deltalog.catalogs import GlueCatalog, TableCatalog, TableType
from deltalog.errors import (
    CatalogUnavailableError,
    InvalidInputError,
    TableExistsError,
    TableNotFoundError,
    UnsafePathError,
)
from deltalog.schema import ArrayType
from tests.support.catalogs import create
from tests.support.emulators import Emulator

ROWS = pa.table({"id": [1, 2, 3]})
SCHEMA = StructType(
    (
        Field("id", PrimitiveType("long"), metadata={"comment": "of the order"}),
        Field("tags", ArrayType(PrimitiveType("integer"))),
    )
)
KEY = "a-secret-of-the-caller"


def _options(emulator: Emulator) -> dict[str, str]:
    return {
        "endpoint_url": emulator.endpoint,
        "region_name": "us-east-1",
        "aws_access_key_id": "testing",
        "aws_secret_access_key": KEY,
    }


@pytest.fixture
def client(s3: Emulator) -> Any:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    return boto3.client("glue", **_options(s3))


@pytest.fixture
def database(s3: Emulator, client: Any) -> str:
    name = f"sales_{uuid.uuid4().hex[:8]}"
    client.create_database(DatabaseInput={"Name": name, "LocationUri": f"{s3.url}/{name}"})
    return name


@pytest.fixture
def catalog(s3: Emulator, client: Any) -> GlueCatalog:
    del client
    return GlueCatalog(client_options=_options(s3), storage_options=s3.options)


def test_a_table_is_created_written_and_kept_in_step(
    catalog: GlueCatalog, client: Any, database: str, s3: Emulator
) -> None:
    assert isinstance(catalog, TableCatalog)
    name = (database, "orders")
    made = create(catalog, name, SCHEMA, {"team": "blue"}, description="all of them")
    assert (made.table_type, made.provider, made.comment) == (
        TableType.EXTERNAL,
        "delta",
        "all of them",
    )
    assert made.location == f"{s3.url}/{database}/orders"
    entry = client.get_table(DatabaseName=database, Name="orders")["Table"]
    assert entry["Parameters"]["spark.sql.sources.provider"] == "delta"
    assert entry["Parameters"]["table_type"] == "DELTA"
    assert entry["StorageDescriptor"]["Columns"] == [
        {"Name": "id", "Type": "bigint", "Comment": "of the order"},
        {"Name": "tags", "Type": "array<int>"},
    ]
    table = DeltaTable.from_context(catalog.open(name))
    write_deltalake(table, ROWS, mode="append")
    table.alter.add_columns([Field("price", PrimitiveType("double"))])
    table.alter.set_table_properties({"team": "red", "delta.appendOnly": "true"}, False)
    table.alter.unset_table_properties(["delta.appendOnly"])
    entry = client.get_table(DatabaseName=database, Name="orders")["Table"]
    assert [one["Name"] for one in entry["StorageDescriptor"]["Columns"]] == ["id", "tags", "price"]
    assert entry["Parameters"]["team"] == "red"
    assert "delta.appendOnly" not in entry["Parameters"]
    assert entry["Parameters"]["delta.lastUpdateVersion"] == "4"
    assert entry["Parameters"]["classification"] == "delta"
    assert DeltaTable.from_context(catalog.open(name)).to_pyarrow_table().num_rows == 3


def test_tables_are_listed_and_dropped(catalog: GlueCatalog, database: str) -> None:
    for table in ("b", "a"):
        create(catalog, (database, table), SCHEMA)
    assert (database,) in catalog.list_schemas()
    assert catalog.list_schemas((database,)) == [(database,)]
    assert catalog.list_tables((database,)) == [(database, "a"), (database, "b")]
    with pytest.raises(TableExistsError):
        catalog.stage((database, "a"))
    with pytest.raises(InvalidInputError, match="purge"):
        catalog.drop((database, "a"), purge=True)
    catalog.drop((database, "a"))
    assert catalog.find((database, "a")) is None
    with pytest.raises(TableNotFoundError):
        catalog.drop((database, "a"))
    with pytest.raises(TableNotFoundError):
        catalog.open((database, "a"))
    with pytest.raises(TableNotFoundError):
        catalog.list_tables(("nowhere",))


def test_two_creators_meet(catalog: GlueCatalog, database: str, s3: Emulator) -> None:
    late = catalog.stage((database, "orders"), f"{s3.url}/mine")
    create(catalog, (database, "orders"), SCHEMA, location=f"{s3.url}/theirs")
    write_deltalake(f"{s3.url}/mine", ROWS, storage_options=s3.options)
    snapshot = DeltaTable.from_context(late.context).snapshot
    with pytest.raises(TableExistsError):
        catalog.register(late, snapshot)
    # Whose entry is there already is no conflict: perhaps an answer was lost.
    again = catalog.stage((database, "again"), f"{s3.url}/mine")
    assert catalog.register(again, snapshot) == catalog.register(again, snapshot)


@pytest.mark.parametrize(
    ("parameters", "provider"),
    [
        ({"spark.sql.sources.provider": "delta"}, "delta"),
        ({"table_type": "DELTA"}, "delta"),
        ({"classification": "delta"}, "delta"),
        ({"table_type": "ICEBERG"}, "iceberg"),
        ({}, "unknown"),
    ],
)
def test_what_other_engines_registered(
    catalog: GlueCatalog,
    client: Any,
    database: str,
    s3: Emulator,
    parameters: dict[str, str],
    provider: str,
) -> None:
    write_deltalake(f"{s3.url}/theirs", ROWS, storage_options=s3.options)
    storage = {
        "Location": f"{s3.url}/{database}/x-__PLACEHOLDER__",
        "SerdeInfo": {"Parameters": {"path": f"{s3.url}/theirs"}},
    }
    client.create_table(
        DatabaseName=database,
        TableInput={"Name": "x", "Parameters": parameters, "StorageDescriptor": storage},
    )
    found = catalog.find((database, "x"))
    assert found is not None
    assert (found.provider, found.location) == (provider, f"{s3.url}/theirs")
    if provider == "delta":
        table = DeltaTable.from_context(catalog.open((database, "x")))
        assert table.to_pyarrow_table().num_rows == 3
    else:
        with pytest.raises(InvalidInputError, match="not Delta"):
            catalog.open((database, "x"))


def test_a_table_is_synchronized_and_relocated(
    catalog: GlueCatalog, client: Any, database: str, s3: Emulator
) -> None:
    name = (database, "orders")
    create(catalog, name, SCHEMA)
    write_deltalake(f"{s3.url}/other", ROWS, storage_options=s3.options)
    catalog.relocate(name, f"{s3.url}/other")
    table = DeltaTable.from_context(catalog.open(name))
    assert table.table_uri == f"{s3.url}/other"
    catalog.synchronize(name, table.snapshot)
    entry = client.get_table(DatabaseName=database, Name="orders")["Table"]
    assert [one["Name"] for one in entry["StorageDescriptor"]["Columns"]] == ["id"]
    with pytest.raises(UnsafePathError):
        catalog.relocate(name, "file:///etc")
    with pytest.raises(InvalidInputError, match="cannot rename"):
        catalog.rename(name, (database, "new"))


def test_a_place_of_this_machine_is_refused(
    catalog: GlueCatalog, client: Any, database: str, s3: Emulator, tmp_path: Path
) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    client.create_table(
        DatabaseName=database,
        TableInput={
            "Name": "x",
            "Parameters": {"table_type": "DELTA"},
            "StorageDescriptor": {"Location": f"file://{tmp_path}/t"},
        },
    )
    with pytest.raises(UnsafePathError, match="files of this machine"):
        catalog.open((database, "x"))
    allowed = GlueCatalog(client_options=_options(s3), allows_local_files=True)
    assert DeltaTable.from_context(allowed.open((database, "x"))).to_pyarrow_table().num_rows == 3


def test_a_commit_stands_although_the_entry_is_gone(
    catalog: GlueCatalog, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    create(catalog, (database, "orders"), SCHEMA)
    table = DeltaTable.from_context(catalog.open((database, "orders")))
    catalog.drop((database, "orders"))
    with caplog.at_level(logging.WARNING):
        table.alter.add_columns([Field("price", PrimitiveType("double"))])
    assert table.version() == 1
    assert "its catalog was not notified" in caplog.text


def test_a_database_without_a_location_wants_one(
    catalog: GlueCatalog, client: Any, s3: Emulator
) -> None:
    name = f"bare_{uuid.uuid4().hex[:8]}"
    client.create_database(DatabaseInput={"Name": name})
    with pytest.raises(InvalidInputError, match="no location"):
        catalog.stage((name, "t"))
    create(catalog, (name, "t"), SCHEMA, location=f"{s3.url}/t")


def test_secrets_are_in_no_text_and_no_pickle(
    catalog: GlueCatalog, database: str, s3: Emulator
) -> None:
    create(catalog, (database, "orders"), SCHEMA)
    data = pickle.dumps(catalog)
    assert KEY.encode() not in data
    assert KEY not in repr(catalog)
    asked = GlueCatalog(
        client_options=_options(s3), storage_options=s3.options, pickles_secrets=True
    )
    there = pickle.loads(pickle.dumps(asked))
    assert there.list_tables((database,)) == [(database, "orders")]


def test_a_catalog_that_does_not_answer() -> None:
    pytest.importorskip("boto3", reason="boto3 is not installed")
    from botocore.config import Config

    options = {
        "endpoint_url": "http://127.0.0.1:9",
        "region_name": "us-east-1",
        "aws_access_key_id": "testing",
        "aws_secret_access_key": KEY,
        "config": Config(retries={"total_max_attempts": 1}, connect_timeout=1),
    }
    with pytest.raises(CatalogUnavailableError) as caught:
        GlueCatalog(client_options=options).find(("a", "b"))
    assert KEY not in str(caught.value)
