"""CREATE BRANCH, PUBLISH BRANCH, SHOW BRANCHES and DROP BRANCH, and reading a branch."""

from __future__ import annotations

from pathlib import Path

import pytest

import deltalog
from deltalog import DeltaTable
from deltalog.errors import (
    AuditFailedError,
    BranchExistsError,
    BranchNotFoundError,
    InvalidInputError,
    TableNotFoundError,
)
from tests.support.sql_tables import SqlTables


@pytest.fixture
def table(db: SqlTables) -> SqlTables:
    """A table `t` with the ids 0, 1 and 2, and an empty branch `n`."""
    db.create("t", "(id INT)")
    db.run("INSERT INTO t VALUES (0), (1), (2)")
    db.run("CREATE BRANCH n FOR TABLE t")
    return db


@pytest.mark.parametrize(
    "name",
    ["`t@n`", "delta.`{root}/t@n`", "t FOR BRANCH n", "delta.`{root}/t` for branch `n`"],
)
def test_statements_on_a_branch_leave_main_alone(table: SqlTables, name: str) -> None:
    table.run(f"DELETE FROM {name} WHERE id = 1")
    table.run(f"INSERT INTO {name} SELECT id + 10 FROM t WHERE id = 2")
    assert table.values(f"SELECT id FROM {name}") == [0, 12, 2]
    assert table.values("SELECT id FROM t") == [0, 1, 2]
    rows = table.rows(f"SELECT t.id FROM t JOIN {name} AS b ON t.id = b.id")
    assert rows == [(0,), (2,)]
    (published,) = table.run("PUBLISH BRANCH n FOR TABLE t").to_pylist()
    assert published == {"version": 2, "was_published": False}
    assert table.values("SELECT id FROM t") == [0, 12, 2]
    with pytest.raises((BranchNotFoundError, TableNotFoundError)):
        table.run(f"SELECT id FROM {name}")


def test_a_version_of_a_branch(table: SqlTables) -> None:
    table.run("INSERT INTO t FOR BRANCH n VALUES (7)")
    for version in ("VERSION AS OF 1", "FOR SYSTEM_VERSION AS OF 1"):
        assert table.values(f"SELECT id FROM t FOR BRANCH n {version}") == [0, 1, 2]
    assert table.values(
        "SELECT n.id FROM t FOR BRANCH n n, t FOR BRANCH n AS m WHERE n.id = m.id + 5"
    ) == [7]
    with pytest.raises((BranchNotFoundError, TableNotFoundError)):
        table.run("SELECT id FROM t FOR BRANCH nothing")


def test_checks(table: SqlTables) -> None:
    table.run("INSERT INTO `t@n` VALUES (-1)")
    with pytest.raises(AuditFailedError) as caught:
        table.run("PUBLISH BRANCH n FOR TABLE t CHECK (id >= 0), (id IN (-1, 0, 1, 2))")
    assert caught.value.failures == ("id >= 0: 1 row does not match, such as [{'id': -1}]",)
    assert table.values("SELECT id FROM t") == [0, 1, 2]
    table.run("DELETE FROM `t@n` WHERE id < 0")
    table.run("PUBLISH BRANCH n FOR TABLE '{root}/t' CHECK (id >= 0)")
    assert table.run("SHOW BRANCHES FROM t").to_pylist() == []


def test_names_versions_and_ends(table: SqlTables) -> None:
    with pytest.raises(BranchExistsError):
        table.run("CREATE BRANCH n FOR TABLE t")
    table.run("CREATE BRANCH IF NOT EXISTS n FOR TABLE t")
    table.run("CREATE BRANCH `old` FOR TABLE t VERSION AS OF 0 RETAIN 3 DAYS")
    assert table.rows("SELECT id FROM `t@old`") == []
    old, new = table.run("SHOW BRANCHES IN t").to_pylist()[::-1]
    assert (old["name"], old["base_version"], new["name"], new["base_version"]) == (
        "old",
        0,
        "n",
        1,
    )
    assert (old["expires_at"] - old["created_at"]).days == 3
    assert (new["expires_at"], new["state"]) == (None, "open")
    for name in ("n", "old"):
        table.run(f"DROP BRANCH {name} FOR TABLE t")
    with pytest.raises(BranchNotFoundError):
        table.run("DROP BRANCH n FOR TABLE t")
    table.run("DROP BRANCH IF EXISTS n FOR TABLE t")
    assert table.run("SHOW BRANCHES FROM t").to_pylist() == []


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE BRANCH n", "FOR TABLE"),
        ("CREATE BRANCH FOR TABLE t", "FOR TABLE"),
        ("CREATE BRANCH x FOR TABLE t RETAIN 3", "DAYS"),
        ("PUBLISH n FOR TABLE t", "BRANCH"),
        ("SELECT * FROM t FOR BRANCH", "expected the name of a branch"),
        ("SELECT * FROM t FOR BRANCH 5", "expected the name of a branch"),
        ("DELETE FROM t FOR BRANCH 5", "expected the name of a branch"),
        ("SELECT * FROM t@n", "write table FOR BRANCH n, or `table@n` in backticks"),
        ("PUBLISH BRANCH n FOR TABLE t CHECK id > 0", r"\("),
        ("SHOW BRANCHES t", "FROM"),
        ("CREATE BRANCH `a b` FOR TABLE t", "as the name of a branch"),
    ],
)
def test_mistakes(table: SqlTables, sql: str, expected: str) -> None:
    with pytest.raises(InvalidInputError, match=expected):
        table.run(sql)


def test_a_name_that_is_no_branch(table: SqlTables) -> None:
    with pytest.raises(BranchNotFoundError, match="has the branches 'n'"):
        table.run("SELECT * FROM `t@other`")
    with pytest.raises(TableNotFoundError):
        table.run("SELECT * FROM `unknown@n`")
    assert table.values("SELECT id FROM t@v1") == [0, 1, 2]


def test_a_branch_is_an_argument(tmp_path: Path) -> None:
    deltalog.write_deltalake(tmp_path / "t", {"id": [1, 2]})
    draft = DeltaTable(tmp_path / "t").branch("n")
    draft.delete("id = 1")
    query = "SELECT count(*) AS n FROM t JOIN d ON true"
    found = deltalog.sql(query, t=DeltaTable(tmp_path / "t"), d=draft).to_pylist()
    assert found == [{"n": 2}]
    assert draft.sql("SELECT count(*) AS n FROM this").read_all()["n"].to_pylist() == [1]
