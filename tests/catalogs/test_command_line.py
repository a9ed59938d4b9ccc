"""The command line over tables of a Unity Catalog."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from tests.support.command_line import lines, run
from tests.support.unity_server import UnityServer

ORDERS = "uc://main.sales.orders"
LOCAL = ("--option", "unity_allow_local_files=true")


@pytest.fixture
def server(unity: UnityServer, monkeypatch: pytest.MonkeyPatch) -> UnityServer:
    """A server that the environment names, with a managed table of two versions."""
    monkeypatch.setenv("DATABRICKS_HOST", unity.url)
    monkeypatch.setenv("DATABRICKS_TOKEN", unity.token)
    options = {"unity_allow_local_files": "true"}
    unity.allowed = ["DATA_REORGANIZATION", "DATA_CLEANUP"]
    for _ in range(2):
        write_deltalake(ORDERS, pa.table({"id": [1, 2]}), mode="append", storage_options=options)
    return unity


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("history",),
        ("files",),
        ("scan", "--where", "id = 1"),
        ("vacuum",),
        ("properties",),
        ("optimize",),
    ],
    ids=lambda command: command[0],
)
def test_every_command_takes_a_name(server: UnityServer, command: tuple[str, ...]) -> None:
    name, *more = command
    found = lines(name, ORDERS, *LOCAL, *more)
    assert found or name == "vacuum"
    assert server.tables["main", "sales", "orders"].latest == (2 if name == "optimize" else 1)


def test_commands_with_arguments_and_messages_take_a_name(server: UnityServer) -> None:
    run("diff", ORDERS, "0", "1", *LOCAL)
    run("checkpoint", ORDERS, *LOCAL)
    run("restore", ORDERS, "0", *LOCAL)
    assert server.tables["main", "sales", "orders"].latest == 2
    run("doctor", f"{ORDERS}@v1", *LOCAL)
    assert [row["id"] for row in lines("scan", f"{ORDERS}@v0", *LOCAL)] == [1, 2]


def test_statements_take_a_catalog(server: UnityServer) -> None:
    names = ("--catalog", "uc://", "--schema", "main.sales", *LOCAL)
    assert lines("sql", *names, "SELECT count(*) AS n FROM orders") == [{"n": 4}]
    found = lines("sql", "--catalog", server.url, *LOCAL, "USE main.sales; SHOW TABLES")
    assert found == [{"namespace": "main.sales", "tableName": "orders", "isTemporary": False}]


def test_what_is_not_there_is_said(server: UnityServer) -> None:
    found = run("show", "uc://main.sales.nothing", *LOCAL, code=3)
    assert "main.sales.nothing" in found.stderr
    assert server.token not in found.stderr
