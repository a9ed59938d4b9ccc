"""A table of a catalog that is as it should be has no errors."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, StructType, write_deltalake
from deltalog.catalogs.unity import UnityCatalog
from deltalog.errors import InvalidInputError
from deltalog.table.inspect.doctor.examine import examine
from tests.catalogs.conftest import QUICK
from tests.support.catalogs import create
from tests.support.unity_server import TOKEN, UnityServer

SCHEMA = StructType((Field("id", PrimitiveType("long")),))
ORDERS = ("sales", "orders")
LATER_MS = 4_000_000_000_000


@pytest.mark.parametrize("is_older", [False, True])
def test_a_managed_table_is_healthy(
    catalog: UnityCatalog, unity: UnityServer, is_older: bool
) -> None:
    create(catalog, ORDERS, SCHEMA)
    assert DeltaTable.from_context(catalog.open(ORDERS)).doctor().is_healthy
    table = DeltaTable.from_context(catalog.open(ORDERS))
    write_deltalake(table, pa.table({"id": [1, 2]}), mode="append")
    table.delete("id = 1")
    unity.has_delta_api = not is_older
    anew = UnityCatalog(
        unity.url, token=TOKEN, catalog="main", allows_local_files=True, http_options=QUICK
    )
    assert DeltaTable.from_context(anew.open(ORDERS)).doctor().is_healthy


@pytest.mark.parametrize("allowed", [[], ["DATA_CLEANUP"]])
def test_files_that_are_left_are_the_catalogs_business(
    catalog: UnityCatalog, unity: UnityServer, allowed: list[str]
) -> None:
    unity.allowed = allowed
    create(catalog, ORDERS, SCHEMA)
    context = catalog.open(ORDERS)
    Path(context.store.root, "left.parquet").write_bytes(b"x")
    (found,) = examine(context, now_ms=LATER_MS).of("orphans")
    assert "left.parquet" in found.message
    whose = "vacuum(full=True" if allowed else "the table's catalog deletes them"
    assert whose in (found.advice or "")
    table = DeltaTable.from_context(context)
    if not allowed:
        with pytest.raises(InvalidInputError, match="DATA_CLEANUP"):
            table.vacuum()
