"""What Spark 4.2 answered to 1,500 expressions (ANSI mode, zone UTC), beside what we answer.

`spark_answers.jsonl` has one line each: the expression, Spark's type and value (as Python shows
it) or the class of its error. Where deltalog differs, `deltalog` says how: "refused" is an error
where Spark has a value, anything else is the value that we give.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    Expression,
    evaluate,
    parse_sql,
    resolve,
    to_sql,
    type_of,
)
from deltalog.schema import Field, StructType, to_arrow_type
from tests.support.recorded_answers import ANSWERS, expected_of, shown, spark_name, with_columns

NOTHING: Final = StructType()
_NEEDS_CONSTANT: Final = re.compile("must be a constant")


def _answer(expression: Expression, schema: StructType, data: pa.RecordBatch) -> list[str]:
    resolved = resolve(expression, schema)
    data_type = type_of(resolved, schema)
    values = evaluate(resolved, data).to_pylist()
    return [f"{spark_name(data_type)} {shown(value, data_type)}" for value in values]


def _rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"": list(range(count))})


_CHUNK: Final = 170
_CHUNKS: Final = [ANSWERS[start : start + _CHUNK] for start in range(0, len(ANSWERS), _CHUNK)]
Answer = dict[str, str]
in_chunks = pytest.mark.parametrize(
    "answers", _CHUNKS, ids=lambda answers: f"{answers[0]['sql']} and what follows"
)


def _failures(check: Callable[[Answer], None], answers: list[Answer]) -> dict[str, str]:
    """The expressions whose check fails, with the reason."""
    failures = {}
    for answer in answers:
        try:
            check(answer)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - each is a case
            failures[answer["sql"]] = repr(error)
    return failures


@in_chunks
def test_constants(answers: list[Answer]) -> None:
    assert _failures(_check_constants, answers) == {}


@in_chunks
def test_rendered_and_read_again_it_is_the_same_expression(answers: list[Answer]) -> None:
    assert _failures(_check_rendered, answers) == {}


@in_chunks
def test_columns_give_what_constants_give(answers: list[Answer]) -> None:
    """The same values as columns: kernels over arrays, with other rows and NULL around them."""
    answered = [answer for answer in answers if expected_of(answer) is not None]
    assert _failures(_check_columns, answered) == {}


def test_wrong_answers_are_reported() -> None:
    wrong = [{"sql": "1 + 1", "type": "int", "value": "3"}, {"sql": "1 + 2", "error": "OVERFLOW"}]
    assert list(_failures(_check_constants, wrong)) == ["1 + 1", "1 + 2"]


def _check_constants(answer: Answer) -> None:
    expected = expected_of(answer)
    if expected is None:
        with pytest.raises(InvalidInputError):
            _answer(parse_sql(answer["sql"]), NOTHING, _rows(1))
    else:
        assert _answer(parse_sql(answer["sql"]), NOTHING, _rows(2)) == [expected] * 2


def _check_rendered(answer: Answer) -> None:
    try:
        tree = parse_sql(answer["sql"])
    except InvalidInputError:
        assert expected_of(answer) is None
    else:
        assert parse_sql(to_sql(tree)).same_as(tree), to_sql(tree)


def _check_columns(answer: Answer) -> None:
    lifted, values = with_columns(parse_sql(answer["sql"]))
    schema = StructType([Field(f"c{place}", kind) for place, (_, kind) in enumerate(values)])
    arrays = [pa.array([None, value, None, value], to_arrow_type(kind)) for value, kind in values]
    data = pa.RecordBatch.from_arrays(arrays, names=list(schema.names)) if values else _rows(4)
    known = data.slice(1).filter(pa.array([True, False, True]))
    if _NEEDS_CONSTANT.search(problem := _problem(lifted, schema, known)):
        return
    assert not problem
    found = _answer(lifted, schema, known)
    expected = expected_of(answer)
    # Constants count with fewer digits in decimal types, so the types may differ; and no more.
    if found[0].split()[0] == str(expected).split()[0]:
        assert found == [expected] * 2
    # Some expressions refuse NULL (the key of a map); then the rows cannot be compared.
    if not _problem(lifted, schema, data.slice(1)):
        assert _answer(lifted, schema, data.slice(1))[::2] == found


def _problem(expression: Expression, schema: StructType, data: pa.RecordBatch) -> str:
    """The error's message, or nothing."""
    try:
        _answer(expression, schema, data)
    except InvalidInputError as error:
        return str(error)
    return ""
