"""Links in a directory of tables: what is behind them is another's, and stays."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from deltalog import DeltaTable, write_deltalake
from deltalog.catalogs import FileCatalog
from deltalog.errors import UnsafePathError

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A catalog with an important table, and a directory beside it."""
    root = tmp_path / "tables"
    write_deltalake(root / "s" / "important", ROWS)
    write_deltalake(tmp_path / "outside", ROWS)
    (tmp_path / "outside" / "sub").mkdir()
    (tmp_path / "outside" / "sub" / "precious.txt").write_text("kept")
    return root


def everything(root: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes()
        for place in (root.parent / "outside", root / "s" / "important")
        for path in place.rglob("*")
        if path.is_file()
    }


LINKS = {
    "log": ("evil/_delta_log", "../important/_delta_log"),
    "absolute log": ("evil/_delta_log", "{root}/s/important/_delta_log"),
    "log outside": ("evil/_delta_log", "{root}/../outside/_delta_log"),
    "table outside": ("evil", "{root}/../outside"),
    "relative table outside": ("evil", "../../outside"),
    "another table": ("evil", "important"),
}


@pytest.mark.parametrize("statement", ["DROP TABLE evil", "INSERT INTO evil VALUES (3)"])
@pytest.mark.parametrize("link", LINKS)
def test_nothing_behind_a_link_is_dropped_or_written(link: str, statement: str, root: Path) -> None:
    name, target = LINKS[link]
    place = root / "s" / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target.format(root=root))
    before = everything(root)
    connection = deltalog.connect(catalog=FileCatalog(root), schema="s")
    with pytest.raises(UnsafePathError, match="a link leads from there out of the table"):
        connection.sql(statement)
    assert everything(root) == before
    assert place.is_symlink()
    if "table" in link:
        assert connection.sql("SELECT count(*) AS n FROM evil").to_pylist() == [{"n": 2}]


def test_a_schema_that_is_a_link_is_read_only(root: Path) -> None:
    (root / "other").symlink_to("s")
    before = everything(root)
    connection = deltalog.connect(catalog=FileCatalog(root), schema="other")
    assert connection.sql("SELECT count(*) AS n FROM important").to_pylist() == [{"n": 2}]
    for statement in (
        "DROP TABLE important",
        "INSERT INTO important VALUES (3)",
        "ALTER TABLE important RENAME TO another",
        "CREATE TABLE new (id INT)",
    ):
        with pytest.raises(UnsafePathError):
            connection.sql(statement)
    assert everything(root) == before
    assert [path.name for path in (root / "s").iterdir()] == ["important"]


def test_links_in_a_dropped_table_go_and_what_is_behind_them_stays(root: Path) -> None:
    table = root / "s" / "t"
    write_deltalake(table, pa.table({"id": [1], "p": ["a"]}), partition_by=["p"])
    (table / "p=c").symlink_to(root / "s" / "important")
    (table / "p=a" / "deep").symlink_to(root.parent / "outside")
    (table / "file").symlink_to(root.parent / "outside" / "sub" / "precious.txt")
    before = everything(root)
    FileCatalog(root).drop(("s", "t"), purge=True)
    assert everything(root) == before
    assert not table.exists()


def test_a_catalog_that_is_given_as_a_link_works(root: Path) -> None:
    (root.parent / "alias").symlink_to("tables")
    connection = deltalog.connect(catalog=FileCatalog(root.parent / "alias"), schema="s")
    connection.sql("INSERT INTO important VALUES (3)")
    connection.sql("CREATE TABLE new (id INT)")
    connection.sql("ALTER TABLE new RENAME TO newer")
    connection.sql("DROP TABLE newer")
    assert DeltaTable(root / "s" / "important").count() == 3
    connection.sql("DROP TABLE important")
    assert list((root / "s").iterdir()) == []
