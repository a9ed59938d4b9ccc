"""Whether two tables are the same, apart from what each engine is free to choose.

Free are the names of new files, random names (of columns in files, of hidden columns), and which
new numbers go to new rows, be they row ids or values of identity columns: those must be new and
unique, and lie on the column's ladder. With a change feed also what becomes of old files: tasks of
Spark tell the feed of deleted rows in any case, so that writing a file once more costs it nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from deltalog._util.json import loads
from deltalog.data.scan import open_changes, plan_scan
from deltalog.log.context import utc_context
from deltalog.log.listing import has_table
from deltalog.log.snapshot import Snapshot, load_snapshot
from deltalog.protocol.features.identity_columns import IdentityColumn, identity_columns
from deltalog.schema import encode_schema
from deltalog.storage.store import Store

ROW_ID, ROW_VERSION = "_metadata.row_id", "_metadata.row_commit_version"
_FREE_OF_FIELDS = {"delta.columnMapping.physicalName", "delta.identity.highWaterMark"}
_FREE_PROPERTIES = "delta.rowTracking.materialized"
_FREE_DOMAINS = {"delta.rowTracking"}
_WHEN = ["_commit_version", "_commit_timestamp"]


@dataclass(frozen=True)
class Before:
    """What was given out before a statement.

    Args:
        version: None if there was no table.
        numbers: column → the values that rows had.
        paths: of the live files.
        row_id_mark: the highest row id.
        gives_numbers: whether the statement makes new rows; if not, numbers are compared as well.
    """

    version: int | None = None
    numbers: Mapping[str, frozenset[int]] = field(default_factory=dict)
    paths: frozenset[str] = frozenset()
    row_id_mark: int = -1
    gives_numbers: bool = True

    @classmethod
    def of(cls, store: Store) -> Before:
        """Look at a table, or at the place where it is to be."""
        if not has_table(store):
            return cls()
        snapshot = load_snapshot(utc_context(store))
        identities = [one.name for one in identity_columns(snapshot.configuration.schema)]
        ids = [ROW_ID] if snapshot.configuration.row_ids_enabled else []
        numbers: dict[str, Any] = {}
        if identities or ids:
            numbers = plan_scan(snapshot, columns=[*identities, *ids]).to_table().to_pydict()
        mark = snapshot.row_id_high_water_mark
        return cls(
            version=snapshot.version,
            numbers={name.lower(): frozenset(values) for name, values in numbers.items()},
            paths=frozenset(_vectors(snapshot)),
            row_id_mark=-1 if mark is None else mark,
        )


def differences(
    expected: Store, found: Store, before: Before, apart_from: Collection[str] = ()
) -> list[str]:
    """What a table is that the other is not: empty if they are the same.

    Args:
        expected: what the core made.
        found: what Spark made.
        before: what was there.
        apart_from: facts that may differ.
    """
    if not has_table(expected) or not has_table(found):
        is_there = {"core": has_table(expected), "Spark": has_table(found)}
        return [] if len(set(is_there.values())) == 1 else [f"is there a table? {is_there}"]
    one, other = load_snapshot(utc_context(expected)), load_snapshot(utc_context(found))
    if one.version != other.version:
        return [f"version: {one.version} on the core, {other.version} on Spark"]
    shown: list[str] = []
    for name, (mine, theirs) in _facts(one, other, before).items():
        if mine != theirs and name not in apart_from:
            shown.append(f"{name}: on the core\n    {_told(mine)}\n  on Spark\n    {_told(theirs)}")
    return shown + [f"Spark: {wrong}" for wrong in _wrong_numbers(other, before)]


def _facts(one: Snapshot, other: Snapshot, before: Before) -> dict[str, tuple[Any, Any]]:
    found: dict[str, Any] = {}
    for snapshot in (one, other):
        configuration, metadata = snapshot.configuration, snapshot.metadata
        protocol = snapshot.protocol
        facts: dict[str, Any] = {
            "schema": _schema(snapshot),
            "partition columns": metadata.partition_columns,
            "name and description": (metadata.name, metadata.description),
            "properties": _properties(metadata.configuration),
            "protocol": (
                protocol.min_reader_version,
                protocol.min_writer_version,
                frozenset(protocol.reader_features or ()),
                frozenset(protocol.writer_features or ()),
            ),
            "domains": {
                name: domain.configuration
                for name, domain in snapshot.domain_metadata.items()
                if name not in _FREE_DOMAINS
            },
            "application transactions": {
                name: txn.version for name, txn in snapshot.app_transactions.items()
            },
            "rows": _rows(snapshot, before),
        }
        if not configuration.change_data_feed_enabled:
            facts["old files and their vectors"] = {
                path: rows for path, rows in _vectors(snapshot).items() if path in before.paths
            }
        elif snapshot.version != before.version:
            facts["change feed"] = _changes(snapshot, before)
        for name, value in facts.items():
            found.setdefault(name, []).append(value)
    return {name: (values[0], values[-1]) for name, values in found.items()}


def _schema(snapshot: Snapshot) -> Any:
    return _stripped(loads(encode_schema(snapshot.configuration.schema).encode()))


def _stripped(node: Any) -> Any:
    """A schema without what is chosen at random, or counts on."""
    if isinstance(node, list):
        return [_stripped(one) for one in node]
    if isinstance(node, dict):
        return {name: _stripped(one) for name, one in node.items() if name not in _FREE_OF_FIELDS}
    return node


def _properties(configuration: Mapping[str, str]) -> dict[str, str]:
    return {
        name: "" if name.startswith(_FREE_PROPERTIES) else text
        for name, text in configuration.items()
    }


def _vectors(snapshot: Snapshot) -> dict[str, int]:
    """The live files: how many rows of each are deleted."""
    files = snapshot.files(["path", "deletionVector"]).to_pylist()
    return {row["path"]: (row["deletionVector"] or {}).get("cardinality", 0) for row in files}


def _rows(snapshot: Snapshot, before: Before) -> Counter[str]:
    has_ids = snapshot.configuration.row_ids_enabled
    names = [*snapshot.configuration.schema.names, *([ROW_ID, ROW_VERSION] if has_ids else [])]
    return _counted(snapshot, plan_scan(snapshot, columns=names).to_table().to_pylist(), before)


def _changes(snapshot: Snapshot, before: Before) -> Counter[str]:
    at = snapshot.version
    table = open_changes(snapshot, start=at, end=at).to_table().drop_columns(_WHEN)
    return _counted(snapshot, table.to_pylist(), before)


def _counted(snapshot: Snapshot, rows: list[Any], before: Before) -> Counter[str]:
    numbers = {one.name for one in identity_columns(snapshot.configuration.schema)} | {ROW_ID}
    return Counter(
        repr(
            {name: _old(name, row[name], before) if name in numbers else row[name] for name in row}
        )
        for row in rows
    )


def _old(name: str, value: Any, before: Before) -> Any:
    is_old = not before.gives_numbers or value in before.numbers.get(name.lower(), ())
    return value if is_old else "new"


def _wrong_numbers(snapshot: Snapshot, before: Before) -> list[str]:
    """What is wrong with the numbers that new rows were given."""
    identities = {one.name: one for one in identity_columns(snapshot.configuration.schema)}
    ids = [ROW_ID] if snapshot.configuration.row_ids_enabled else []
    if not before.gives_numbers or not (identities or ids):
        return []
    columns: dict[str, Any] = (
        plan_scan(snapshot, columns=[*identities, *ids]).to_table().to_pydict()
    )
    found = []
    for name, values in columns.items():
        new = [value for value in values if value not in before.numbers.get(name.lower(), ())]
        if len(set(values)) < len(values):
            found.append(f"{name} is not unique: {sorted(values)}")
        if name == ROW_ID and any(value <= before.row_id_mark for value in new):
            found.append(f"row ids were given out before {before.row_id_mark}: {sorted(new)}")
        if name != ROW_ID and not all(_is_on(identities[name], value) for value in new):
            found.append(f"{name} has values beside its steps: {sorted(new)}")
    return found


def _is_on(column: IdentityColumn, value: int) -> bool:
    return (value - column.start) % column.step == 0


def _told(value: Any) -> str:
    """A fact, short enough to be read."""
    text = "\n    ".join(sorted(value.elements())) if isinstance(value, Counter) else repr(value)
    return text if len(text) < 3000 else f"{text[:3000]} …"
