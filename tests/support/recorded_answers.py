"""What Spark answered to expressions (ANSI mode, zone UTC), and how values are shown for that.

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

from deltalog.expressions import Column, Expression, Literal
from deltalog.expressions.literals import plain_value
from deltalog.expressions.nodes import Call
from deltalog.expressions.trees import rebuild
from deltalog.schema import ArrayType, DataType, MapType, StructType

_FILE: Final = Path(__file__).parents[1] / "unit" / "expressions" / "spark_answers.jsonl"
ANSWERS: Final[list[dict[str, str]]] = [
    orjson.loads(line) for line in _FILE.read_bytes().splitlines()
]
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


def shown(value: Any, data_type: DataType) -> str:
    """A value as the Python side of Spark shows it."""
    if value is None:
        return "None"
    match data_type:
        case ArrayType():
            return f"[{', '.join(shown(part, data_type.element_type) for part in value)}]"
        case MapType():
            # Spark gives the entries in no order; the recorded ones are in that of their text.
            pairs = (
                f"{shown(key, data_type.key_type)}: {shown(part, data_type.value_type)}"
                for key, part in dict(value).items()
            )
            return f"{{{', '.join(sorted(pairs))}}}"
        case StructType():
            parts = zip(data_type, value.values(), strict=True)
            texts = (f"{field.name}={shown(part, field.type)}" for field, part in parts)
            return f"Row({', '.join(texts)})"
        case _:
            is_moment = isinstance(value, dt.datetime)
            return repr(value.replace(tzinfo=None) if is_moment else value)


def spark_name(data_type: DataType) -> str:
    return re.sub(r"\w+", lambda word: _SPARK_NAMES.get(word[0], word[0]), str(data_type))


def expected_of(answer: dict[str, str]) -> str | None:
    """Type and value that we are to give, or None for an error."""
    ours = answer.get("deltalog")
    if ours == "refused" or ("error" in answer and ours is None):
        return None
    if ours is None:
        return f"{answer['type']} {answer['value']}"
    return f"{answer['type']} {ours}" if "type" in answer else ours


def with_columns(expression: Expression) -> tuple[Expression, list[tuple[Any, DataType]]]:
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
