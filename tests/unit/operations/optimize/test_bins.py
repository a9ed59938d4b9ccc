"""Which files an optimization rewrites, and together with which others."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import as_expression, resolve_predicate
from deltalog.operations.optimize import Compact
from tests.support.optimizing import IDS, OptimizedTable, numbered, run_options
from tests.support.statements import FEED, ROW_IDS, VECTORS

COLUMNS = {"id": "long", "p": "string"}


ALL = {**VECTORS, **ROW_IDS, **FEED}


def test_a_predicate_chooses_partitions() -> None:
    files = [[{"id": n, "p": p}] for p in ("a", "b") for n in (1, 2)]
    table = OptimizedTable(COLUMNS, *files, partition_by=["p"])
    schema = table.snapshot.configuration.schema
    where = resolve_predicate(as_expression("p = 'b'", schema), schema)
    done = table.optimize(Compact, where)
    assert (done.num_considered, table.files().num_rows) == (2, 3)
    assert table.info()["operationParameters"]["predicate"] == "[\"p = 'b'\"]"


def test_a_predicate_over_rows_is_refused() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2, p="a"), partition_by=["p"])
    schema = table.snapshot.configuration.schema
    where = resolve_predicate(as_expression("id = 1", schema), schema)
    with pytest.raises(InvalidInputError, match="partition columns, found id"):
        table.optimize(Compact, where)


def test_files_are_packed_up_to_the_target_size() -> None:
    table = OptimizedTable(COLUMNS, *(numbered(n, n + 1) for n in range(6)))
    sizes: list[Any] = table.files().column("size").to_pylist()
    done = table.optimize(Compact, options=run_options(max(sizes) * 2))
    assert (done.max_bin_files, len(done.added_sizes)) == (2, 3)


def test_full_files_stay() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 5000), numbered(0, 1), numbered(1, 2))
    done = table.optimize(Compact, options=run_options(5000))
    assert len(done.removed_sizes) == 2
    assert table.files().num_rows == 2


@pytest.mark.parametrize(("share", "rewritten"), [(0.05, True), (0.5, False)])
def test_many_deleted_rows_make_a_file_worth_rewriting(share: float, rewritten: bool) -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 10), properties=ALL)
    table.delete("id < 3")
    before = table.rows("id", *IDS)
    done = table.optimize(Compact, max_deleted_share=share)
    assert done.removed_vectors == ((3,) if rewritten else ())
    assert table.rows("id", *IDS) == before
    if rewritten:
        (stats,) = table.stats()
        assert (stats["numRecords"], stats["minValues"]["id"]) == (7, 3)
        assert stats["tightBounds"]
        assert table.files().column("deletionVector").null_count == 1


def test_a_file_without_a_live_row_goes() -> None:
    table = OptimizedTable(COLUMNS, numbered(0, 2), numbered(5, 9), properties=VECTORS)
    table.delete("id IN (5, 6, 7)")
    pending_rows = table.rows()
    table.optimize(Compact)
    assert table.rows() == pending_rows
