"""Answer statements by DuckDB with its delta extension, for `tests.support.interop`.

Runs in the environment of `make .cache/tpc/.ready`, whose DuckDB is the one for which the extension
is built. The input is a list of statements in Python's words; the output is the pickled list of
their rows, or the text of the error.
"""

from __future__ import annotations

import ast
import datetime as dt
import pickle
import sys
import types
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb


class _Utc(dt.tzinfo):
    """As pytz has it."""

    def utcoffset(self, moment: dt.datetime | None) -> dt.timedelta:
        """No time."""
        del moment
        return dt.timedelta(0)

    dst = utcoffset

    def tzname(self, moment: dt.datetime | None) -> str:
        """Of UTC."""
        del moment
        return "UTC"

    def localize(self, moment: dt.datetime) -> dt.datetime:
        """The moment in this zone."""
        return moment.replace(tzinfo=dt.UTC)


class _Pytz(types.ModuleType):
    @staticmethod
    def timezone(name: str) -> _Utc:
        """The zone of the session."""
        assert name == "UTC"
        return _Utc()


def _plain(value: Any) -> Any:
    """The value with its moments in Python's UTC, which other processes know."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.replace(tzinfo=dt.UTC)
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def main() -> None:
    """Answer all statements."""
    (extension,) = Path(str(files("duckdb_extension_delta"))).rglob("*.duckdb_extension")
    database = duckdb.connect()
    database.execute(f"LOAD '{extension}'")
    database.execute("SET TimeZone = 'UTC'")
    # DuckDB asks this package, which nothing else here needs, for the zone of a timestamp.
    sys.modules["pytz"] = _Pytz("pytz")
    replies: list[Any] = []
    for statement in ast.literal_eval(sys.stdin.read()):
        try:
            found = database.execute(statement)
            names = [column[0] for column in found.description or ()]
            rows = [map(_plain, row) for row in found.fetchall()]
            replies.append([dict(zip(names, row, strict=True)) for row in rows])
        except duckdb.Error as error:
            replies.append(str(error))
    sys.stdout.buffer.write(pickle.dumps(replies))


if __name__ == "__main__":
    main()
