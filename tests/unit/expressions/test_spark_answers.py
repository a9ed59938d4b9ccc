"""What Spark 4.2 answered to 1,500 expressions (ANSI mode, zone UTC), beside what we answer.

`spark_answers.jsonl` has one line each: the expression, Spark's type and value (as Python shows
it) or the class of its error. Where deltalog differs, `deltalog` says how: "refused" is an error
where Spark has a value, anything else is the value that we give.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pytest

from deltalog.errors import InvalidInputError
from deltalog.expressions import (
    Column,
    Expression,
    Literal,
    evaluate,
    parse_sql,
    resolve,
    to_sql,
    type_of,
)
from deltalog.expressions.literals import plain_value
from deltalog.expressions.nodes import Call
from deltalog.expressions.trees import rebuild
from deltalog.schema import ArrayType, DataType, Field, MapType, StructType, to_arrow_type

_LINES: Final = Path(__file__).with_name("spark_answers.jsonl").read_bytes().splitlines()
ANSWERS: Final[list[dict[str, str]]] = [orjson.loads(line) for line in _LINES]
NOTHING: Final = StructType()
_NEEDS_CONSTANT: Final = re.compile("must be a constant")
_SPARK_NAMES: Final = {
    "integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint",
}  # fmt: skip

# The places of units, parts of dates and names of fields, which are no values.
_WORDS: Final = {
    **dict.fromkeys(("timestampadd", "timestampdiff", "dateadd", "datediff"), slice(1)),
    **dict.fromkeys(("date_add", "date_diff", "date_part", "datepart"), slice(1)),
    "named_struct": slice(0, None, 2),
    "[]": slice(1, 2),
}


def _shown(value: Any, data_type: DataType) -> str:
    """A value as the Python side of Spark shows it."""
    if value is None:
        return "None"
    match data_type:
        case ArrayType():
            return f"[{', '.join(_shown(part, data_type.element_type) for part in value)}]"
        case MapType():
            # Spark gives the entries in no order; the recorded ones are in that of their text.
            pairs = (
                f"{_shown(key, data_type.key_type)}: {_shown(part, data_type.value_type)}"
                for key, part in dict(value).items()
            )
            return f"{{{', '.join(sorted(pairs))}}}"
        case StructType():
            parts = zip(data_type, value.values(), strict=True)
            shown = (f"{field.name}={_shown(part, field.type)}" for field, part in parts)
            return f"Row({', '.join(shown)})"
        case _:
            is_moment = isinstance(value, dt.datetime)
            return repr(value.replace(tzinfo=None) if is_moment else value)


def _spark_name(data_type: DataType) -> str:
    return re.sub(r"\w+", lambda word: _SPARK_NAMES.get(word[0], word[0]), str(data_type))


def _answer(expression: Expression, schema: StructType, data: pa.RecordBatch) -> list[str]:
    resolved = resolve(expression, schema)
    data_type = type_of(resolved, schema)
    values = evaluate(resolved, data).to_pylist()
    return [f"{_spark_name(data_type)} {_shown(value, data_type)}" for value in values]


def _rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"": list(range(count))})


def _expected(answer: dict[str, str]) -> str | None:
    """Type and value that we are to give, or None for an error."""
    ours = answer.get("deltalog")
    if ours == "refused" or ("error" in answer and ours is None):
        return None
    if ours is None:
        return f"{answer['type']} {answer['value']}"
    return f"{answer['type']} {ours}" if "type" in answer else ours


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer["sql"])
def test_constants(answer: dict[str, str]) -> None:
    expected = _expected(answer)
    if expected is None:
        with pytest.raises(InvalidInputError):
            _answer(parse_sql(answer["sql"]), NOTHING, _rows(1))
    else:
        assert _answer(parse_sql(answer["sql"]), NOTHING, _rows(2)) == [expected] * 2


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer["sql"])
def test_rendered_and_read_again_it_is_the_same_expression(answer: dict[str, str]) -> None:
    try:
        tree = parse_sql(answer["sql"])
    except InvalidInputError:
        assert _expected(answer) is None
    else:
        assert parse_sql(to_sql(tree)).same_as(tree), to_sql(tree)


@pytest.mark.parametrize(
    "answer",
    [answer for answer in ANSWERS if _expected(answer) is not None],
    ids=lambda answer: answer["sql"],
)
def test_columns_give_what_constants_give(answer: dict[str, str]) -> None:
    """The same values as columns: kernels over arrays, with other rows and NULL around them."""
    lifted, values = _lift(parse_sql(answer["sql"]))
    schema = StructType([Field(f"c{place}", kind) for place, (_, kind) in enumerate(values)])
    arrays = [pa.array([None, value, None, value], to_arrow_type(kind)) for value, kind in values]
    data = pa.RecordBatch.from_arrays(arrays, names=list(schema.names)) if values else _rows(4)
    known = data.slice(1).filter(pa.array([True, False, True]))
    if _NEEDS_CONSTANT.search(problem := _problem(lifted, schema, known)):
        return
    assert not problem
    found = _answer(lifted, schema, known)
    expected = _expected(answer)
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


def _lift(expression: Expression) -> tuple[Expression, list[tuple[Any, DataType]]]:
    """The expression with columns instead of constants, and the constants."""
    values: list[tuple[Any, DataType]] = []

    def lift(node: Expression) -> Expression:
        if isinstance(node, Call) and node.function == "interval":
            return node
        if isinstance(node, Call) and node.function in _WORDS:
            words = node.arguments[_WORDS[node.function]]
            arguments = [part if _is_word(part, words) else lift(part) for part in node.arguments]
            return Call(node.function, tuple(arguments))
        if not isinstance(node, Literal) or node.value is None:
            return rebuild(node, lift)
        value, natural = plain_value(node.value)
        values.append((value, node.type or natural))
        return Column((f"c{len(values) - 1}",))

    return lift(expression), values


def _is_word(part: Expression, words: tuple[Expression, ...]) -> bool:
    is_text = isinstance(part, Literal) and isinstance(part.value, str)
    return is_text and any(part is word for word in words)
