"""Tables in emulated object stores, written through a table opened before they were made anew."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import TableNotFoundError
from deltalog.storage import Store, open_store
from tests.support.emulators import Emulator

pytestmark = pytest.mark.emulator


@pytest.fixture(params=["s3fs", "obstore", "azure", "gcs"])
def store(request: pytest.FixtureRequest) -> Store:
    emulator: Emulator = request.getfixturevalue(request.param)
    return open_store(emulator.url, emulator.options)


def row(number: int) -> pa.Table:
    return pa.table({"a": [number]})


def made(store: Store, numbers: list[int]) -> DeltaTable:
    for number in numbers:
        write_deltalake(store, row(number), mode="append")
    return DeltaTable(store)


def _clear(store: Store) -> None:
    store.delete_many([file.path for file in store.list_all("")])


@pytest.mark.parametrize("owns", [True, False])
@pytest.mark.parametrize("versions", [1, 2, 3])
def test_a_table_of_the_same_second_and_size_is_another(
    store: Store, versions: int, owns: bool
) -> None:
    """Times of some services count in seconds, and a commit of as many bytes is soon made."""
    old = made(store, [1] if owns else [1, 2])
    if owns:
        write_deltalake(old, row(2), mode="append")
    _clear(store)
    made(store, [4, 5, 6][:versions])
    before = {file.path: store.read(file.path) for file in store.list_all("")}
    for act in (
        lambda: write_deltalake(old, row(3), mode="append"),
        lambda: write_deltalake(old, row(3), mode="overwrite"),
        lambda: old.delete("a = 4"),
        lambda: old.restore(0),
        old.create_checkpoint,
        old.update_incremental,
    ):
        with pytest.raises(TableNotFoundError, match="open the table again"):
            act()
    assert {file.path: store.read(file.path) for file in store.list_all("")} == before
    old.update_incremental(same_table=False)
    write_deltalake(old, row(7), mode="append")
    found = DeltaTable(store).to_pyarrow_table()["a"].to_pylist()
    assert set(found) == {*[4, 5, 6][:versions], 7}


def test_a_table_that_is_gone_is_not_begun_in_the_middle(store: Store) -> None:
    old = made(store, [1, 2])
    _clear(store)
    with pytest.raises(TableNotFoundError):
        write_deltalake(old, row(3), mode="append")
    assert list(store.list_all("")) == []
