"""Tables of other writers whose checkpoints tasks read: their manifests say what comes out.

These have checkpoints of several files. That all checkpoints of the corpora fall into pieces is
shown without Spark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import deltalog.spark
from tests.spark.test_corpora import ENTRIES, _check, _collect
from tests.support.corpora import Entry

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.filterwarnings("ignore::UserWarning"),  # Spark's, of odd data
]


# A name that says more than that there is a checkpoint: parts, or the file of a V2 checkpoint.
_NAMED = re.compile(r"\d{20}\.checkpoint\..+\.(?:parquet|json)")


def _is_laid_out(path: Path) -> bool:
    """Whether a table has a checkpoint that is more than one classic file."""
    return any(_NAMED.fullmatch(file.name) for file in path.glob("_delta_log/*.checkpoint.*"))


LAID_OUT: Sequence[Entry] = [entry for entry in ENTRIES if _is_laid_out(entry.path)]


@pytest.mark.parametrize("lists_files", [False, True])
@pytest.mark.parametrize("entry", LAID_OUT, ids=str)
def test_rows(entry: Entry, lists_files: bool, spark: SparkSession) -> None:
    """Files are found by tasks; the rows are read by tasks or, as of few files, by Spark."""

    def read() -> pa.Table:
        scan = deltalog.spark.scan(spark, entry.path, state_on_spark_files=0)
        return _collect(replace(scan, lists_files=lists_files).to_df())

    _check(entry, entry.expected("latest"), read)
