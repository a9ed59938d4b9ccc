"""The commits as a list that can be looked at."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pandas as pd
import pytest

from deltalog import DeltaTable
from deltalog._util.json import dumps
from deltalog.table.inspect.description import CommitHistory
from tests.support import logs

HOSTILE = "<script>alert(1)</script>"


def _history() -> CommitHistory:
    store = logs.DictStore()
    head: dict[str, Any] = {"operation": HOSTILE, "operationParameters": {HOSTILE: HOSTILE}}
    logs.commit(store, 0, logs.PROTOCOL, logs.metadata(), {"commitInfo": head}, time_ms=1000)
    odd: dict[str, Any] = {"operation": "WRITE", "operationMetrics": {"rows": [1]}}
    logs.commit(store, 1, logs.add("a"), {"commitInfo": odd}, time_ms=61_000)
    return DeltaTable(store).history()


def test_it_is_a_list_of_dictionaries() -> None:
    found = _history()
    assert [row["version"] for row in found] == [1, 0]
    assert found == list(found)
    assert dumps(found) == dumps(list(found))
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_data_frame_has_moments() -> None:
    frame = _history().to_pandas()
    assert frame["version"].tolist() == [1, 0]
    assert frame["timestamp"].tolist() == [
        pd.Timestamp("1970-01-01 00:01:01Z"),
        pd.Timestamp("1970-01-01 00:00:01Z"),
    ]
    assert frame["operation"].tolist() == ["WRITE", HOSTILE]
    assert CommitHistory().to_pandas().empty


def test_a_polars_data_frame_has_moments() -> None:
    polars = pytest.importorskip("polars")
    frame = _history().to_polars()
    assert frame["version"].to_list() == [1, 0]
    assert frame.schema["timestamp"] == polars.Datetime("ms", "UTC")
    assert frame["operation"].to_list() == ["WRITE", HOSTILE]
    mixed: list[dict[str, Any]] = [
        {"version": 1, "operationMetrics": {"n": 1}},
        {"operationMetrics": {"n": "2", "m": 3}},
    ]
    assert CommitHistory(mixed).to_polars().shape == (2, 2)
    assert CommitHistory().to_polars().is_empty()


def test_the_card_escapes_what_commits_say() -> None:
    page = _history()._repr_html_()
    assert "2 commits" in page
    assert "1970-01-01 00:01:01Z" in page
    assert re.search(">1 metric</summary><table[^>]*><tr[^>]*><td", page)
    assert ">[1]</td>" in page
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 3


def test_the_card_of_parameters_that_are_nested_deeply() -> None:
    deep = "[" * 900 + "]" * 900
    row = {"version": 0, "timestamp": 0, "operationParameters": {"p": deep, "q": '{"a": ["b"]}'}}
    page = CommitHistory([row])._repr_html_()
    assert "…" in page
    assert "a=b" in page


def test_the_card_shows_numbers_of_rows_and_folds_the_other_metrics() -> None:
    metrics = {"numOutputRows": "2", "numCopiedRows": "0", "executionTimeMs": "19"}
    row = {"version": 0, "timestamp": 0, "operation": "WRITE", "operationMetrics": metrics}
    page = CommitHistory([row])._repr_html_()
    assert ">2 rows written</summary>" in page
    assert page.count(">executionTimeMs</td>") == page.count(">19</td>") == 1
    assert ">parameters</th>" not in page  # a column without a value


def test_a_long_history_has_a_short_card() -> None:
    row = {"version": 0, "timestamp": 0}
    page = CommitHistory([row] * 60)._repr_html_()
    assert page.count("<tr>") == 51
    assert "without 10 older" in page


def test_parameters_are_lines_without_the_brackets_of_json() -> None:
    parameters = {
        "predicate": '["id = 1"]',
        "partitionBy": "[]",
        "zOrderBy": '["a","b"]',
        "properties": '{"delta.appendOnly":"true"}',
        "matchedPredicates": '[{"actionType":"update","predicate":"s.n > 1"},'
        '{"actionType":"delete"}]',
        "statsOnLoad": False,
        "odd": "[not JSON",
    }
    row = {"version": 0, "timestamp": 0, "operation": "MERGE", "operationParameters": parameters}
    page = CommitHistory([row])._repr_html_()
    cells = re.findall("<td[^>]*>([^<]*)</td>", page.partition("MERGE</td>")[2])
    assert dict(zip(cells[::2], cells[1::2], strict=True)) == {
        "predicate": "id = 1",
        "zOrderBy": "a, b",
        "properties": "delta.appendOnly=true",
        "matchedPredicates": "update if s.n &gt; 1, delete",
        "statsOnLoad": "false",
        "odd": "[not JSON",
    }


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("pl", "to_polars()"),
        ("to_arrow", "pyarrow.table(history.to_pandas())"),
        ("limit", "history(limit=…)"),
        ("operation", "history[0]"),
        ("to_panda", "did you mean 'to_pandas'?"),
    ],
)
def test_names_of_other_libraries_are_explained(name: str, instead: str) -> None:
    history = _history()
    with pytest.raises(AttributeError, match=re.escape(instead)):
        getattr(history, name)
    assert pickle.loads(pickle.dumps(history)) == history
    assert not hasattr(history, "__arrow_c_stream__")
