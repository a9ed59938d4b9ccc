from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.data.write import ChangeWriter
from deltalog.errors import StorageError
from deltalog.protocol.column_mapping import physical_name
from deltalog.schema import Field
from deltalog.testing import FaultyStore, InjectedFault
from tests.support.logs import DictStore
from tests.support.writes import batch_of, file_table, spec_of, table

FIELDS = (Field("a", "long"), Field("p", "string"))


@pytest.mark.protocol("DF-06", "DF-08", "CDC-01")
def test_changes_have_files_and_a_type_of_their_own() -> None:
    configuration = table(*FIELDS, partition_by=["p"])
    spec = spec_of(configuration)
    rows = batch_of(configuration, a=[1, 2], p=["x", "y"])
    with ChangeWriter(spec) as writer:
        writer.write(rows, "delete")
        writer.write(rows.slice(0, 1), pa.array(["insert"]))
        first, second = writer.finish()
    assert first.path.startswith("_change_data/p=x/cdc-00000-")
    assert (first.partition_values, first.data_change) == ({"p": "x"}, False)
    assert first.size_bytes == len(spec.store.read(first.path))
    assert file_table(spec, first.path).to_pydict() == {
        "a": [1, 1], "_change_type": ["delete", "insert"],
    }  # fmt: skip
    assert file_table(spec, second.path).to_pydict() == {"a": [2], "_change_type": ["delete"]}


@pytest.mark.protocol("CM-08", "CM-18")
def test_changes_have_physical_names() -> None:
    configuration = table(*FIELDS, mapping="name")
    spec = spec_of(configuration)
    with ChangeWriter(spec) as writer:
        writer.write(batch_of(configuration, a=[1], p=["x"]), "insert")
        (change,) = writer.finish()
    names = [physical_name(field) for field in configuration.schema]
    assert file_table(spec, change.path).column_names == [*names, "_change_type"]
    assert change.path.count("/") == 2


def test_no_changes_make_no_file() -> None:
    with ChangeWriter(spec_of(table(*FIELDS))) as writer:
        assert writer.finish() == ()


def test_changes_that_cannot_be_written_leave_nothing() -> None:
    store = DictStore()
    configuration = table(*FIELDS, partition_by=["p"])
    spec = spec_of(
        configuration, store=FaultyStore(store, InjectedFault(call=2, verb="put_if_absent"))
    )
    rows = batch_of(configuration, a=[1, 2], p=["x", "y"])
    writer = ChangeWriter(spec)
    writer.write(rows, "delete")
    with pytest.raises(StorageError):
        writer.finish()
    writer.abandon()
    assert store.files == {}
