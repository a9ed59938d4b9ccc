"""Scripts of SQL that Delta Spark and deltalog run on tables of their own, and what both made.

The scripts are in `tests/reference/statements.sql`, which says what its signs mean.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import deltalog
from deltalog import DeltaTable
from deltalog.data.scan import open_changes
from deltalog.errors import DeltaError
from tests.support import reference

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa

# Answers that tell of times, ids and sizes of files, which are each writer's own; and those that
# Delta Spark does not give, as the number of rows that were inserted.
_OWN: Final = re.compile(
    r"""\s* (?:
      (?: DESC | DESCRIBE ) \s+ (?: DETAIL | HISTORY )
    | (?: DESC | DESCRIBE ) \b .* EXTENDED
    | (?: OPTIMIZE | VACUUM | REORG | SHOW | EXPLAIN ) \b
    | (?: CREATE | ALTER | CONVERT | RESTORE | INSERT | TRUNCATE | COMMENT | REPLACE | GENERATE ) \b
    )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_PARTS: Final = re.compile(
    r"^-- (section|case): (.*)\n((?:(?!-- (?:section|case): ).*\n)*)", re.MULTILINE
)
_BEGINS: Final = re.compile(r"-- begins: (.*)\n")
# What Spark notes in the schema, and we in another form or not at all.
_NOTES: Final = frozenset({"delta.columnMapping.physicalName", "delta.columnMapping.id"})
_OWN_PROPERTIES: Final = ("delta.rowTracking.materialized", "delta.columnMapping.maxColumnId")


def cases(file: Path) -> dict[str, str]:
    """The scripts of a file by their names, each with the sections that it begins with."""
    found: dict[str, dict[str, str]] = {"section": {}, "case": {}}
    for kind, name, body in _PARTS.findall(file.read_text("utf-8")):
        begins = _BEGINS.match(body)
        names = begins[1].split(", ") if begins else []
        before = "".join(found["section"][one] for one in names)
        found[kind][name] = before + (body[begins.end() :] if begins else body)
    return found["case"]


def statements(script: str) -> list[tuple[str, bool]]:
    """The statements of a script, and whether each is to be refused."""
    found = [one.strip() for one in re.split(r";\s*(?:\n|$)", script) if one.strip()]
    return [(one.removeprefix("!").strip(), one.startswith("!")) for one in found]


def placed(statement: str, place: Path) -> str:
    """A statement with the tables of one writer."""
    found = re.sub(r"(?<![.'{])\b([TSU])\b(?!['}])", lambda name: _name(name[1], place), statement)
    return re.sub(r"\{([TSU])\}", lambda name: str(place / name[1]), found)


def _name(name: str, place: Path) -> str:
    return f"delta.`{place / name}`"


def by_both(spark: reference.Spark, place: Path, script: str) -> tuple[Path, Path]:
    """Let both run a script; what they answer is the same, and so are the tables that they made.

    Returns:
        Where the reference's tables are, and ours.
    """
    theirs, mine = place / "theirs", place / "mine"
    for one in (theirs, mine):
        one.mkdir(exist_ok=True)
    db = deltalog.connect()
    for statement, is_refused in statements(script):
        expected = told(lambda: spark.query(placed(statement, theirs)))  # noqa: B023
        found = told(lambda: db.sql(placed(statement, mine)).to_arrow())  # noqa: B023
        if is_refused:
            assert isinstance(expected, reference.ReferenceError), f"the reference ran {statement}"
            assert isinstance(found, DeltaError), f"we ran {statement}"
            continue
        assert not isinstance(expected, Exception), f"the reference refused {statement}: {expected}"
        assert not isinstance(found, Exception), f"we refused {statement}: {found}"
        if not _OWN.match(statement):
            assert_same_rows(statement, expected, found)
    return theirs, mine


def told(run: Callable[[], pa.Table]) -> pa.Table | Exception:
    """The rows, or the error, of a statement."""
    try:
        return run()
    except (reference.ReferenceError, DeltaError) as error:
        return error


def assert_same_rows(what: str, expected: pa.Table, found: pa.Table) -> None:
    """Compare names, types and rows, in any order."""
    same(what, found.column_names, expected.column_names)
    same(what, _types(found), _types(expected))
    same(what, in_order(found), in_order(expected))


def same(what: str, found: object, expected: object) -> None:
    """Fail if two values differ, and show both."""
    if found != expected:
        raise AssertionError(f"{what}\n  found    {found}\n  expected {expected}")


def _types(rows: pa.Table) -> list[str]:
    return [re.sub(r" not null|large_|(?<=<)(element|item|l)(?=:)|'", "", str(one.type))
            for one in rows.schema]  # fmt: skip


def in_order(rows: pa.Table) -> list[str]:
    """The rows as texts, sorted."""
    columns = [column.to_pylist() for column in rows.columns]
    return sorted(repr(tuple(map(_plain, row))) for row in zip(*columns, strict=True))


def _plain(value: Any) -> Any:
    """A value without what differs in notation only."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return sorted(map(repr, value))
    if isinstance(value, float) and value == 0:
        return 0.0
    zone = getattr(value, "tzinfo", None)
    return value.replace(tzinfo=None) if zone is not None else value


def assert_same_tables(spark: reference.Spark, theirs: Path, mine: Path) -> None:
    """Compare the tables of both writers: rows by both readers, changes, schema and properties."""
    names = sorted(one.name for one in theirs.iterdir() if (one / "_delta_log").exists())
    assert names == sorted(one.name for one in mine.iterdir() if (one / "_delta_log").exists())
    for name in names:
        tables = [DeltaTable(place / name) for place in (theirs, mine)]
        same(f"facts of {name}", facts(tables[1]), facts(tables[0]))
        own = [table.to_pyarrow_table() for table in tables]
        read = [spark.read(place / name) for place in (theirs, mine)]
        expected, *others = (in_order(one) for one in (*own, *read))
        same(f"rows of {name}", others, [expected] * len(others))
        same(f"changes of {name}", changes(tables[1]), changes(tables[0]))


def facts(table: DeltaTable) -> dict[str, Any]:
    """The schema, the properties and the layout of a table, without what each writer chooses."""
    metadata = table.metadata()
    schema = json.loads(table.schema().to_json(), object_hook=_without_notes)
    return {
        "schema": schema,
        "partitions": list(metadata.partition_columns),
        "clusters": table.detail()["clusteringColumns"],
        "comment": metadata.description,
        "properties": {
            key: text
            for key, text in metadata.configuration.items()
            if not key.startswith(_OWN_PROPERTIES)
        },
    }


def _without_notes(node: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in _NOTES}


def changes(table: DeltaTable) -> list[list[str]]:
    """The change feed of each version that has one, newest first."""
    if table.metadata().configuration.get("delta.enableChangeDataFeed") != "true":
        return []
    found: list[list[str]] = []
    for version in range(table.version(), 0, -1):
        try:
            feed = open_changes(table.snapshot, start=version, end=version).to_table()
        except DeltaError:
            break  # from here on, changes were not kept
        found.append(in_order(feed.drop_columns(["_commit_version", "_commit_timestamp"])))
    return found


def sampled(names: Sequence[str], *, every: int, is_full: bool) -> list[str]:
    """All names, or every so many of them."""
    return list(names) if is_full else list(names)[::every]
