"""Records what Spark answers to SQL expressions, for `tests/unit/expressions/spark_answers.jsonl`.

`python -m tests.support.spark_answers < expressions.sql >> …/spark_answers.jsonl` reads one
expression a line. A line is written for each: the expression, and Spark's type and value as Python
shows it, or the class of its error. It needs PySpark and a JVM; the tests need neither.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import orjson
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def answers(expressions: Iterable[str]) -> Iterator[dict[str, str]]:
    """Spark's answers in ANSI mode, in the time zone UTC."""
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    for expression in expressions:
        yield {"sql": expression, **_answer(spark, expression)}


def _answer(spark: SparkSession, expression: str) -> dict[str, str]:
    try:
        frame: Any = spark.sql(f"SELECT {expression} AS found")
        value = frame.collect()[0][0]
    except PySparkException as error:
        return {"error": error.getCondition() or type(error).__name__}
    return {"type": frame.schema[0].dataType.simpleString(), "value": _shown(value)}


def _shown(value: Any) -> str:
    """`repr`, with the entries of maps in the order of their text: Spark gives them in none."""
    match value:
        case Row():
            parts = zip(value.__fields__, value, strict=True)
            return f"Row({', '.join(f'{name}={_shown(part)}' for name, part in parts)})"
        case list():
            return f"[{', '.join(map(_shown, value))}]"
        case dict():
            pairs = sorted(f"{_shown(key)}: {_shown(part)}" for key, part in value.items())
            return f"{{{', '.join(pairs)}}}"
        case _:
            return repr(value)


def main() -> None:
    """Answer the expressions of standard input."""
    expressions = [line.rstrip("\n") for line in sys.stdin if line.strip()]
    for answer in answers(expressions):
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
