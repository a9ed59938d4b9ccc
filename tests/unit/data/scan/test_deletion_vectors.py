"""Deletion vectors as a scan meets them: shared files, damage, other versions of one file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deltalog.errors import DataFileMissingError, DeletionVectorError, MalformedLogError
from tests.support import logs
from tests.support.raw_tables import DataTable

Descriptor = dict[str, Any]


def deleted(*rows: int) -> tuple[DataTable, Descriptor]:
    """Five rows of which some are deleted; the descriptor may still be changed."""
    table = DataTable([("id", "long")], features=["deletionVectors"])
    vector = table.vector(*rows)
    table.commit(table.add({"id": [0, 1, 2, 3, 4]}, deletionVector=vector))
    return table, vector


@pytest.mark.protocol("DF-05")
def test_one_file_holds_many_vectors() -> None:
    table = DataTable([("id", "long"), ("p", "long")], ["p"], ["deletionVectors"])
    vectors = table.vectors([0], [1, 2], [])
    assert len({vector["pathOrInlineDv"] for vector in vectors}) == 1
    table.commit(
        *(
            table.add({"id": [0, 1, 2]}, partitionValues={"p": str(p)}, deletionVector=vector)
            for p, vector in enumerate(vectors)
        )
    )
    assert sorted(table.rows(columns=["p", "id"])) == [
        (0, 1),
        (0, 2),
        (1, 0),
        (2, 0),
        (2, 1),
        (2, 2),
    ]
    assert table.scan().count() == 6


def shrink(vector: Descriptor) -> None:
    vector["sizeInBytes"] -= 1


def miscount(vector: Descriptor) -> None:
    vector["cardinality"] += 1


def misplace(vector: Descriptor) -> None:
    vector["offset"] += 1


@pytest.mark.parametrize("harm", [shrink, miscount, misplace])
def test_a_descriptor_that_does_not_fit(harm: Callable[[Descriptor], None]) -> None:
    table = DataTable([("id", "long")], features=["deletionVectors"])
    vector = table.vector(1)
    harm(vector)
    table.commit(table.add({"id": [0, 1]}, deletionVector=vector))
    with pytest.raises(DeletionVectorError) as caught:
        table.rows()
    assert "while reading 'part-1.parquet' of table 'memory://table'" in caught.value.__notes__


@pytest.mark.parametrize("position", [0, 3, 8, -1])
def test_a_vector_whose_bytes_changed(position: int) -> None:
    table, _ = deleted(1)
    (path,) = (name for name in table.store.files if name.endswith(".bin"))
    content = bytearray(table.store.files[path])
    content[position] ^= 0xFF
    table.store.files[path] = bytes(content)
    with pytest.raises((DeletionVectorError, MalformedLogError)):
        table.rows()


def test_a_torn_vector_file() -> None:
    table, _ = deleted(1)
    (path,) = (name for name in table.store.files if name.endswith(".bin"))
    table.store.files[path] = table.store.files[path][:-6]
    with pytest.raises(DeletionVectorError):
        table.rows()


def test_a_vector_file_that_is_gone() -> None:
    table, _ = deleted(1)
    (path,) = (name for name in table.store.files if name.endswith(".bin"))
    del table.store.files[path]
    with pytest.raises(DataFileMissingError, match="deletion vector file"):
        table.rows()


def test_all_rows_deleted() -> None:
    table, _ = deleted(0, 1, 2, 3, 4)
    assert table.rows() == []
    assert table.scan().count() == 0


def test_a_vector_needs_its_feature() -> None:
    table = DataTable([("id", "long")])
    table.commit(table.add({"id": [0]}, deletionVector=table.vector(0)))
    with pytest.raises(MalformedLogError, match="deletionVectors"):
        table.rows()


@pytest.mark.protocol("B-02")
def test_the_same_path_with_and_without_a_vector_is_two_files() -> None:
    # Writers must not do this; readers take what the log says, as two logical files.
    table = DataTable([("id", "long")], features=["deletionVectors"])
    whole = table.add({"id": [0, 1]})
    table.commit(whole)
    table.commit({"add": {**whole["add"], "deletionVector": table.vector(0)}})
    assert sorted(table.rows()) == [0, 1, 1]


@pytest.mark.protocol("B-02")
def test_the_same_logical_file_again_only_refreshes_its_facts() -> None:
    table = DataTable([("id", "long")], features=["deletionVectors"])
    vector = table.vector(0)
    add = table.add({"id": [0, 1]}, deletionVector=vector)
    table.commit(add)
    table.commit({"add": {**add["add"], "dataChange": False, "stats": '{"numRecords":2}'}})
    assert table.rows() == [1]
    table.commit(logs.remove(add["add"]["path"], deletionVector=vector))
    assert table.rows() == []


@pytest.mark.protocol("DV-02", "DV-09")
@pytest.mark.parametrize("member", ["storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"])
def test_a_required_member_that_is_null_gives_no_rows(member: str) -> None:
    """Its key would be that of the file without a vector, so a remove of that would win."""
    table = DataTable([("id", "long")], features=["deletionVectors"])
    line = table.add({"id": [0, 1, 2, 3, 4]})
    table.commit(line)
    again = {**line["add"], "deletionVector": {**table.vector(1, 2), member: None}}
    table.commit({"remove": {"path": line["add"]["path"], "dataChange": True}}, {"add": again})
    for act in (table.rows, lambda: table.scan().count()):
        with pytest.raises(MalformedLogError, match=f"add.deletionVector.{member}: required"):
            act()


def test_counting_refuses_a_vector_with_more_rows_than_its_file() -> None:
    table = DataTable([("id", "long")], features=["deletionVectors"])
    vector = {**table.vector(1), "cardinality": 6}
    table.commit(table.add({"id": [0, 1, 2, 3, 4]}, deletionVector=vector))
    with pytest.raises(MalformedLogError, match="numRecords 5 and cardinality 6 of 'part-1"):
        table.scan().count()
