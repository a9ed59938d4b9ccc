"""What Spark answers to functions of doubles, to the last bit, as calls of one number or two.

`tests/unit/expressions/java_answers.jsonl` was recorded by `tests.support.spark_answers`. Its
arguments stand at the limits of each algorithm's parts, and where a wrong constant or operation
shows in the last bits.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import orjson

_FILE: Final = Path(__file__).parents[1] / "unit" / "expressions" / "java_answers.jsonl"

Arguments: TypeAlias = tuple[float, ...]


def java_answers() -> dict[str, dict[Arguments, str]]:
    """The answers by function and arguments, as Python shows them."""
    found: dict[str, dict[Arguments, str]] = defaultdict(dict)
    for line in _FILE.read_bytes().splitlines():
        answer = orjson.loads(line)
        function = answer["sql"].partition("(")[0]
        arguments = tuple(map(float, re.findall(r"'(.+?)'", answer["sql"])))
        found[function][arguments] = answer["value"]
    return found


def wrong_answers(
    function: Callable[..., float | None], answers: dict[Arguments, str]
) -> dict[Arguments, tuple[str, str]]:
    """What a function gives, and what it should, where the two differ."""
    found = {arguments: (repr(function(*arguments)), answers[arguments]) for arguments in answers}
    return {arguments: pair for arguments, pair in found.items() if pair[0] != pair[1]}
