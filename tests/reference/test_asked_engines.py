"""What Delta Spark does with tables of deltalog is what `engines.json` says: it is asked again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import interop
from tests.support.interop import differing
from tests.support.reference import Spark
from tests.support.reference_scenarios import FULL

FEW = ("columnMapping", "checkConstraints", "collations")


def test_delta_spark_reads(spark: Spark, tmp_path: Path) -> None:
    places = interop.make_tables(tmp_path)
    assert differing("read", interop.spark_answers(places, spark)) == []


def test_delta_spark_writes(spark: Spark, tmp_path: Path) -> None:
    """Some features: all of them take minutes."""
    names = None if FULL else FEW
    answers = interop.spark_writing(tmp_path, spark, names)
    assert differing("write", answers) == []


@pytest.mark.parametrize("name", FEW)
def test_those_are_asked_for(name: str) -> None:
    assert interop.CASES["features"][name].more is not None
