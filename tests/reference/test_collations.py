"""Collations by both: keys of every character, answers about texts, and tables both ways."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, Schema, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.expressions import evaluate, parse_sql, resolve
from deltalog.expressions.comparing import keys_of
from deltalog.expressions.render import quote_text
from deltalog.schema.types import RULES, collation_named, name_in_sql, versioned
from tests.support.reference import ReferenceError, Spark  # noqa: A004  # the reference's own error
from tests.support.reference_scenarios import FULL

TYPE_CHECK = "spark.databricks.delta.schema.typeCheck.enabled"
TEXTS = (
    "", "a", "A", "ab", "AB", "aB ", "b", " a", "a  ", "\u0130", "i\u0307", "i", "I", "\u0131",
    "\u03a3", "\u03c3", "\u03c2", "\u0391\u03a3", "\u1e9e", "\u00df", "ss", "\u00c9", "\u00e9",
    "e\u0301", "\u212a", "K", "\U00010400", "\U00010428", "\ufb00", "ff", "x\u0130", "\u0130x",
    "\u0307x", "\U0001f600", "\u01c5", "\u01c6", "Z",
)  # fmt: skip
SCHEMA = Schema(
    [
        Field("c", "string").collate("UTF8_LCASE"),
        Field("d", "string").collate("UTF8_LCASE_RTRIM"),
        Field("t", "string"),
        Field("n", "long"),
    ]
)
ROW = {"c": "AB", "d": "ab ", "t": "Ab", "n": 5}


@pytest.fixture(scope="module", autouse=True)
def unchecked(spark: Spark) -> Iterator[None]:
    """The reference lets collations into tables only if told to."""
    spark.run(f"SET {TYPE_CHECK} = false")
    yield
    spark.run(f"SET {TYPE_CHECK} = true")


@pytest.mark.protocol("B-62")
def test_keys_of_every_character(spark: Spark, tmp_path: Path) -> None:
    # No character of the planes above has another case.
    last = sys.maxunicode if FULL else 0x1FFFF
    codes = [code for code in range(last + 1) if not 0xD800 <= code < 0xE000]
    texts = [chr(code) for code in codes]
    keys = keys_of(texts, "spark.UTF8_LCASE")
    table = pa.table({"code": pa.array(codes, pa.int32()), "s": texts, "k": keys})
    write_deltalake(tmp_path, table)
    name = "UTF8_LCASE"
    rows = f"delta.`{tmp_path}`"
    (wrong,) = spark.query(
        f"SELECT collect_list(code) codes FROM {rows} WHERE NOT s COLLATE {name} = k"  # noqa: S608
    ).to_pylist()
    assert wrong["codes"] == []
    (count,) = spark.query(f"SELECT count(DISTINCT k COLLATE {name}) n FROM {rows}").to_pylist()  # noqa: S608
    assert count["n"] == len(set(keys))
    before = f"lag(k) OVER (ORDER BY s COLLATE {name})"
    (turned,) = spark.query(
        f"SELECT count(*) n FROM (SELECT k, {before} p FROM {rows}) WHERE p > k"  # noqa: S608
    ).to_pylist()
    assert turned["n"] == 0


@pytest.mark.protocol("B-62")
@pytest.mark.parametrize("collation", RULES)
def test_texts_compare_as_there(spark: Spark, collation: str) -> None:
    pairs = list(itertools.product(TEXTS, repeat=2))
    name = name_in_sql(collation)
    asked = {"eq": "a = b", "lt": "a < b", "le": "a <= b", "ne": "a <> b", "one": "a IN (b, 'q')"}
    asked |= {name: f"{name}(a, b)" for name in ("startswith", "endswith", "contains")}
    schema = Schema([Field("a", "string").collate(name), Field("b", "string").collate(name)])
    data = pa.RecordBatch.from_pydict(
        {"a": [pair[0] for pair in pairs], "b": [pair[1] for pair in pairs]}
    )
    ours = {
        key: evaluate(resolve(parse_sql(text), schema), data).to_pylist()
        for key, text in asked.items()
    }
    values = ", ".join(
        f"({number}, {quote_text(a)}, {quote_text(b)})" for number, (a, b) in enumerate(pairs)
    )
    shown = ", ".join(f"{text} AS {key}" for key, text in asked.items())
    theirs = spark.query(
        f"SELECT {shown} FROM (SELECT n, a COLLATE {name} a, b COLLATE {name} b "  # noqa: S608
        f"FROM VALUES {values} AS v(n, a, b)) ORDER BY n"
    )
    for key, found in ours.items():
        wrong = [
            (pair, mine, other)
            for pair, mine, other in zip(pairs, found, theirs.column(key).to_pylist(), strict=True)
            if mine is not other
        ]
        assert wrong == [], key


@pytest.mark.protocol("B-62")
def test_names_are_those_of_the_reference(spark: Spark) -> None:
    named: list[Any] = spark.query("SELECT NAME FROM collations()").column(0).to_pylist()
    assert len(named) > 400
    for name in named:
        assert name_in_sql(collation_named(name)) == name
        assert name_in_sql(collation_named(name.lower())) == name
    ours = {name_in_sql(identifier) for identifier in ("spark.UTF8_BINARY", *RULES)}
    assert ours <= set(named)


def sorted_ids(rows: pa.Table) -> list[Any]:
    found: list[Any] = rows.column("id").to_pylist()
    return sorted(found)


def ours(text: str) -> Any:
    """Our answer in the one row; the error's class where there is none."""
    batch = pa.RecordBatch.from_pylist([ROW])
    try:
        return evaluate(resolve(parse_sql(text), SCHEMA), batch)[0].as_py()
    except InvalidInputError as error:
        return "mixed" if "which is ambiguous" in str(error) else "refused"


