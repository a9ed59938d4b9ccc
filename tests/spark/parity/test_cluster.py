"""Rows clustered."""

from __future__ import annotations

from tests.spark.parity.cases import NO_WORD, cases_of
from tests.unit.operations.optimize import test_cluster

globals().update(
    cases_of(
        test_cluster,
        {
            "test_files_become_narrow_and_say_who_clustered_them": NO_WORD,
            "test_a_table_without_clustering_columns_is_refused": NO_WORD,
        },
    )
)
