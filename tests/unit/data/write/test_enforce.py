from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.write import Enforcer
from deltalog.errors import (
    ConstraintViolationError,
    InvalidInputError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltalog.protocol.configuration import TableConfiguration
from deltalog.schema import ArrayType, Field, MapType, StructType
from tests.support.writes import enforced, table, with_metadata

DEFAULTS = ("allowColumnDefaults",)


GENERATED = ("generatedColumns",)


IDENTITY = ("identityColumns",)


def identity(start: int = 1, step: int = 1, **more: Any) -> Field:
    entries = {"delta__identity__start": start, "delta__identity__step": step}
    named = {f"delta__identity__{name}": value for name, value in more.items()}
    return with_metadata(Field("id", "long"), **entries, **named)


def default(name: str, kind: Any, text: str) -> Field:
    return with_metadata(Field(name, kind), CURRENT_DEFAULT=text)


def generated(name: str, kind: Any, text: str) -> Field:
    return with_metadata(Field(name, kind), delta__generationExpression=text)


# --- NOT NULL and lengths


LIMITED = [
    ("varchar(3)", "string", ["abc", "äöü", None], ["abcd"]),
    ("char(3)", "string", ["a", ""], ["abc "]),
    ("array<varchar(2)>", ArrayType("string"), [["ab", None], None], [["ab"], ["abc", "x"]]),
    ("map<varchar(1),char(2)>", MapType("string", "string"), [[("k", "ab")]], [[("kk", "a")]]),
    ("map<varchar(1),char(2)>", MapType("string", "string"), [None], [[("k", "abc")]]),
    (
        "struct<x:char(2),d:decimal(3,1)>",
        StructType([Field("x", "string"), Field("d", "decimal(3,1)")]),
        [{"x": "ab", "d": Decimal(1)}],
        [{"x": "abc", "d": Decimal(1)}],
    ),
]


@pytest.mark.protocol("D-39")
@pytest.mark.parametrize(("text", "kind", "good", "bad"), LIMITED, ids=str)
def test_texts_are_stored_as_given_up_to_their_length(
    text: str, kind: Any, good: list[Any], bad: list[Any]
) -> None:
    column = Field("a", kind, metadata={"__CHAR_VARCHAR_TYPE_STRING": text})
    arrow = pa.map_(pa.string(), pa.string()) if isinstance(kind, MapType) else None
    assert enforced(table(column), {"a": pa.array(good, arrow)}) == {"a": good}
    with pytest.raises(
        ConstraintViolationError, match=r"length of column 'a.*\((var)?char"
    ) as caught:
        enforced(table(column), {"a": pa.array(bad, arrow)})
    assert caught.value.num_rows == 1


# --- CHECK constraints and invariants


@pytest.mark.protocol("CON-01", "CON-02")
@pytest.mark.parametrize("value", [0, None])
def test_a_check_must_be_true(value: int | None) -> None:
    configuration = table(Field("a", "long"), Field("b", "string"), constraints__pos="a > 0")
    assert enforced(configuration, {"a": [1]}) == {"a": [1], "b": [None]}
    with pytest.raises(
        ConstraintViolationError, match=r"CHECK constraint 'pos' \(a > 0\)"
    ) as caught:
        enforced(configuration, {"a": [1, value, value, 2]})
    error = caught.value
    assert (error.constraint, error.num_rows) == ("pos", 2)
    assert error.examples == ({"a": value},)


@pytest.mark.protocol("CON-06")
def test_a_check_counts_whatever_the_protocol_says() -> None:
    configuration = table(Field("a", "long"), constraints__pos="a > 0")
    assert not configuration.supports("checkConstraints")
    with pytest.raises(ConstraintViolationError):
        enforced(configuration, {"a": [0]})


def test_at_most_five_rows_are_shown() -> None:
    configuration = table(Field("a", "long"), constraints__pos="a > 0")
    with pytest.raises(ConstraintViolationError, match=r"\{'a': -4\}, …$") as caught:
        enforced(configuration, {"a": [-n for n in range(9)]})
    assert (caught.value.num_rows, len(caught.value.examples)) == (9, 5)


def invariant(text: str) -> Field:
    stored = f'{{"expression":{{"expression":"{text}"}}}}'
    return with_metadata(Field("x", "long"), delta__invariants=stored)


@pytest.mark.protocol("INV-01")
@pytest.mark.parametrize("value", [3, None])
def test_an_invariant_must_be_true(value: int | None) -> None:
    configuration = table(invariant("x > 3"))
    assert enforced(configuration, {"x": [4]}) == {"x": [4]}
    with pytest.raises(ConstraintViolationError, match="invariant of column 'x'"):
        enforced(configuration, {"x": [value]})


@pytest.mark.protocol("INV-02")
def test_an_invariant_needs_its_feature() -> None:
    configuration = table(invariant("x > 3"), features=["appendOnly"])
    assert enforced(configuration, {"x": [3]}) == {"x": [3]}


@pytest.mark.protocol("INV-03", "B-59")
@pytest.mark.parametrize("text", ["my_udf(a) > 0", "a >", "b = 1", "a > current_timestamp()"])
def test_a_rule_that_cannot_be_evaluated_refuses_the_write(text: str) -> None:
    configuration = table(Field("a", "long"), constraints__odd=text)
    with pytest.raises(UnsupportedFeatureError, match="CHECK constraint 'odd'"):
        Enforcer(configuration, pa.schema({"a": pa.int64()}), time_zone="UTC")


def test_a_rule_that_fails_for_a_row_is_named() -> None:
    configuration = table(Field("a", "integer"), constraints__small="a + 1 < 10")
    with pytest.raises(InvalidInputError) as caught:
        enforced(configuration, {"a": [2**31 - 1]})
    assert any("'small'" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    "rule",
    [
        # Reading what is named twice is `re.error` in Python.
        "to_timestamp(s, 'yyyy yyyy') > TIMESTAMP'2020-01-01 00:00:00'",
        "round(a + 0.5D, 2147483647) > 0",  # decimal.InvalidOperation
    ],
)
def test_what_python_raises_names_the_rule(rule: str) -> None:
    columns = (Field("a", "integer"), Field("s", "string"))
    configuration = table(*columns, constraints__odd=rule)
    with pytest.raises(InvalidInputError, match="cannot compute") as caught:
        enforced(configuration, {"a": [2**31 - 1], "s": ["2020 2020"]})
    assert any(f"'odd' ({rule})" in note for note in caught.value.__notes__)
    computed = table(*columns, generated("g", "boolean", rule), features=GENERATED)
    with pytest.raises(InvalidInputError, match="cannot compute") as caught:
        enforced(computed, {"a": [2**31 - 1], "s": ["2020 2020"]})
    assert any("generated column 'g'" in note for note in caught.value.__notes__)


NOON = {"at": [datetime(2024, 1, 1, 12, tzinfo=UTC)]}


@pytest.mark.parametrize(
    ("feature", "more"),
    [
        ("checkConstraints", {"constraints__late": "at >= TIMESTAMP'2024-01-01 00:00:00'"}),
        ("checkConstraints", {"constraints__day": "hour(at) > 1"}),
    ],
)
def test_rules_of_wall_times_are_for_utc(feature: str, more: dict[str, str]) -> None:
    configuration = table(Field("at", "timestamp"), **more)
    assert enforced(configuration, NOON) == NOON
    assert enforced(configuration, NOON, time_zone="Etc/UTC") == NOON
    with pytest.raises(UnsupportedFeatureError, match=r"depends on the time zone.*New_York") as it:
        enforced(configuration, NOON, time_zone="America/New_York")
    assert it.value.features == (feature,)


def test_computed_wall_times_are_for_utc() -> None:
    day = generated("day", "date", "CAST(at AS DATE)")
    computed = table(Field("at", "timestamp"), day, features=GENERATED)
    given = {**NOON, "day": [date(2024, 1, 1)]}
    assert enforced(computed, NOON) == given
    for rows in (NOON, given):
        with pytest.raises(UnsupportedFeatureError, match=r"generated column 'day'.*time zone"):
            enforced(computed, rows, time_zone="Asia/Tokyo")
    fixed = table(default("at", "timestamp", "TIMESTAMP'2024-01-01 12:00:00'"), features=DEFAULTS)
    with pytest.raises(UnsupportedFeatureError, match=r"the default of column 'at'.*time zone"):
        enforced(fixed, pa.table({"at": []}).select([]), time_zone="Asia/Tokyo")
    instant = table(Field("at", "timestamp"), constraints__x="at > TIMESTAMP'2024-01-01 00:00:00Z'")
    assert enforced(instant, NOON, time_zone="Asia/Tokyo") == NOON


# --- generated columns


@pytest.mark.protocol("GEN-01", "D-40")
def test_generated_columns_are_computed() -> None:
    configuration = table(
        generated("day", "date", "CAST(at AS DATE)"),
        Field("at", "timestamp"),
        generated("twice", "long", "n * 2"),
        Field("n", "long"),
        features=GENERATED,
    )
    moment = datetime(2024, 1, 31, 23, tzinfo=UTC)
    rows = enforced(configuration, {"at": [moment, None], "n": [2, None]})
    assert rows["day"] == [date(2024, 1, 31), None]
    assert rows["twice"] == [4, None]


@pytest.mark.protocol("GEN-02")
def test_generated_columns_that_are_given_are_verified() -> None:
    configuration = table(
        Field("n", "long"), generated("twice", "long", "n * 2"), features=GENERATED
    )
    good = {"n": [1, None], "twice": [2, None]}
    assert enforced(configuration, good) == good
    for bad in (3, None):
        with pytest.raises(ConstraintViolationError, match="generated column 'twice'"):
            enforced(configuration, {"n": [1], "twice": pa.array([bad], pa.int64())})


@pytest.mark.protocol("GEN-03")
def test_generated_columns_need_their_feature() -> None:
    configuration = table(Field("n", "long"), generated("twice", "long", "n * 2"))
    assert enforced(configuration, {"n": [1]}) == {"n": [1], "twice": [None]}


@pytest.mark.protocol("B-59")
def test_a_generated_column_that_cannot_be_computed_refuses_the_write() -> None:
    configuration = table(Field("n", "long"), generated("g", "long", "udf(n)"), features=GENERATED)
    for names in (["n"], ["n", "g"]):
        source = pa.schema([pa.field(name, pa.int64()) for name in names])
        with pytest.raises(UnsupportedFeatureError, match="generated column 'g'"):
            Enforcer(configuration, source, time_zone="UTC")


# --- identity columns


@pytest.mark.protocol("IDN-03", "D-41")
@pytest.mark.parametrize(
    ("column", "values"),
    [
        (identity(1, 2), [1, 3, 5]),
        (identity(0, -5), [0, -5, -10]),
        (identity(1, 2, highWaterMark=5), [7, 9, 11]),
        (identity(10, -5, highWaterMark=5), [0, -5, -10]),
    ],
)
def test_identity_values_go_on_after_the_mark(column: Field, values: list[int]) -> None:
    configuration = table(column, Field("n", "long"), features=IDENTITY)
    source = pa.schema({"n": pa.int64()})
    enforcer = Enforcer(configuration, source, time_zone="UTC")
    found = [
        value
        for count in (2, 0, 1)
        for value in enforcer.apply(pa.record_batch({"n": pa.nulls(count, pa.int64())}))
        .column(0)
        .to_pylist()
    ]
    assert found == values
    assert enforcer.identity_marks == {"id": values[-1]}
    assert enforcer.identity_starts == {"id": values[0]}


@pytest.mark.protocol("IDN-05")
def test_identity_values_never_wrap_around() -> None:
    configuration = table(
        identity(0, 5, highWaterMark=2**63 - 2), Field("n", "long"), features=IDENTITY
    )
    with pytest.raises(InvalidInputError, match="no values left"):
        enforced(configuration, {"n": [1]})


@pytest.mark.protocol("IDN-02")
def test_values_of_an_identity_column_are_refused() -> None:
    configuration = table(identity(), Field("n", "long"), features=IDENTITY)
    with pytest.raises(InvalidInputError, match="'id' are always generated"):
        enforced(configuration, {"ID": [7], "n": [1]})
    kept = enforced(configuration, {"id": [7], "n": [1]}, keeps_identities=True)
    assert kept == {"id": [7], "n": [1]}


@pytest.mark.protocol("IDN-07")
def test_values_may_be_given_where_the_column_allows_it() -> None:
    configuration = table(identity(allowExplicitInsert=True), Field("n", "long"), features=IDENTITY)
    rows = pa.table({"id": pa.array([7, None], pa.int64())})
    enforcer = Enforcer(configuration, rows.schema, time_zone="UTC")
    assert enforcer.apply(rows.to_batches()[0]).column(0).to_pylist() == [7, None]
    assert enforcer.identity_marks == {}


def test_a_worker_numbers_from_where_it_is_told() -> None:
    configuration = table(identity(), Field("n", "long"), features=IDENTITY)
    rows = enforced(configuration, {"n": [1, 1]}, identity_starts={"id": 101})
    assert rows["id"] == [101, 102]


# --- defaults


@pytest.mark.protocol("B-58")
def test_missing_columns_get_their_defaults() -> None:
    configuration = table(
        default("a", "integer", "5"),
        default("at", "timestamp", "current_timestamp()"),
        default("c", "string", "concat('a', 'b')"),
        default("l", ArrayType("long"), "array(1, 2)"),
        default("none", "long", "NULL"),
        Field("d", "long"),
        features=DEFAULTS,
    )
    rows = enforced(configuration, {"d": [1, 2]}, now_ms=1_700_000_000_123)
    moment = datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
    assert rows == {
        "a": [5, 5], "at": [moment] * 2, "c": ["ab"] * 2, "l": [[1, 2]] * 2,
        "none": [None] * 2, "d": [1, 2],
    }  # fmt: skip


def test_null_that_is_given_stays_null() -> None:
    configuration = table(default("a", "integer", "5"), features=DEFAULTS)
    assert enforced(configuration, {"a": [None, 1]}) == {"a": [None, 1]}


@pytest.mark.protocol("CON-01", "CON-06")
@pytest.mark.parametrize(
    ("text", "day", "is_allowed"),
    [
        ("d <= current_date()", date(2023, 11, 14), True),
        ("d < current_date", date(2023, 11, 14), False),
        ("d >= now()", date(2023, 11, 14), False),
        ("d >= date_sub(curdate(), 1)", date(2023, 11, 13), True),
        ("d < localtimestamp()", date(2023, 11, 15), False),
    ],
)
def test_a_rule_of_another_writer_may_depend_on_the_time(
    text: str, day: date, *, is_allowed: bool
) -> None:
    """deltalog makes no such rule, and Delta Spark evaluates those that are there."""
    now_ms = 1_700_000_000_123  # 2023-11-14T22:13:20Z
    invariant = with_metadata(
        Field("d", "date"), delta__invariants=f'{{"expression": {{"expression": "{text}"}}}}'
    )
    for configuration in (table(Field("d", "date"), constraints__late=text), table(invariant)):
        if is_allowed:
            assert enforced(configuration, {"d": [day]}, now_ms=now_ms) == {"d": [day]}
        else:
            with pytest.raises(
                ConstraintViolationError, match="is violated by 1 of 1 checked row: "
            ):
                enforced(configuration, {"d": [day]}, now_ms=now_ms)


@pytest.mark.protocol("GEN-01", "GEN-02")
def test_a_generated_column_of_another_writer_may_depend_on_the_time() -> None:
    made = (Field("a", "long"), generated("g", "date", "current_date()"))
    configuration, now_ms = table(*made, features=GENERATED), 1_700_000_000_123
    today = date(2023, 11, 14)
    assert enforced(configuration, {"a": [1]}, now_ms=now_ms) == {"a": [1], "g": [today]}
    assert enforced(configuration, {"a": [1], "g": [today]}, now_ms=now_ms)["g"] == [today]
    with pytest.raises(ConstraintViolationError, match="generated column 'g'"):
        enforced(configuration, {"a": [1], "g": [date(2023, 11, 13)]}, now_ms=now_ms)


def test_a_default_satisfies_not_null() -> None:
    field = Field("a", "long", nullable=False, metadata={"CURRENT_DEFAULT": "1"})
    rows = enforced(table(field, Field("b", "long"), features=DEFAULTS), {"b": [2]})
    assert rows == {"a": [1], "b": [2]}


def test_defaults_need_their_feature() -> None:
    configuration = table(default("a", "integer", "5"), Field("b", "long"))
    assert enforced(configuration, {"b": [1]}) == {"a": [None], "b": [1]}


def test_a_default_that_cannot_be_evaluated_matters_where_it_is_needed() -> None:
    configuration = table(default("a", "integer", "udf()"), Field("b", "long"), features=DEFAULTS)
    assert enforced(configuration, {"a": [1]}) == {"a": [1], "b": [None]}
    with pytest.raises(UnsupportedFeatureError, match="default of column 'a'"):
        enforced(configuration, {"b": [1]})


def test_rules_see_what_was_filled_in() -> None:
    configuration = table(
        default("a", "long", "7"),
        generated("g", "long", "a + id"),
        identity(),
        Field("n", "long"),
        features=(*DEFAULTS, *GENERATED, *IDENTITY),
        constraints__sum="g = a + id",
    )
    rows = enforced(configuration, {"n": [0, 0]})
    assert rows == {"a": [7, 7], "g": [8, 9], "id": [1, 2], "n": [0, 0]}


def test_a_partition_column_that_is_missing_is_refused() -> None:
    columns = (Field("v", "long"), Field("p", "string"), Field("q", "string"))
    with pytest.raises(SchemaMismatchError, match=r"lacks partition column\(s\) 'q'.* NULL"):
        enforced(
            table(*columns, partition_by=["p", "q"]), {"v": [1], "P": ["a"]}, has_partitions=True
        )


@pytest.mark.parametrize(
    ("feature", "column", "value"),
    [
        (DEFAULTS, default("p", "long", "7"), 7),
        (GENERATED, generated("p", "long", "v + 1"), 2),
    ],
    ids=["default", "generated"],
)
def test_a_partition_column_may_be_filled_in(
    feature: Sequence[str], column: Field, value: int
) -> None:
    configuration = table(Field("v", "long"), column, partition_by=["p"], features=feature)
    rows = enforced(configuration, {"v": [1]}, has_partitions=True)
    assert rows == {"v": [1], "p": [value]}


def test_the_index_of_a_frame_is_named_where_the_table_lacks_it() -> None:
    with pytest.raises(
        SchemaMismatchError, match=r"'__index_level_0__' .*reset_index\(drop=True\)"
    ):
        enforced(table(Field("v", "long")), {"v": [1], "__index_level_0__": [5]})


# --- rows that stay as they are


def sources(configuration: TableConfiguration, names: Sequence[str]) -> tuple[int, ...] | None:
    """Which columns of the data, all of them numbers, a table takes without a change."""
    data = pa.schema([(name, pa.int64()) for name in names])
    return Enforcer(configuration, data, time_zone="UTC").sources


def test_columns_without_rules_are_taken_as_they_are() -> None:
    plain = table(Field("a", "long"), Field("b", "long"))
    assert sources(plain, ["a", "b"]) == (0, 1)
    assert sources(plain, ["B", "A"]) == (1, 0)
    assert sources(plain, ["a"]) is None


@pytest.mark.parametrize(
    ("configuration", "names"),
    [
        (table(Field("a", "long"), Field("b", "long", nullable=False)), "ab"),
        (
            table(
                Field("a", "long"),
                Field("s", StructType([Field("x", "long", nullable=False)])),
            ),
            "a",
        ),
        (table(default("a", "long", "7"), Field("b", "long"), features=DEFAULTS), "b"),
        (table(generated("a", "long", "b + 1"), Field("b", "long"), features=GENERATED), "b"),
        (table(generated("a", "long", "b + 1"), Field("b", "long"), features=GENERATED), "ab"),
        (table(identity(), Field("b", "long"), features=IDENTITY), "b"),
        (table(Field("a", "long"), constraints__small="a < 9"), "a"),
        (
            table(
                with_metadata(
                    Field("a", "long"),
                    delta__invariants='{"expression":{"expression":"a < 9"}}',
                ),
            ),
            "a",
        ),
    ],
)
def test_rows_with_rules_or_gaps_are_not(configuration: TableConfiguration, names: str) -> None:
    assert sources(configuration, list(names)) is None


def test_given_values_are_taken_although_there_is_a_default() -> None:
    with_default = table(default("a", "long", "7"), Field("b", "long"), features=DEFAULTS)
    assert sources(with_default, ["b", "a"]) == (1, 0)
    by_default = table(identity(allowExplicitInsert=True), Field("b", "long"), features=IDENTITY)
    assert sources(by_default, ["id", "b"]) == (0, 1)


@pytest.mark.parametrize("limit", ["char(3)", "varchar(3)"])
def test_texts_of_limited_length_are_looked_at(limit: str) -> None:
    limited = table(Field("t", "string", metadata={"__CHAR_VARCHAR_TYPE_STRING": limit}))
    data = pa.schema([("t", pa.string())])
    assert Enforcer(limited, data, time_zone="UTC").sources is None
