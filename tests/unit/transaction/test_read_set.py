"""What a transaction has read, and who may change it."""

from __future__ import annotations

import pytest

from deltalog.errors import (
    ConcurrentAppendError,
)
from deltalog.transaction import PendingTransaction
from tests.support.conflicting import (
    added,
    delete,
    outcome,
    two_partitions,
)
from tests.support.logs import (
    add,
)
from tests.support.transactions import new_file


@pytest.mark.protocol("D-35")
def test_the_whole_table_was_read() -> None:
    error = outcome(two_partitions(), lambda tx: delete(tx, None), added("y"), blind=True)
    assert isinstance(error, ConcurrentAppendError)


@pytest.mark.protocol("D-35")
@pytest.mark.parametrize(("stats", "loses"), [('{"numRecords":1,"minValues":{"id":7}}', False),
                                              ('{"numRecords":1,"minValues":{"id":2}}', True),
                                              (None, True)])  # fmt: skip
def test_statistics_tell_that_an_added_file_would_not_have_been_read(
    stats: str | None, loses: bool
) -> None:
    winner = add("new.parquet", partitionValues={"p": "x"}, stats=stats)
    error = outcome(two_partitions(), lambda tx: delete(tx, "id < 5"), winner)
    assert isinstance(error, ConcurrentAppendError) == loses


@pytest.mark.protocol("D-35")
def test_rearranging_rows_is_no_reader_of_appends() -> None:
    def compact(tx: PendingTransaction) -> None:
        assert tx.snapshot is not None
        files = tx.snapshot.files()
        tx.record_read(None, None)
        tx.read_set = type(tx.read_set)().with_files(files)
        tx.remove_files(files, data_change=False)
        tx.add_files([new_file("compact.parquet", data_change=False, partition_values={"p": "x"})])

    assert outcome(two_partitions(), compact, added("x"), blind=True) is None
