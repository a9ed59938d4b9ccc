"""Errors about arguments name the class that is called, not where its method is defined."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog._util.cached import name_methods_after
from deltalog.catalogs import FileCatalog


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    write_deltalake(tmp_path / "t", {"id": [1, 2]})
    return DeltaTable(tmp_path / "t")


def _error_of(call: Any) -> str:
    with pytest.raises(TypeError) as raised:
        call(nonsense=1)
    return str(raised.value)


def test_what_is_staged_names_the_transaction(table: DeltaTable) -> None:
    with table.transaction() as tx:
        for name in ("append", "overwrite", "delete", "update", "merge", "upsert", "do"):
            assert _error_of(getattr(tx, name)).startswith(f"TableTransaction.{name}()")


def test_what_is_staged_of_a_table_of_several_names_it(tmp_path: Path) -> None:
    catalog = FileCatalog(tmp_path)
    DeltaTable.create(tmp_path / "s" / "a", Schema([Field("id", "long")]))
    with catalog.transaction(tmp_path / "journals") as tx:
        assert _error_of(tx.table("s.a").append).startswith("TransactionTable.append()")


def test_rows_and_schemas_name_themselves(table: DeltaTable) -> None:
    assert _error_of(table.scan().to_table).startswith("Scan.to_table()")
    assert _error_of(table.diff(0).to_polars).startswith("TableDiff.to_polars()")
    assert _error_of(table.schema().to_json).startswith("StructType.to_json()")
    assert _error_of(Field.from_json).startswith("Field.from_json()")


class Base:
    """What others inherit."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name_methods_after(cls, Base)

    def named(self, one: int, *, two: int = 2) -> tuple[str, int, int]:
        """Say what was given."""
        return type(self).__name__, one, two

    @classmethod
    def made(cls, one: int = 1) -> str:
        """Say for whom."""
        return f"{cls.__name__}{one}"


class Middle(Base):
    """Has its own."""

    def named(self, one: int, *, two: int = 3) -> tuple[str, int, int]:
        """Say it of the base."""
        return super().named(one, two=two)


class Leaf(Middle):
    """Has none."""


def test_copies_do_what_the_methods_do() -> None:
    assert Leaf().named(1) == ("Leaf", 1, 3)
    assert Middle().named(1, two=5) == ("Middle", 1, 5)
    assert (Leaf.made(), Middle.made(3), Base.made()) == ("Leaf1", "Middle3", "Base1")
    assert inspect.getdoc(Leaf.made) == "Say for whom."
    assert "named" not in vars(Leaf)
    assert pickle.loads(pickle.dumps(Leaf().named))(7) == ("Leaf", 7, 3)
