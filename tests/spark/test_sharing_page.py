"""What the page about shared tables says of Spark does what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing.server import app
from tests.support.asgi import serving
from tests.support.sharing import config_of, write_profile

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "sharing-client.md"
FLIGHTS = pa.table({"carrier": ["UA", "AA"], "dep_delay": [2.0, 75.0]})


def test_the_section_runs(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "flights"
    write_deltalake(table, FLIGHTS, configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(table, FLIGHTS, mode="append")
    text = PAGE.read_text("utf-8").partition("## Spark\n")[2].partition("\n## ")[0]
    # Spark's working directory is not ours.
    for name in ("flights.share", "checkpoints", "copied"):
        text = text.replace(f'"{name}', f'"{tmp_path / name}')
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    shared = {"travel.default.flights": {"location": str(table), "historyShared": True}}
    names: dict[str, object] = {"spark": spark}
    with serving(app(config_of(shared))) as url:
        write_profile(tmp_path / "flights.share", f"{url}/delta-sharing/")
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102  # running it is the test
    assert capsys.readouterr().out.split() == ["2", "2", "2", "2", "2"]
    assert DeltaTable(tmp_path / "copied").count() == 4
