"""By which collation texts are compared, and what is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from deltalog import ArrayType, Field, MapType, Schema
from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    Expression,
    TextRules,
    as_expression,
    col,
    filter_mask,
    parse_sql,
    resolve,
    resolve_predicate,
    to_sql,
)
from tests.support.collating import LCASE, LCASE_RTRIM, collated

MAP = MapType("string", "string")
ARROW_MAP = pa.map_(pa.string(), pa.string())
SCHEMA = Schema(
    [
        collated("c", LCASE),
        collated("d", LCASE_RTRIM),
        collated("g", "icu.de"),
        Field("t", "string"),
        Field("n", "long"),
        Field("s", Schema([collated("c", LCASE)])),
        Field("l", ArrayType("string")).collate("UTF8_LCASE", at="element"),
        Field("m", MAP).collate("UTF8_LCASE", at="value"),
        Field("k", MAP).collate("UTF8_LCASE", at="key"),
        Field("a", ArrayType("string")),
        Field("p", MAP),
        Field("r", Schema([Field("v", ArrayType("string"))])),
        Field("i", MapType("string", "integer")),
    ]
)
ROWS = pa.RecordBatch.from_pydict(
    {
        "c": ["AB", "ab", "Ab ", "b", None],
        "d": ["AB", "ab ", "ab x", "B", None],
        "g": ["AB", "ab", "ä", "b", None],
        "t": ["AB", "ab", "AB", "B", None],
        "n": [1, 2, 3, 4, 5],
        "s": [{"c": value} for value in ["AB", "ab", "x", None, None]],
        "l": [["AB"], ["ab"], ["x"], [None], None],
        "m": pa.array([[("k", "AB")], [("k", "ab")], [], None, None], ARROW_MAP),
        "k": pa.array([[("k", "AB")], [("K", "ab")], [], None, None], ARROW_MAP),
        "a": [["AB"], ["ab"], ["x"], [None], None],
        "p": pa.array([[("k", "AB")], [("k", "ab")], [], None, None], ARROW_MAP),
        "r": [{"v": ["AB"]}, {"v": ["ab"]}, None, None, None],
        "i": pa.array([[("k", 1)], [("k", 2)], [], None, None], pa.map_(pa.string(), pa.int32())),
    }
)


def resolved(condition: str) -> Expression:
    return resolve_predicate(parse_sql(condition), SCHEMA)


def rows_of(condition: str) -> list[int]:
    picked: Any = ROWS.filter(filter_mask(resolved(condition), ROWS))
    found: list[int] = picked.column("n").to_pylist()
    return found


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("c = 'aB'", [1, 2]), ("'aB' = c", [1, 2]), ("c <> 'aB'", [3, 4]), ("c <=> NULL", [5]),
        ("c < 'AB '", [1, 2]), ("c >= 'AB '", [3, 4]), ("c BETWEEN 'AA' AND 'AB'", [1, 2]),
        ("c IN ('AB', 'B')", [1, 2, 4]), ("c NOT IN ('AB')", [3, 4]), ("c IN ('AB', NULL)", [1, 2]),
        ("d = 'aB  '", [1, 2]), ("d > 'AB'", [3, 4]), ("s.c = 'aB'", [1, 2]),
        ("CASE c WHEN 'aB' THEN true ELSE false END", [1, 2]),
        ("nullif(c, 'aB') IS NULL", [1, 2, 5]),
        ("coalesce(c, 'aB') = 'AB'", [1, 2, 5]), ("upper(c) = 'ab'", [1, 2]),
        ("concat(c, 'X') = 'abx'", [1, 2]), ("substring(c, 1, 1) = 'A'", [1, 2, 3]),
        ("trim(c) = 'aB'", [1, 2, 3]), ("l[0] = 'aB'", [1, 2]), ("m['k'] = 'aB'", [1, 2]),
        ("startswith(c, 'A')", [1, 2, 3]), ("endswith(c, 'B')", [1, 2, 4]),
        ("contains(c, 'B ')", [3]), ("contains('xAby', c)", [1, 2, 4]),
        ("c = c", [1, 2, 3, 4]), ("c = upper('ab')", [1, 2]), ("length(c) = 3", [3]),
        ("c IS NULL", [5]), ("c = 'aB' AND NOT t = 'ab'", [1]),
        ("endswith(d, 'B ')", [1, 2, 4]), ("contains(d, 'b x ')", [3]),
        ("c = array('aB')[0]", [1, 2]), ("c = split('aB', ' ')[0]", [1, 2]),
        ("c = l[0]", [1, 2]), ("c = m['k']", [1, 2]), ("m['k'] = l[0]", [1, 2]),
        ("a[0] = 'AB'", [1]), ("p['k'] = t", [1, 2]), ("a = array('AB')", [1]),
        ("substring(c, i['k'], 1) = 'A'", [1]), ("substring(c, size(a), 1) = 'A'", [1, 2, 3]),
        ("c = 'aB' AND i['k'] = 1", [1]),
    ],
)  # fmt: skip
def test_conditions_by_the_collation_of_a_column(condition: str, rows: list[int]) -> None:
    assert rows_of(condition) == rows


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("t COLLATE UTF8_LCASE = 'aB'", [1, 2, 3]), ("t = 'aB' COLLATE utf8_lcase", [1, 2, 3]),
        ("collate(t, 'UTF8_LCASE') = 'aB'", [1, 2, 3]), ("t COLLATE UTF8_LCASE = c", [1, 2, 4]),
        ("t = c COLLATE UTF8_LCASE", [1, 2, 4]), ("c = a[0] COLLATE UTF8_LCASE", [1, 2]),
        ("c COLLATE UTF8_BINARY = p['k']", [1, 2]), ("c COLLATE UTF8_BINARY = 'AB'", [1]),
        ("(c) COLLATE `UTF8_BINARY` IN ('AB', 'B')", [1]), ("CAST(c AS STRING) = 'AB'", [1]),
        ("CAST(c AS STRING) = t", [1, 2]), ("g COLLATE UTF8_BINARY = 'AB'", [1]),
        ("g COLLATE SYSTEM.BUILTIN.UTF8_LCASE = 'AB'", [1, 2]),
        ("c COLLATE UTF8_BINARY LIKE 'A%'", [1, 3]),
        ("replace(c COLLATE UTF8_BINARY, 'A', 'x') = 'xB'", [1]),
        ("t COLLATE UTF8_BINARY_RTRIM = 'AB   '", [1, 3]),
        ("upper(c COLLATE UTF8_BINARY) = 'AB'", [1, 2]),
        ("coalesce(c COLLATE UTF8_BINARY, t) = 'AB'", [1]),
    ],
)  # fmt: skip
def test_conditions_by_a_collation_that_is_named(condition: str, rows: list[int]) -> None:
    assert rows_of(condition) == rows


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("c = t", r"spark.UTF8_LCASE, spark.UTF8_BINARY.* t COLLATE UTF8_LCASE"),
        ("c = d", "UTF8_LCASE_RTRIM"),
        ("c IN ('a', t)", "which is ambiguous"),
        ("c = a[0]", r"spark.UTF8_LCASE, spark.UTF8_BINARY"),
        ("p['k'] = c", r"spark.UTF8_LCASE, spark.UTF8_BINARY|spark.UTF8_BINARY, spark.UTF8_LCASE"),
        ("c = element_at(p, 'k')", "which is ambiguous"),
        ("c IN ('b', p['k'])", "which is ambiguous"),
        ("c = concat(p['k'], 'x')", "which is ambiguous"),
        ("c = lower(a[0])", "which is ambiguous"),
        ("c = array(t)[0]", "which is ambiguous"),
        ("c = split(t, 'x')[0]", "which is ambiguous"),
        ("c = transform(a, x -> upper(x))[0]", "which is ambiguous"),
        ("c = named_struct('v', t).v", "which is ambiguous"),
        ("s.c = r.v[0]", "which is ambiguous"),
        ("c = CASE WHEN n = 1 THEN p['k'] ELSE 'q' END", "which is ambiguous"),
        ("t = l[0]", "which is ambiguous"),
        ("t = m['k']", "which is ambiguous"),
        ("l[0] = a[0]", "which is ambiguous"),
        ("m['k'] = p['k']", "which is ambiguous"),
        ("l = a", "which is ambiguous"),
        ("concat(c, t) = 'a'", "which is ambiguous"),
        ("coalesce(c, t) = 'a'", "which is ambiguous"),
        ("c COLLATE UTF8_LCASE = t COLLATE UTF8_BINARY", "which is ambiguous"),
        ("g = 'a'", r"icu\.de, whose rules .* g COLLATE UTF8_BINARY"),
        ("t COLLATE UNICODE_CI = 'a'", "whose rules deltalog does not have"),
        ("c LIKE 'a%'", "only comparisons"),
        ("c ILIKE 'a%'", "only comparisons"),
        ("c RLIKE 'a'", "only comparisons"),
        ("replace(c, 'a', 'b') = 'b'", "only comparisons"),
        ("instr(c, 'a') = 1", "only comparisons"),
        ("trim(BOTH 'a' FROM c) = 'b'", "only comparisons"),
        ("contains('\u0130', c)", "only comparisons"),
        ("greatest(c, 'a') = 'b'", "only comparisons"),
        ("hash(c) = 1", "only comparisons"),
        ("l = array('a')", "inside of nested values"),
        ("array_contains(l, 'a')", "inside of nested values"),
        ("exists(l, x -> x = 'a')", "UTF8_LCASE"),
        ("exists(array('a'), x -> x COLLATE UTF8_LCASE = 'A')", "lambda"),
        ("s = named_struct('c', 'a')", "inside of nested values"),
        ("k['K'] = 'a'", "UTF8_LCASE"),
        ("n COLLATE UTF8_LCASE = 'a'", "expected a string before COLLATE, found long"),
        ("c COLLATE UTF9 = 'a'", "no collation 'UTF9'"),
        ("c COLLATE utf8_lcas = 'a'", "did you mean 'UTF8_LCASE'"),
        ("c COLLATE = 'a'", "expected the name of a collation"),
        ("CAST(c AS STRING COLLATE UTF8_LCASE) = 'a'", "after the cast"),
        ("collate(c, t) = 'a'", "constant"),
    ],
)
def test_what_has_no_answer_is_refused(condition: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        resolved(condition)


def test_values_stay_as_they_are() -> None:
    whole = resolve(parse_sql("coalesce(c COLLATE UTF8_LCASE, 'x')"), SCHEMA)
    assert to_sql(whole) == "coalesce(c, 'x')"


@pytest.mark.parametrize(
    "condition",
    [
        "c = 'aB'", "c IN ('a', 'B')", "c COLLATE UTF8_BINARY = 'AB'", "CAST(c AS STRING) = t",
        "startswith(c, 'A')", "replace(c COLLATE UTF8_BINARY, 'A', 'x') = 'xB'", "d > 'AB '",
        "concat(c COLLATE UTF8_BINARY, t) = 'x'", pc.field("c") == "AB", pc.field("g") == "AB",
    ],
    ids=str,
)  # fmt: skip
def test_to_resolve_again_changes_nothing(condition: str | pc.Expression) -> None:
    once = as_expression(condition, SCHEMA)
    assert resolve_predicate(once, SCHEMA).same_as(once)
    assert resolve_predicate(parse_sql(to_sql(once)), SCHEMA).same_as(once)


def test_texts_of_other_engines_are_compared_by_bytes() -> None:
    found = as_expression(pc.field("c") == "AB", SCHEMA)
    assert to_sql(found) == "c COLLATE UTF8_BINARY = 'AB'"


@pytest.mark.parametrize("condition", ["c = 'a'", "t COLLATE UTF8_LCASE = 'a'", "l[0] = 'a'"])
def test_where_no_rules_are_known_nothing_is_decided(condition: str) -> None:
    with pytest.raises(InvalidInputError, match=r"rules differ|COLLATE is not supported"):
        resolve_predicate(parse_sql(condition), SCHEMA, text_rules=TextRules.NONE)
    plain = resolve_predicate(parse_sql("c IS NULL AND t = 'a'"), SCHEMA, text_rules=TextRules.NONE)
    assert to_sql(plain) == "c IS NULL AND t = 'a'"


def test_collate_in_python() -> None:
    wanted = resolve_predicate(col("t").collate("utf8_lcase") == "aB", SCHEMA)
    assert wanted.same_as(resolved("t COLLATE UTF8_LCASE = 'aB'"))
    with pytest.raises(InvalidInputError, match="no collation"):
        col("t").collate("latin1_swedish_ci")


def test_a_column_may_be_called_collate() -> None:
    schema = Schema([Field("collate", "string"), Field("x", "long")])
    found = resolve_predicate(parse_sql("collate = 'a' AND x > 1"), schema)
    assert to_sql(found) == "`collate` = 'a' AND x > 1L"
    assert resolve_predicate(parse_sql(to_sql(found)), schema).same_as(found)


@pytest.mark.parametrize("function", ["lower", "upper"])
def test_a_locale_decides_on_characters(function: str) -> None:
    with pytest.raises(InvalidInputError, match=r"icu\.de|\bde\b"):
        resolved(f"{function}(g) = 'ab'")
    assert rows_of("lower(t) = 'ab'") == [1, 2, 3]


def test_parts_are_found_by_bytes_where_that_is_said() -> None:
    for row in ("AB", "İAB"):
        batch = pa.RecordBatch.from_pydict(
            {"c": [row], "t": ["A"]}, pa.schema([("c", pa.string()), ("t", pa.string())])
        )
        schema = Schema([collated("c", LCASE), Field("t", "string")])
        for condition, found in (
            ("startswith(c COLLATE UTF8_BINARY, 'A')", row == "AB"),
            ("contains(c COLLATE UTF8_BINARY, t)", True),
            ("contains(c COLLATE UTF8_BINARY, lower(t))", False),
        ):
            mask = filter_mask(resolve_predicate(parse_sql(condition), schema), batch)
            assert mask.to_pylist() == [found], condition
