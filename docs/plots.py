"""The plots of the how-to page, of a table that is made for them: `python -m docs.plots`.

Its log is written by hand, with the times and sizes of a table that is a month old; there is no
data, since a plot reads none.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from deltalog import DeltaTable, Field, Schema
from deltalog._util.json import dumps
from deltalog.table.inspect.plot import Plot

_HERE = Path(__file__).resolve().parent
FOLDER = _HERE / "pictures"
_BEGIN: Final = datetime(2026, 10, 1, 6, tzinfo=UTC)
_COMMITS: Final = 120
_FILES: Final = 6

PLOTS: Final[dict[str, Callable[[DeltaTable], Plot]]] = {
    "plot-commits": lambda table: table.plot.commits(),
    "plot-file-sizes": lambda table: table.plot.file_sizes(),
    "plot-partition-sizes": lambda table: table.plot.partition_sizes(),
    "plot-clustering": lambda table: table.plot.clustering(["id", "value"]),
    "plot-log": lambda table: table.plot.log(),
    "plot-scan": lambda table: table.plot.scan("month < 4 AND id < 150000"),
}


def make_table(place: Path) -> DeltaTable:
    """Write the log of a table with 120 commits and some 700 files; the same one each time.

    Args:
        place: an empty directory.
    """
    chosen = random.Random(7)  # noqa: S311  # no secret
    fields = [Field("id", "long"), Field("value", "double"), Field("month", "integer")]
    DeltaTable.create(place, Schema(fields), name="sales", partition_by=["month"])
    log = place / "_delta_log"
    _date(log / f"{0:020}.json", _BEGIN)
    at, row = _BEGIN, 0
    for version in range(1, _COMMITS + 1):
        at += timedelta(hours=chosen.choice([2, 4, 6, 9]))
        operation = chosen.choices(["WRITE", "MERGE", "DELETE"], [8, 3, 1])[0]
        lines: list[dict[str, Any]] = []
        for number in range(chosen.randint(1, 2 * _FILES)):
            rows = int(chosen.lognormvariate(6, 1.2)) + 1
            lines.append(_add(f"{version}-{number}", row, rows, chosen))
            row += rows
        told = {"timestamp": int(at.timestamp() * 1000), "operation": operation}
        lines.insert(0, {"commitInfo": told})
        text = b"\n".join(map(dumps, lines))
        commit = log / f"{version:020}.json"
        commit.write_bytes(text)
        _date(commit, at)
        if version % 20 == 0:
            DeltaTable(place).create_checkpoint()
    return DeltaTable(place)


def _add(name: str, row: int, rows: int, chosen: random.Random) -> dict[str, Any]:
    values = sorted(chosen.uniform(0, 1000) for _ in range(2))
    stats = {
        "numRecords": rows,
        "minValues": {"id": row, "value": values[0]},
        "maxValues": {"id": row + rows - 1, "value": values[1]},
        "nullCount": {"id": 0, "value": 0},
    }
    month = chosen.choices(range(1, 7), [1, 1, 2, 3, 5, 8])[0]
    return {
        "add": {
            "path": f"month={month}/{name}.parquet",
            "partitionValues": {"month": str(month)},
            "size": 900 + 40 * rows,
            "modificationTime": 1,
            "dataChange": True,
            "stats": dumps(stats).decode(),  # as above
        }
    }


def _date(path: Path, at: datetime) -> None:
    os.utime(path, (at.timestamp(), at.timestamp()))


def main() -> None:
    """Draw all plots."""
    with tempfile.TemporaryDirectory() as place:
        table = make_table(Path(place) / "sales")
        for name, draw in PLOTS.items():
            (FOLDER / f"{name}.svg").write_text(draw(table).to_svg() + "\n", "utf-8")


if __name__ == "__main__":
    main()
