"""What tells logical files apart."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.log.replay import file_keys, vector_ids
from deltalog.protocol.actions.arrow import DELETION_VECTOR_TYPE
from deltalog.protocol.actions.model import DeletionVectorDescriptor

ROOT = "file:///data/table"


def keys(*paths: str | None) -> list[str | None]:
    found: list[str | None] = file_keys(pa.array(paths, pa.string()), None, ROOT).to_pylist()
    return found


@pytest.mark.protocol("D-06", "ADD-02", "ADD-03")
def test_spellings_of_one_file_have_one_key() -> None:
    assert len(set(keys("a%20b", "a b", "./a b", "file:///data/table/a%20b"))) == 1
    assert len(set(keys("file:/x/y", "file:///x/y"))) == 1
    assert len(set(keys("s3://b/x", "s3a://b/x"))) == 1


@pytest.mark.protocol("D-06")
def test_different_files_have_different_keys() -> None:
    paths = ["a", "A", "b/a", "a%2520b", "a%20b", "/x/y", "file:/x/y", "s3://b/x", "s3://c/x"]
    assert len(set(keys(*paths))) == len(paths)


@pytest.mark.protocol("ADD-04", "DV-09", "D-18")
def test_the_vector_is_part_of_the_key() -> None:
    vectors = pa.array(
        [
            None,
            {"storageType": "u", "pathOrInlineDv": "x", "offset": 1},
            {"storageType": "u", "pathOrInlineDv": "x", "offset": 2},
            {"storageType": "u", "pathOrInlineDv": "x"},
            {"storageType": "i", "pathOrInlineDv": "x"},
        ],
        DELETION_VECTOR_TYPE,
    )
    found = file_keys(pa.array(["f"] * 5), vectors, ROOT).to_pylist()
    assert len(set(found)) == 5
    assert found[0] == "f"


@pytest.mark.protocol("DV-09")
@pytest.mark.parametrize("offset", [None, 0, 4])
def test_ids_are_those_of_the_descriptor(offset: int | None) -> None:
    one = DeletionVectorDescriptor(
        storage_type="u",
        path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^",
        offset=offset,
        size_bytes=1,
        cardinality=1,
    )
    column = pa.array(
        [{"storageType": "u", "pathOrInlineDv": one.path_or_inline_dv, "offset": offset}],
        DELETION_VECTOR_TYPE,
    )
    assert vector_ids(column).to_pylist() == [one.unique_id]


def test_chunks_and_nulls_stay() -> None:
    chunked = pa.chunked_array([["a"], [None, "b"]], type=pa.string())
    assert file_keys(chunked, None, ROOT).to_pylist() == ["a", None, "b"]