def theirs(spark: Spark, text: str) -> Any:
    row = "SELECT 'AB' COLLATE UTF8_LCASE c, 'ab ' COLLATE UTF8_LCASE_RTRIM d, 'Ab' t, 5L n"
    try:
        return spark.query(f"SELECT {text} AS x FROM ({row})").column(0).to_pylist()[0]  # noqa: S608
    except ReferenceError as error:
        return "mixed" if "COLLATION" in str(error.condition) else str(error.condition)


@pytest.mark.protocol("B-62")
@pytest.mark.parametrize(
    "text",
    [
        "c = 'aB'", "'aB' = c", "c = t", "c = d", "t = c COLLATE UTF8_LCASE",
        "t COLLATE UTF8_LCASE = c", "c COLLATE UTF8_LCASE = d COLLATE UTF8_LCASE_RTRIM",
        "c COLLATE UTF8_BINARY = 'AB'", "c COLLATE UTF8_BINARY = t", "CAST(c AS STRING) = 'AB'",
        "CAST(c AS STRING) = 'ab'", "CAST(c AS STRING) = t", "CAST(c AS STRING) = d",
        "CAST(n AS STRING) = c", "c IN ('ab', 'x')", "c IN ('x', t)", "c = concat('a', 'B')",
        "c = concat(t, '')", "concat(c, t) = 'abab'", "concat(c, 'x') = 'ABX'",
        "coalesce(c, t) = 'ab'", "coalesce(c, 'x') = 'ab'", "nullif(c, 'ab') IS NULL",
        "CASE c WHEN 'ab' THEN 1 ELSE 2 END", "CASE WHEN n = 5 THEN c ELSE 'x' END = 'ab'",
        "CASE WHEN n = 5 THEN c ELSE t END = 'ab'", "upper(c) = 'ab'", "lower(c) = upper('ab')",
        "upper(c COLLATE UTF8_BINARY) = 'ab'", "substring(c, 1, 1) = 'a'", "left(c, 1) = 'a'",
        "right(c, 1) = 'b'", "repeat(c, 2) = 'abab'", "reverse(c) = 'ba'", "trim(c) = 'ab'",
        "rtrim(d) = 'AB'", "lpad(c, 3, 'x') = 'XAB'", "rpad(c, 3, 'x') = 'ABX'",
        "concat(c COLLATE UTF8_BINARY, t) = 'ABAb'", "length(c)", "length(d)",
        "c BETWEEN 'aa' AND 'ac'", "c <=> 'ab'", "c < 'ac'", "c > 'A'", "d = 'AB   '",
        "d <= 'aB'", "startswith(c, 'a')", "startswith(c, t)", "contains(c, 'b')",
        "endswith(c, 'b')", "c || t = 'ABAB'", "md5(t) = c",
        "date_format(DATE'2024-01-01', 'yyyy') = c", "collate(t, 'UTF8_LCASE') = 'AB'",
        "t COLLATE SYSTEM.BUILTIN.UTF8_LCASE = 'AB'", "if(n = 5, c, 'x') = 'ab'",
        "nvl(c, 'x') = 'ab'", "replace(t, 'b', 'x') = c",
        "replace(c COLLATE UTF8_BINARY, 'B', 'x') = 'Ax'",
        "c = array('aB')[0]", "c = array(t)[0]", "array(t)[0] = c", "c = map('k', t)['k']",
        "c = map('k', 'aB')['k']", "c = element_at(map('k', t), 'k')", "c = named_struct('f', t).f",
        "c = named_struct('f', 'aB').f", "c = split(t, 'x')[0]", "c = split('aB', 'x')[0]",
        "c = lower(map('k', t)['k'])", "c IN ('x', array(t)[0])", "c <=> map('k', t)['k']",
        "c = transform(array(t), x -> upper(x))[0]", "array(t)[0] = t",
        "substring(c, size(array(t)), 1) = 'a'", "c = concat(array(t)[0], '')",
    ],
)  # fmt: skip
def test_the_collation_of_an_expression(spark: Spark, text: str) -> None:
    assert ours(text) == theirs(spark, text)


