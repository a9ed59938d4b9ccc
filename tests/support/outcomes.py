"""What came of several uses of a table, as lines of JSON that a test reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any


def print_outcomes(ways: Iterable[tuple[str, Callable[[], Any]]]) -> None:
    """Try each way, and print its name and its result, or its error."""
    for name, do in ways:
        found = {"way": name, "error": None}
        try:
            found["text"] = str(do())
        except Exception as error:  # noqa: BLE001  # the test decides what an error means
            found |= {"error": type(error).__name__, "text": str(error)[:4000]}
        print(json.dumps(found), flush=True)  # noqa: T201  # the test reads it
