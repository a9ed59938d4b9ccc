"""Which cases run on Spark as well: those of a module of the core's tests, but for some."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Any

SOURCE = "__source__"
"""The name under which a module of this folder keeps the module that it takes its cases from."""
LEFT_OUT = "__left_out__"
"""The name under which it keeps what it leaves out."""

# Why cases have no counterpart on Spark.
COUNTS = "what is counted is requests of the core, or what it decodes"
FAULTS = "calls that the core makes of its store fail; tests/spark has faults of its own"
RACES = "another writer comes between calls of the core; tests/spark has races of its own"
NO_WORD = "Spark's interface has no word for it"
LATEST = "tables on Spark are at their latest version: no other one is asked to change"
AS_DELTA = "Spark does it, as Delta on Spark does; the core refuses it"
AS_DELTALAKE = "the core does it, as deltalake does; on Spark it is refused"
OTHER_MISTAKE = "both refuse it, and each names another of its mistakes"
TOO_LONG = "many histories drawn at random: the laws of tests/property are about the core"
NO_LIMIT = "cases differ by a limit of the core, which Spark's joins do not have: one is kept"
NO_TABLE = "a table is made, or a piece of the core called, and no statement made that Spark has"


def cases_of(module: ModuleType, leaving_out: Mapping[str, str]) -> dict[str, Any]:
    """The names of a test module that pytest collects, and what they use.

    Args:
        module: of the core's tests.
        leaving_out: name → why it has no counterpart on Spark; a name goes on with `[` and the
            beginning of the parameters where it is about some cases of a function.
    """
    tests = {
        name: value
        for name, value in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(value)
    }
    unknown = {name.partition("[")[0] for name in leaving_out} - tests.keys()
    assert not unknown, f"{module.__name__} has no {sorted(unknown)}"
    fixtures = {
        name: value
        for name, value in vars(module).items()
        if type(value).__name__ == "FixtureFunctionDefinition"
    }
    kept = {name: test for name, test in tests.items() if name not in leaving_out}
    return {**fixtures, **kept, SOURCE: module, LEFT_OUT: leaving_out}