@pytest.mark.protocol("B-62")
@pytest.mark.parametrize(
    "text",
    [
        "array(c)[0] = 'ab'", "map('k', c)['k'] = 'ab'", "named_struct('f', c).f = 'ab'",
        "split(c, 'B')[0] = 'A'", "c LIKE 'a%'", "instr(c, 'b') = 2", "replace(c, 'b', 'x') = 'AX'",
        "greatest(c, 'aa') = 'ab'", "array_contains(array(c), 'ab')", "initcap(c) = 'ab'",
    ],
)  # fmt: skip
def test_what_is_refused_here_and_not_there(spark: Spark, text: str) -> None:
    assert ours(text) == "refused"
    assert theirs(spark, text) is True


@pytest.mark.protocol("B-62")
def test_a_table_of_the_reference(spark: Spark, tmp_path: Path) -> None:
    path = tmp_path / "table"
    spark.tell(
        path,
        "CREATE TABLE T (id INT, s STRING COLLATE UTF8_LCASE, t STRING COLLATE de, "
        "a ARRAY<STRING COLLATE UTF8_LCASE>, st STRUCT<f: STRING COLLATE UTF8_LCASE_RTRIM>) "
        "USING delta",
        "INSERT INTO T VALUES (1, 'a', 'ä', array('x'), named_struct('f', 'X ')), "
        "(2, 'A', 'z', NULL, NULL), (3, 'b', 'ö', array('Y'), named_struct('f', 'y'))",
    )
    table = DeltaTable(path)
    conditions = {
        "s = 'A'": [1, 2], "s > 'A'": [3], "s IN ('B', 'c')": [3], "st.f = 'x'": [1],
        "a[0] = 'X'": [1], "s COLLATE UTF8_BINARY = 'A'": [2],
    }  # fmt: skip
    for condition, ids in conditions.items():
        found = table.to_pyarrow_table(filters=condition)
        assert sorted_ids(found) == ids
        there = spark.query(f"SELECT id FROM delta.`{path}` WHERE {condition}")  # noqa: S608
        assert sorted_ids(there) == ids
    with pytest.raises(InvalidInputError, match="whose rules deltalog does not have"):
        table.to_pyarrow_table(filters="t = 'z'")
    table.delete("s = 'a'")
    assert spark.read(path, columns="id").column("id").to_pylist() == [3]


@pytest.mark.protocol("B-62")
def test_a_table_of_ours(spark: Spark, tmp_path: Path) -> None:
    schema = Schema(
        [
            Field("id", "integer"),
            Field("s", "string").collate("UTF8_LCASE"),
            Field("t", "string").collate("UNICODE_CI"),
        ]
    )
    DeltaTable.create(tmp_path, schema=schema)
    for first, names in ((1, ["AB", "ab", "Z"]), (4, ["x", "Y", "\u00c9"])):
        ids = pa.array(range(first, first + 3), pa.int32())
        write_deltalake(tmp_path, pa.table({"id": ids, "s": names, "t": names}), mode="append")
    table = DeltaTable(tmp_path)
    table.create_checkpoint()
    for condition in ("s = 'aB'", "s > 'X'", "s IN ('z', '\u00e9')", "s <> 'y'"):
        here = table.to_pyarrow_table(filters=condition)
        there = spark.query(f"SELECT id FROM delta.`{tmp_path}` WHERE {condition}")  # noqa: S608
        assert sorted_ids(here) == sorted_ids(there)
    assert spark.query(f"SELECT id FROM delta.`{tmp_path}` WHERE t = 'y'").num_rows == 1  # noqa: S608
    shown = spark.query(f"DESCRIBE TABLE delta.`{tmp_path}`").column("data_type").to_pylist()
    assert shown[1:3] == ["string collate UTF8_LCASE", "string collate UNICODE_CI"]
    with pytest.raises(ReferenceError, match="collations"):  # it knows no such feature
        spark.tell(tmp_path, "UPDATE T SET t = 'new' WHERE s = 'AB'")


@pytest.mark.protocol("B-62")
def test_versions_are_those_of_the_reference(spark: Spark) -> None:
    (version,) = {
        row["ICU_VERSION"]
        for row in spark.query("SELECT * FROM collations()").to_pylist()
        if row["NAME"] == "UNICODE"
    }
    assert versioned("spark.UTF8_LCASE").startswith("spark.UTF8_LCASE.")
    assert versioned("x").removeprefix("x.").split(".")[0] == str(version).split(".")[0]
