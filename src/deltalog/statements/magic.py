"""The notebook magics `%sql` and `%%sql`, which `%load_ext deltalog` loads.

Protocol: none
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from deltalog.errors import InvalidInputError
from deltalog.query.lexer import split
from deltalog.query.results import SqlResult
from deltalog.statements.connection import Connection, connect, statements_of
from deltalog.statements.grammar import parse_statement
from deltalog.table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def load(shell: Any) -> None:
    """Register the magics in a notebook's shell.

    Args:
        shell: IPython's shell.
    """
    magics = _Magics(shell)
    for kind in ("line", "cell"):
        shell.register_magic_function(getattr(magics, kind), kind, "sql")


class _Magics:
    """Runs statements over the tables and dataframes in the variables of a notebook.

    Args:
        shell: IPython's shell.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._connection: Connection | None = None

    def line(self, text: str) -> SqlResult:
        """Run the statement of a line: `%sql statement`."""
        return self._run(text)

    def cell(self, line: str, text: str) -> SqlResult | None:
        """Run the statements of a cell; its first line may name a variable for the last result."""
        name = line.strip()
        if name and not name.isidentifier():
            raise InvalidInputError(f"%%sql: expected a name for the result, found {name!r}")
        statements = statements_of(text)
        for one in statements:  # check all statements before the first one runs
            with _naming_variables():
                parse_statement(one, _parameters_of(one, self._shell.user_ns))
        results = [self._run(one) for one in statements]
        if not results:
            return None
        if name:
            self._shell.user_ns[name] = results[-1]
            return None
        return results[-1]

    def _run(self, statement: str) -> SqlResult:
        if self._connection is None:
            self._connection = connect()
        for name, value in _tables_of(self._shell.user_ns).items():
            self._connection.register(name, value)
        with _naming_variables():
            return self._connection.sql(statement, _parameters_of(statement, self._shell.user_ns))


_MISSING: Final = (
    (
        re.compile(
            r"the parameter :(\w+) has no value in `parameters`"
            r"|no value was given for the parameter :(\w+); pass a dictionary[^}]*\}"
        ),
        lambda found: (
            f"the parameter :{found[1] or found[2]} has no value: define the variable "
            f"{found[1] or found[2]}"
        ),
    ),
    (
        re.compile(r"the parameter \? needs a list of values as `parameters`"),
        lambda _: (
            "a notebook has no values for ?: write :name, with the value in the variable name"
        ),
    ),
)
"""What an error says about missing parameters → what to do in a notebook."""


@contextmanager
def _naming_variables() -> Iterator[None]:
    """Let errors about missing parameters name the notebook's variables."""
    try:
        yield
    except InvalidInputError as error:
        text = str(error)
        for pattern, replacement in _MISSING:
            text = pattern.sub(replacement, text)
        if text == str(error):
            raise
        raise InvalidInputError(text) from None


def _tables_of(names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notebook's variables that contain tables, except names that begin with `_`."""
    return {
        name: value
        for name, value in names.items()
        if not name.startswith("_") and not isinstance(value, type) and _is_table(value)
    }


def _is_table(value: object) -> bool:
    if isinstance(value, DeltaTable):
        return True
    module = type(value).__module__.partition(".")[0]
    return module in {"pyarrow", "pandas", "polars"} and hasattr(value, "__arrow_c_stream__")


def _parameters_of(statement: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the variables that a statement uses as `:name`."""
    words = split(statement)
    return {
        word.text: names[word.text]
        for before, word in pairwise(words)
        if before.says(":") and word.kind == "word" and word.text in names
    }
