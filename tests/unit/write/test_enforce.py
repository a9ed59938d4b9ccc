from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from deltalog.configuration import TableConfiguration
from deltalog.errors import (
    ConstraintViolationError,
    InvalidInputError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from deltalog.schema import ArrayType, Field, MapType, StructType, VariantType
from deltalog.write import Enforcer
from tests.support.writes import table, with_metadata

NAIVE = datetime(2024, 7, 1, 12)  # noqa: DTZ001  # without a zone on purpose
DEFAULTS = ("allowColumnDefaults",)
GENERATED = ("generatedColumns",)
IDENTITY = ("identityColumns",)


def enforce(configuration: TableConfiguration, data: Any, **options: Any) -> dict[str, list[Any]]:
    """The rows as the table takes them."""
    rows = data if isinstance(data, pa.Table) else pa.table(data)
    enforcer = Enforcer(configuration, rows.schema, **{"time_zone": "UTC", **options})
    batches = [enforcer.apply(batch) for batch in rows.to_batches()]
    found = pa.Table.from_batches(batches, enforcer.schema).to_pydict()
    assert isinstance(found, dict)
    return found


def identity(start: int = 1, step: int = 1, **more: Any) -> Field:
    entries = {"delta__identity__start": start, "delta__identity__step": step}
    named = {f"delta__identity__{name}": value for name, value in more.items()}
    return with_metadata(Field("id", "long"), **entries, **named)


def default(name: str, kind: Any, text: str) -> Field:
    return with_metadata(Field(name, kind), CURRENT_DEFAULT=text)


def generated(name: str, kind: Any, text: str) -> Field:
    return with_metadata(Field(name, kind), delta__generationExpression=text)


# --- columns and types


@pytest.mark.protocol("B-33", "D-38", "D-66", "CONS-03")
def test_columns_are_matched_without_case_and_put_in_order() -> None:
    rows = enforce(
        table(Field("Id", "long"), Field("p", "string"), Field("x", "date")),
        {
            "P": ["a"],
            "ID": [1],
        },
    )
    assert rows == {"Id": [1], "p": ["a"], "x": [None]}


def test_nested_names_are_matched_without_case() -> None:
    inner = StructType([Field("A", "long"), Field("b", "string")])
    fields = (
        Field("s", inner),
        Field("l", ArrayType(inner)),
        Field("m", MapType("string", inner)),
    )
    value = {"B": "x", "a": 1}
    data = pa.table(
        [
            pa.array([value]),
            pa.array([[value]]),
            pa.array(
                [[("k", value)]],
                pa.map_(pa.string(), pa.struct([("B", pa.string()), ("a", pa.int64())])),
            ),
        ],
        names=["S", "L", "M"],
    )
    wanted = {"A": 1, "b": "x"}
    assert enforce(table(*fields), data) == {
        "s": [wanted],
        "l": [[wanted]],
        "m": [[("k", wanted)]],
    }


@pytest.mark.protocol("CONS-01")
def test_all_columns_that_are_too_many_are_named() -> None:
    fields = (Field("a", "long"), Field("s", StructType([Field("x", "long")])))
    data = pa.table({"a": [1], "new": [2], "s": [{"x": 1, "y": 2}]})
    with pytest.raises(
        SchemaMismatchError, match=r"column\(s\) 'new', 's\.y' that the table lacks"
    ):
        enforce(table(*fields), data)


@pytest.mark.protocol("CONS-03")
def test_all_columns_that_are_missing_are_named() -> None:
    inner = StructType([Field("x", "long", nullable=False), Field("y", "long")])
    fields = (Field("a", "long", nullable=False), Field("s", inner), Field("b", "long"))
    with pytest.raises(SchemaMismatchError, match=r"lacks column\(s\) 's\.x', 'a' that must not"):
        enforce(table(*fields), {"s": [{"y": 1}], "b": [1]})


def test_a_partition_column_that_is_missing_is_refused() -> None:
    columns = (Field("v", "long"), Field("p", "string"), Field("q", "string"))
    with pytest.raises(SchemaMismatchError, match=r"lacks partition column\(s\) 'q'.* NULL"):
        enforce(
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
    rows = enforce(configuration, {"v": [1]}, has_partitions=True)
    assert rows == {"v": [1], "p": [value]}


def test_the_index_of_a_frame_is_named_where_the_table_lacks_it() -> None:
    with pytest.raises(
        SchemaMismatchError, match=r"'__index_level_0__' .*reset_index\(drop=True\)"
    ):
        enforce(table(Field("v", "long")), {"v": [1], "__index_level_0__": [5]})


def test_a_column_twice_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match=r"'A' more than once, ignoring case"):
        enforce(table(Field("a", "long")), {"a": [1], "A": [2]})


@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        ("integer", pa.array([7], pa.int64()), 7),
        ("double", pa.array([7], pa.int32()), 7.0),
        ("decimal(10,2)", pa.array([7]), Decimal("7.00")),
        ("decimal(10,2)", pa.array([Decimal("1.5")]), Decimal("1.50")),
        ("string", pa.array(["a"]).dictionary_encode(), "a"),
        ("string", pa.array(["a"], pa.large_string()), "a"),
        ("string", pa.array(["a"], pa.string_view()), "a"),
        ("timestamp_ntz", pa.array([NAIVE]), NAIVE),
        ("timestamp", pa.array([NAIVE]), NAIVE.replace(tzinfo=UTC)),
        ("date", pa.nulls(1), None),
        ("binary", pa.array([b"1"], pa.binary(1)), b"1"),
    ],
    ids=str,
)
def test_values_are_stored_where_they_fit(kind: str, values: Any, stored: Any) -> None:
    assert enforce(table(Field("x", kind)), {"x": values}) == {"x": [stored]}


