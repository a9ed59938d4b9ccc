"""Pipe syntax: each operator means the query that Spark makes of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import deltalog
from deltalog.errors import InvalidInputError


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("FROM {t} |> SET id = id + 1, v = concat(v, id)", [(2, "a2"), (3, "b3")]),
        ("SELECT id AS x FROM {t} |> SET x = x * 10", [(10,), (20,)]),
        ("FROM {t} |> DROP v |> WHERE id > 1", [(2,)]),
        ("FROM {t} |> UNION ALL SELECT 3, 'z' |> WHERE id > 1", [(2, "b"), (3, "z")]),
        ("FROM {t} |> EXCEPT (TABLE {t} |> WHERE id = 1)", [(2, "b")]),
        ("VALUES (1, 'q') |> INTERSECT TABLE {t}", []),
        ("VALUES (0, 'q') |> UNION ALL TABLE {t} |> DROP col2", [(0,), (1,), (2,)]),
    ],
)
def test_pipes(tmp_path: Path, query: str, rows: list[tuple[object, ...]]) -> None:
    deltalog.write_deltalake(tmp_path, pa.table({"id": [1, 2], "v": ["a", "b"]}))
    found = pa.table(deltalog.sql(query.format(t=f"delta.`{tmp_path}`")))
    assert sorted(tuple(row.values()) for row in found.to_pylist()) == rows


@pytest.mark.parametrize("operator", ["SET id", "SET = 1", "RENAME id AS x", "UNION ALL"])
def test_other_operators_are_refused(operator: str) -> None:
    with pytest.raises(InvalidInputError, match="line 1, character"):
        deltalog.sql(f"SELECT 1 AS id |> {operator}")
