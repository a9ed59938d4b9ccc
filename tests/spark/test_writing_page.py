"""The page about writing on Spark does what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "spark-writing.md"


def test_the_page_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PAGE.read_text("utf-8")
    # Spark's working directory is not ours.
    for name in ("orders", "customers", "checkpoint", "copied"):
        text = text.replace(f'"{name}"', f'"{tmp_path / name}"')
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"spark": spark}
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 8
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102  # running the page is the test