@pytest.mark.parametrize(
    ("kind", "values"),
    [("integer", pa.array(["7"])), ("boolean", pa.array([1])),
     ("long", pa.array([date(2024, 1, 1)])), (ArrayType("long"), pa.array([1])),
     ("string", pa.array([True])), (VariantType(), pa.array(["{}"]))],
    ids=str,
)  # fmt: skip
def test_types_that_do_not_fit_are_refused(kind: Any, values: Any) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column 'x' is of type .* and cannot take"):
        enforce(table(Field("x", kind)), {"x": values})


@pytest.mark.parametrize(
    ("kind", "values"),
    [("integer", pa.array([2**40])), ("integer", pa.array([1.5])),
     ("byte", pa.array([200])), ("decimal(3,2)", pa.array([100])),
     ("timestamp", pa.array([1], pa.timestamp("ns")))],
    ids=str,
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(kind: Any, values: Any) -> None:
    with pytest.raises(SchemaMismatchError, match="'x'"):
        enforce(table(Field("x", kind)), {"x": values})


def test_two_binaries_are_a_variant() -> None:
    value = {"metadata": b"\x01\x00\x00", "value": b"\x00"}
    rows = enforce(table(Field("v", VariantType()), features=["variantType"]), {"v": [value]})
    assert rows == {"v": [value]}


def test_a_zone_is_given_to_times_that_have_none() -> None:
    configuration = table(Field("x", "timestamp"))
    data = {"x": [NAIVE]}
    rows = enforce(configuration, data, time_zone="Europe/Berlin")
    assert rows == {"x": [datetime(2024, 7, 1, 10, tzinfo=UTC)]}


def test_no_zone_is_guessed_inside_of_a_column() -> None:
    configuration = table(Field("x", ArrayType("timestamp")))
    data = {"x": [[NAIVE]]}
    with pytest.raises(SchemaMismatchError, match="times without a zone inside"):
        enforce(configuration, data, time_zone="Europe/Berlin")


def test_a_field_called_timestamp_may_be_without_a_zone() -> None:
    inner = StructType([Field("timestamp", "timestamp_ntz")])
    data = {"x": [{"timestamp": NAIVE}]}
    assert enforce(table(Field("x", inner)), data, time_zone="Europe/Berlin") == data


# --- NOT NULL and lengths

PART = StructType([Field("x", "long", nullable=False), Field("y", "long")])
NOT_NULL = [
    (Field("a", "long", nullable=False), [1, None], "a"),
    (Field("a", PART), [{"x": None, "y": 1}], "a.x"),
    # As the reference has it: a field that must be there makes its parent one, too.
    (Field("a", PART), [None, {"x": 1, "y": None}], "a.x"),
    (Field("a", ArrayType("long", contains_null=False)), [[1], [None, 2, None]], "a.element"),
    (Field("a", ArrayType(PART)), [[None, {"x": 1, "y": 1}], [{"x": None, "y": 1}]], "a.element.x"),
    (Field("a", MapType("string", "long", value_contains_null=False)), [[("k", None)]], "a.value"),
]


@pytest.mark.protocol("INV-04")
@pytest.mark.parametrize(("field", "values", "name"), NOT_NULL, ids=str)
def test_null_is_refused_at_any_depth(field: Field, values: list[Any], name: str) -> None:
    kind = pa.map_(pa.string(), pa.int64()) if isinstance(field.type, MapType) else None
    data = pa.table({"a": pa.array(values, kind)})
    with pytest.raises(ConstraintViolationError, match=f"NOT NULL of column '{name}'") as caught:
        enforce(table(field), data)
    assert caught.value.num_rows == 1


def test_null_elements_need_no_fields() -> None:
    configuration = table(Field("a", ArrayType(PART)))
    rows = enforce(configuration, {"a": [[None, {"x": 1, "y": None}], None]})
    assert rows == {"a": [[None, {"x": 1, "y": None}], None]}


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
    assert enforce(table(column), {"a": pa.array(good, arrow)}) == {"a": good}
    with pytest.raises(
        ConstraintViolationError, match=r"length of column 'a.*\((var)?char"
    ) as caught:
        enforce(table(column), {"a": pa.array(bad, arrow)})
    assert caught.value.num_rows == 1


# --- CHECK constraints and invariants


@pytest.mark.protocol("CON-01", "CON-02")
@pytest.mark.parametrize("value", [0, None])
def test_a_check_must_be_true(value: int | None) -> None:
    configuration = table(Field("a", "long"), Field("b", "string"), constraints__pos="a > 0")
    assert enforce(configuration, {"a": [1]}) == {"a": [1], "b": [None]}
    with pytest.raises(
        ConstraintViolationError, match=r"CHECK constraint 'pos' \(a > 0\)"
    ) as caught:
        enforce(configuration, {"a": [1, value, value, 2]})
    error = caught.value
    assert (error.constraint, error.num_rows) == ("pos", 2)
    assert error.examples == ({"a": value}, {"a": value})


@pytest.mark.protocol("CON-06")
def test_a_check_counts_whatever_the_protocol_says() -> None:
    configuration = table(Field("a", "long"), constraints__pos="a > 0")
    assert not configuration.supports("checkConstraints")
    with pytest.raises(ConstraintViolationError):
        enforce(configuration, {"a": [0]})


def test_at_most_five_rows_are_shown() -> None:
    configuration = table(Field("a", "long"), constraints__pos="a > 0")
    with pytest.raises(ConstraintViolationError, match="and 4 more") as caught:
        enforce(configuration, {"a": [-n for n in range(9)]})
    assert (caught.value.num_rows, len(caught.value.examples)) == (9, 5)


def invariant(text: str) -> Field:
    stored = f'{{"expression":{{"expression":"{text}"}}}}'
    return with_metadata(Field("x", "long"), delta__invariants=stored)


@pytest.mark.protocol("INV-01")
@pytest.mark.parametrize("value", [3, None])
def test_an_invariant_must_be_true(value: int | None) -> None:
    configuration = table(invariant("x > 3"))
    assert enforce(configuration, {"x": [4]}) == {"x": [4]}
    with pytest.raises(ConstraintViolationError, match="invariant of column 'x'"):
        enforce(configuration, {"x": [value]})


@pytest.mark.protocol("INV-02")
def test_an_invariant_needs_its_feature() -> None:
    configuration = table(invariant("x > 3"), features=["appendOnly"])
    assert enforce(configuration, {"x": [3]}) == {"x": [3]}


@pytest.mark.protocol("INV-03", "B-59")
@pytest.mark.parametrize("text", ["my_udf(a) > 0", "a >", "b = 1", "a > current_timestamp()"])
def test_a_rule_that_cannot_be_evaluated_refuses_the_write(text: str) -> None:
    configuration = table(Field("a", "long"), constraints__odd=text)
    with pytest.raises(UnsupportedFeatureError, match="CHECK constraint 'odd'"):
        Enforcer(configuration, pa.schema({"a": pa.int64()}), time_zone="UTC")


def test_a_rule_that_fails_for_a_row_is_named() -> None:
    configuration = table(Field("a", "integer"), constraints__small="a + 1 < 10")
    with pytest.raises(InvalidInputError) as caught:
        enforce(configuration, {"a": [2**31 - 1]})
    assert any("'small'" in note for note in caught.value.__notes__)


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
    rows = enforce(configuration, {"at": [moment, None], "n": [2, None]})
    assert rows["day"] == [date(2024, 1, 31), None]
    assert rows["twice"] == [4, None]


@pytest.mark.protocol("GEN-02")
def test_generated_columns_that_are_given_are_verified() -> None:
    configuration = table(
        Field("n", "long"), generated("twice", "long", "n * 2"), features=GENERATED
    )
    good = {"n": [1, None], "twice": [2, None]}
    assert enforce(configuration, good) == good
    for bad in (3, None):
        with pytest.raises(ConstraintViolationError, match="generated column 'twice'"):
            enforce(configuration, {"n": [1], "twice": pa.array([bad], pa.int64())})


@pytest.mark.protocol("GEN-03")
def test_generated_columns_need_their_feature() -> None:
    configuration = table(Field("n", "long"), generated("twice", "long", "n * 2"))
    assert enforce(configuration, {"n": [1]}) == {"n": [1], "twice": [None]}


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
        enforce(configuration, {"n": [1]})


@pytest.mark.protocol("IDN-02")
def test_values_of_an_identity_column_are_refused() -> None:
    configuration = table(identity(), Field("n", "long"), features=IDENTITY)
    with pytest.raises(InvalidInputError, match="'id' are always generated"):
        enforce(configuration, {"ID": [7], "n": [1]})
    kept = enforce(configuration, {"id": [7], "n": [1]}, keeps_identities=True)
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
    rows = enforce(configuration, {"n": [1, 1]}, identity_starts={"id": 101})
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
    rows = enforce(configuration, {"d": [1, 2]}, now_ms=1_700_000_000_123)
    moment = datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC)
    assert rows == {
        "a": [5, 5], "at": [moment] * 2, "c": ["ab"] * 2, "l": [[1, 2]] * 2,
        "none": [None] * 2, "d": [1, 2],
    }  # fmt: skip


