"""The page about catalogs on Spark does what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltalog.spark.session.names import CATALOGS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "spark-catalogs.md"
BLOCK = re.compile(
    r"<!-- not run: needs a session .+? -->\n```python\n(?P<code>.*?)^```", re.MULTILINE | re.DOTALL
)


def test_the_page_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"spark": spark}
    # Spark's working directory is not ours.
    text = PAGE.read_text("utf-8").replace('"warehouse"', f'"{tmp_path / "warehouse"}"')
    blocks = BLOCK.findall(text)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102  # running the page is the test
    spark.catalog.dropTempView("numbers")
    spark.conf.unset(CATALOGS)
