"""What the checks of the doctor look at."""

from __future__ import annotations

import pyarrow as pa
import pytest

from deltalog.errors import InternalError
from deltalog.log.segment import LogListing
from deltalog.table.inspect.doctor.report import Patient, decoded
from deltalog.testing import CountingStore
from tests.support.logs import DictStore


def patient(num_samples: int = 3) -> Patient:
    store = DictStore({"a b": b"12", "_delta_log/0.json": b"", "_delta_log/d/x": b""})
    return Patient(
        store=CountingStore(store),
        listing=LogListing(table=store.root, first=0),
        opened=None,
        now_ms=0,
        num_samples=num_samples,
        num_commits=1,
    )


@pytest.mark.parametrize(
    ("num_samples", "count", "expected"),
    [
        (3, 0, []),
        (3, 1, [0]),
        (3, 3, [0, 1, 2]),
        (3, 9, [0, 4, 8]),
        (2, 9, [0, 8]),
        (1, 9, [0]),
        (0, 9, []),
        (4, 5, [0, 1, 2, 4]),
    ],
)
def test_a_sample_has_the_first_and_the_last(
    num_samples: int, count: int, expected: list[int]
) -> None:
    files = pa.table({"n": pa.array(range(count), pa.int64())})
    assert patient(num_samples).sample(files).column("n").to_pylist() == expected


def test_a_table_that_cannot_be_opened_has_no_version_to_check() -> None:
    with pytest.raises(InternalError, match="open table"):
        _ = patient().snapshot


def test_each_listing_is_made_once() -> None:
    found = patient()
    for _ in range(2):
        assert found.all_files == {"a b": 2, "_delta_log/0.json": 0, "_delta_log/d/x": 0}
        assert [info.path for info in found.log_files] == ["_delta_log/0.json"]
    assert isinstance(found.store, CountingStore)
    assert found.store.counts == {"list_all": 1, "list_from": 1}


def test_paths_of_the_log_are_decoded() -> None:
    assert decoded(pa.array(["a%20b", "p=x%253Ay/c", "é"])) == ["a b", "p=x%3Ay/c", "é"]
    assert decoded(pa.array([], pa.string())) == []