def test_null_that_is_given_stays_null() -> None:
    configuration = table(default("a", "integer", "5"), features=DEFAULTS)
    assert enforce(configuration, {"a": [None, 1]}) == {"a": [None, 1]}


def test_a_default_satisfies_not_null() -> None:
    field = Field("a", "long", nullable=False, metadata={"CURRENT_DEFAULT": "1"})
    rows = enforce(table(field, Field("b", "long"), features=DEFAULTS), {"b": [2]})
    assert rows == {"a": [1], "b": [2]}


def test_defaults_need_their_feature() -> None:
    configuration = table(default("a", "integer", "5"), Field("b", "long"))
    assert enforce(configuration, {"b": [1]}) == {"a": [None], "b": [1]}


def test_a_default_that_cannot_be_evaluated_matters_where_it_is_needed() -> None:
    configuration = table(default("a", "integer", "udf()"), Field("b", "long"), features=DEFAULTS)
    assert enforce(configuration, {"a": [1]}) == {"a": [1], "b": [None]}
    with pytest.raises(UnsupportedFeatureError, match="default of column 'a'"):
        enforce(configuration, {"b": [1]})


def test_rules_see_what_was_filled_in() -> None:
    configuration = table(
        default("a", "long", "7"),
        generated("g", "long", "a + id"),
        identity(),
        Field("n", "long"),
        features=(*DEFAULTS, *GENERATED, *IDENTITY),
        constraints__sum="g = a + id",
    )
    rows = enforce(configuration, {"n": [0, 0]})
    assert rows == {"a": [7, 7], "g": [8, 9], "id": [1, 2], "n": [0, 0]}
