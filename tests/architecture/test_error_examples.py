"""The messages that the error index shows are those that a user sees."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from docs.error_table import EXAMPLES

from deltalog import DeltaTable, Field, errors, write_deltalake

ROWS: Final = [{"id": 1, "state": "new"}, {"id": 2, "state": "new"}]


def _orders() -> DeltaTable:
    return DeltaTable("orders")


def _write(rows: Any) -> None:
    write_deltalake(_orders(), rows, mode="append")


def _below_zero() -> None:
    _orders().alter.add_constraint({"positive": "id > 0"})
    _write([{"id": 0, "state": "new"}])


def _delete_from_append_only() -> None:
    _orders().alter.set_table_properties({"delta.appendOnly": "true"})
    _orders().delete("id = 1")


def _read_without_a_file() -> None:
    Path(_orders().file_uris()[0]).unlink()
    _orders().to_arrow()


def _follow_a_delete() -> None:
    follower = _orders().follow(0)
    _orders().delete("id = 1")
    list(follower.available())


def _write_once_after_another() -> None:
    table = _orders()
    _orders().alter.add_columns(Field("more", "long"))
    write_deltalake(table, iter(pa.Table.from_pylist(ROWS).to_batches()), mode="append")


MAKERS: Final[dict[str, tuple[Callable[[], object], ...]]] = {
    "TableNotFoundError": (lambda: DeltaTable("order"),),
    "TableExistsError": (lambda: write_deltalake("orders", ROWS),),
    "InvalidInputError": (
        lambda: _orders().scan(["stat"]),
        lambda: _orders().delete("id == "),
        lambda: DeltaTable("s3://bucket/orders", storage_options={"AWS_REGIO": "eu"}),
    ),
    "AmbiguousMergeError": (lambda: _orders().upsert([ROWS[0], ROWS[0]], "id"),),
    "SchemaMismatchError": (
        lambda: _write([{"id": 3, "colour": "red"}]),
        lambda: _write([{"id": "x", "state": "new"}]),
    ),
    "ConstraintViolationError": (_below_zero,),
    "VersionNotFoundError": (
        lambda: DeltaTable("orders", version=9),
        lambda: DeltaTable("orders", version="2001-01-01"),
    ),
    "AppendOnlyError": (_delete_from_append_only,),
    "ChangeDataFeedNotEnabledError": (lambda: _orders().load_cdf(0).read_all(),),
    "DataFileMissingError": (_read_without_a_file,),
    "RowsChangedError": (_follow_a_delete,),
    "MetadataChangedError": (_write_once_after_another,),
}


def test_each_example_has_a_maker() -> None:
    assert {name: len(made) for name, made in MAKERS.items()} == {
        name: len(shown) for name, shown in EXAMPLES.items()
    }


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name in EXAMPLES for number in range(len(MAKERS[name]))]
)
def test_the_message_is_that_of_the_index(
    name: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_deltalake("orders", ROWS)
    with pytest.raises(getattr(errors, name)) as caught:
        MAKERS[name][number]()
    message = str(caught.value).replace(str(tmp_path), "/data")
    assert type(caught.value).__name__ == name
    assert re.fullmatch(re.escape(EXAMPLES[name][number]).replace("…", ".*"), message), message
