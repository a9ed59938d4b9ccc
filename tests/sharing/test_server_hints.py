"""Predicate hints: which files they leave out, and what filters nothing."""

from __future__ import annotations

import random
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.sharing.server import parse_config
from deltalog.sharing.server.pages import _Budget
from tests.support.sharing import Caller, actions, sharing, small_config

T = "s.d.t"


def _days(caller: Caller, body: object = None) -> list[str]:
    return sorted(
        file["partitionValues"]["day"][-2:] for file in actions(caller.query(T, body), "file")
    )


def _json_hint(operation: str, name: str, value: str, kind: str) -> dict[str, object]:
    column = {"op": "column", "name": name, "valueType": kind}
    literal = {"op": "literal", "value": value, "valueType": kind}
    return {"op": operation, "children": [column, literal]}


@pytest.mark.protocol("SHARE-QT-04", "SHARE-QT-05", "SHARE-QT-06", "SHARE-JP-10", "D-78")
@pytest.mark.parametrize(
    ("hints", "days"),
    [
        (["day >= '2021-04-29'"], ["29", "30"]),
        (["day >= '2021-04-29'", "day < '2021-04-30'"], ["29"]),
        (["'2021-04-29' = DAY"], ["29"]),
        (["day <> '2021-04-29'"], ["28", "30"]),
        (["day IS NULL"], []),
        (["id > 15"], ["29", "30"]),
        (["foo("], ["28", "29", "30"]),
        (["nowhere = 1", "day = '2021-04-28'"], ["28"]),
        (["nowhere = 1"], ["28", "29", "30"]),
        (["day = '2021-04-28' OR id = 25"], ["28", "30"]),
        (["id"], ["28", "29", "30"]),
    ],
)
def test_sql_hints(daily_caller: Caller, hints: list[str], days: list[str]) -> None:
    assert _days(daily_caller, {"predicateHints": hints}) == days


@pytest.mark.protocol("SHARE-QT-06", "SHARE-QT-07", "SHARE-JP-10", "SHARE-JP-07")
@pytest.mark.parametrize(
    ("hint", "days"),
    [
        (_json_hint("equal", "day", "2021-04-29", "string"), ["29"]),
        (_json_hint("greaterThan", "id", "15", "long"), ["29", "30"]),
        (_json_hint("equal", "nowhere", "1", "int"), ["28", "29", "30"]),
        (_json_hint("later", "id", "1", "int"), ["28", "29", "30"]),
        ("no tree", ["28", "29", "30"]),
        ({"op": "and", "children": []}, ["28", "29", "30"]),
    ],
)
def test_json_hints(daily_caller: Caller, hint: object, days: list[str]) -> None:
    text = hint if isinstance(hint, str) else orjson.dumps(hint).decode()
    assert _days(daily_caller, {"jsonPredicateHints": text}) == days


@pytest.mark.protocol("SHARE-JP-05", "SHARE-JP-06", "SHARE-JP-08", "SHARE-PV-01")
def test_three_valued_logic(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "hireDate": pa.array(["2021-04-29", "2021-04-28", "2021-04-29", None]),
            "id": pa.array([10, 10, 30, 30], pa.int32()),
            "unknown": pa.nulls(4, pa.string()),
        }
    )
    rows = rows.set_column(0, "hireDate", rows["hireDate"].cast(pa.date32()))
    write_deltalake(tmp_path / "t", rows, partition_by=["hireDate", "id"])
    caller = sharing({T: tmp_path / "t"})
    day = _json_hint("equal", "hireDate", "2021-04-29", "date")
    small = _json_hint("lessThan", "id", "25", "int")
    never = _json_hint("equal", "unknown", "x", "string")

    def kept(hint: object) -> set[tuple[str | None, str]]:
        body = {"jsonPredicateHints": orjson.dumps(hint).decode()}
        files = actions(caller.query(T, body), "file")
        values = [file["partitionValues"] for file in files]
        return {(value["hireDate"], value["id"]) for value in values}

    assert kept(day) == {("2021-04-29", "10"), ("2021-04-29", "30")}
    assert kept({"op": "and", "children": [day, small]}) == {("2021-04-29", "10")}
    missing = {"op": "isNull", "children": [{"op": "column", "name": "id", "valueType": "int"}]}
    assert len(kept({"op": "not", "children": [missing]})) == 4
    no_day = {**missing, "children": [{"op": "column", "name": "hireDate", "valueType": "date"}]}
    assert kept(no_day) == {(None, "30")}
    # The statistics tell that the column is NULL everywhere, so nothing can equal anything.
    assert kept({"op": "and", "children": [never, small]}) == set()
    assert len(kept({"op": "or", "children": [small, day]})) == 3


@pytest.mark.protocol("SHARE-QT-07", "SHARE-JP-06")
def test_hints_never_lose_a_row(tmp_path: Path) -> None:
    """Whatever is asked, the files that are told hold every row that matches."""
    generator = random.Random(7)
    values = [generator.choice([None, *range(-5, 20)]) for _ in range(400)]
    rows = pa.table({"p": [value and value % 4 for value in values], "v": values})
    for start in range(0, 400, 40):
        write_deltalake(tmp_path / "t", rows.slice(start, 40), partition_by=["p"], mode="append")
    caller = sharing({T: tmp_path / "t"})
    frame = DeltaTable(tmp_path / "t")
    operators = ["=", "<>", "<", "<=", ">", ">="]
    for _ in range(60):
        parts = [
            f"{generator.choice('pv')} {generator.choice(operators)} {generator.randint(-6, 21)}"
            for _ in range(generator.randint(1, 3))
        ]
        hint = generator.choice([" AND ", " OR "]).join(parts)
        files = actions(caller.query(T, {"predicateHints": [hint]}), "file")
        told = {file["id"] for file in files}
        matching = frame.scan(predicate=hint, columns=["_metadata.file_path"]).to_table()
        every = actions(caller.query(T), "file")
        by_name = {_stored_name(caller, file["url"]): file["id"] for file in every}
        needed = {by_name[str(path).rpartition("/")[2]] for path in matching.column(0).to_pylist()}
        assert needed <= told, hint


def _stored_name(_caller: Caller, url: str) -> str:
    from deltalog.sharing.server.tokens import decode_base64

    encoded = url.partition("?")[0].rpartition("/")[2]
    return (decode_base64(encoded) or b"").decode().rpartition("/")[2]


def test_hints_can_be_switched_off(daily: Path) -> None:
    off = {"evaluatePredicateHints": False, "evaluateJsonPredicateHints": False}
    caller = sharing({T: daily}, **off)
    assert len(_days(caller, {"predicateHints": ["day = '2021-04-28'"]})) == 3


@pytest.mark.protocol("SHARE-SEC-06", "SHARE-JP-09")
def test_huge_hints_filter_nothing(caller: Caller) -> None:
    deep = '{"op":"not","children":[' * 101 + '{"op":"isNull"}' + "]}" * 101
    hints = [deep, "[" * 50_000, "x" * (1 << 20 | 1)]
    for hint in hints:
        reply = caller.query(T, {"jsonPredicateHints": hint})
        assert len(actions(reply, "file")) == 1
    wide = " OR ".join(["id = 1"] * 100_000)
    assert len(actions(caller.query(T, {"predicateHints": [wide]}), "file")) == 1


def test_later_pages_look_at_the_hints_of_the_first() -> None:
    budget = _Budget(parse_config(small_config()), 10, 2)
    assert [budget.may_read(number, "a = 1") for number in range(4)] == [True, True, False, False]
