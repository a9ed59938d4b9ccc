"""What a table's own expressions may take: an author's few characters do not fill a writer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from deltalog.data.write.rules import Rules
from deltalog.errors import DeltaError, InvalidInputError
from deltalog.expressions import evaluate, parse_sql, resolve
from deltalog.expressions.rows import RuleBudget, bounded, is_bounded, spend
from deltalog.protocol.features.declarations import CHECK, Check
from deltalog.schema import from_arrow_schema

BATCH = pa.record_batch({"id": pa.array(range(10), pa.int64())})
SCHEMA = from_arrow_schema(BATCH.schema)
TOO_MUCH = {
    "a constant for each element": "size(transform(sequence(1, 3000), x -> repeat('a', 1000000)))",
    "lambdas inside of each other": (
        "size(transform(sequence(1, 3000), x -> size(transform(sequence(1, 3000), y -> x * y))))"
    ),
    "texts compared": "levenshtein(repeat('a', 100000), repeat('b', 100000))",
    "a fold": "aggregate(sequence(1, 300000), 0, (a, x) -> a + 1)",
    "a fold that grows": "length(aggregate(sequence(1, 300000), '', (a, x) -> concat(a, 'xx')))",
    "a search": "if(exists(sequence(1, 300000), x -> x < 0), 1, 2)",
    "each element of a search": "if(forall(sequence(1, 300000), x -> x > 0), 1, 2)",
    "pairs": "size(zip_with(sequence(1, 9000000), sequence(1, 9000000), (x, y) -> x + y))",
    "replaced": "length(replace(repeat('a', 100000), 'a', repeat('b', 100000)))",
    "replaced by columns": (
        "length(replace(repeat('a', 100000), 'a', repeat('b', 100000 + cast(id as int))))"
    ),
    "padded": "length(lpad(cast(id as string), 100000000, 'ab'))",
    "repeated lists": "size(array_repeat(repeat('a', 1000000), 100000))",
    "flattened": "size(flatten(array_repeat(sequence(1, 1000000), 1000)))",
    "digits of digits": "length(hex(hex(hex(hex(hex(repeat('a', 10000000)))))))",
    "read by Python": "length(soundex(repeat('ab', 40000000)))",
    "lists read by Python": "size(array_distinct(sequence(1, 16000000)))",
    "keys": (
        "size(transform_keys(map_from_arrays(sequence(1, 3000000), sequence(1, 3000000)),"
        " (k, v) -> k + 1))"
    ),
}


def _rules(
    *, check: str | None = None, generated: str | None = None, default: str | None = None
) -> Rules:
    made = {"g": generated} if generated else {}
    given = {"d": default} if default else {}
    extra = [pa.field(name, pa.int64()) for name in (*made, *given)]
    return Rules(
        from_arrow_schema(pa.schema([*BATCH.schema, *extra])),
        missing=[*made, *given],
        defaults=given,
        generated=made,
        checks=[Check(kind=CHECK, name="c", text=check)] if check else [],
        table="memory://t",
        time_zone="UTC",
        now_ms=0,
    )


@pytest.mark.slow("expressions that need gigabytes, each in a process")
@pytest.mark.parametrize("form", TOO_MUCH)
def test_a_constraint_that_takes_too_much_is_refused_by_name(form: str) -> None:
    rules = _rules(check=f"{TOO_MUCH[form]} > id")
    with pytest.raises(InvalidInputError, match=r"more than .* change or drop .*'c'"):
        rules.check(BATCH)
    assert not is_bounded()


def test_a_generated_column_that_takes_too_much_is_refused_by_name() -> None:
    rules = _rules(generated=TOO_MUCH["texts compared"])
    found: dict[str, Any] = {"id": BATCH.column("id")}
    with pytest.raises(InvalidInputError, match="generated column 'g'"):
        rules.generate(found, BATCH.schema)


def test_a_default_that_takes_too_much_is_refused_by_name() -> None:
    with pytest.raises(DeltaError, match="default of column 'd'"):
        _rules(default=TOO_MUCH["texts compared"])


def test_conv_stops_at_the_digit_that_is_too_many() -> None:
    rules = _rules(check="conv(repeat('9', 1000000), 10, 36) is not null")
    with pytest.raises(InvalidInputError, match=r"conv overflows: '9{100}…'"):
        rules.check(BATCH)


def test_ordinary_rules_of_many_rows_are_within_the_budget() -> None:
    rows = 100_000
    batch = pa.record_batch({"id": pa.array(range(rows), pa.int64())})
    text = "levenshtein(cast(id as string), soundex(cast(id as string))) < 20"
    _rules(check=f"{text} AND size(transform(sequence(1, 20), x -> x + id)) = 20").check(batch)


def test_the_budget_grows_with_rows_and_their_bytes() -> None:
    budgets: list[RuleBudget] = []
    for column in (["a"], ["a"] * 1_000, ["a" * 1_000_000]):
        with bounded("a rule", pa.record_batch({"x": column})) as budget:
            budgets.append(budget)
    one, rows, size = budgets
    assert rows.most_bytes > one.most_bytes < size.most_bytes
    assert rows.most_steps > one.most_steps < size.most_steps


def test_what_callers_write_has_no_budget() -> None:
    text = "aggregate(sequence(1, 2000), 0, (a, x) -> a + 1)"
    steps: list[float] = []
    with bounded("a rule", BATCH) as budget:
        expression = resolve(parse_sql(text), SCHEMA)
        assert evaluate(expression, BATCH).to_pylist() == [2_000] * 10
        steps.append(budget.most_steps - budget.steps)
    assert steps[0] > 2_000 * 10_000
    spend(1e30, 1e30)
