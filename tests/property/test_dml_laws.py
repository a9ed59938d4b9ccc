"""Laws: statements do to a table what they say, to every row, in the feed and in row ids.

The same statements are done to a list of dicts. Tables have deletion vectors or none, partitions,
column mapping, row ids and a change feed; files are as many as the appends that made them.
"""
# ruff: noqa: ARG005  # every condition takes both rows, whichever it looks at

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deltalog.errors import AmbiguousMergeError
from deltalog.operations.changes.request import Action, Clause, When
from tests.support.examples import examples
from tests.support.statements import FEED, ROW_IDS, VECTORS, StatedTable, in_order

Row = dict[str, Any]
Condition = Callable[[Row, Row], bool | None]

COLUMNS = {"k": "long", "g": "string", "x": "long", "s": "struct<a:long,b:string>"}
MAPPED = {"delta.columnMapping.mode": "name"}
IDS = ("k", "g", "x", "s", "_metadata.row_id", "_metadata.row_commit_version")


def greater(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left > right


def equal(left: Any, right: Any) -> bool | None:
    return None if left is None or right is None else left == right


def both(*parts: bool | None) -> bool | None:
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True


def opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


# SQL over a row of the table and one of the source, and what it means.
TARGET_CONDITIONS: dict[str, Condition] = {
    "t.k > 2": lambda t, s: greater(t["k"], 2),
    "t.g = 'b'": lambda t, s: equal(t["g"], "b"),
    "t.x IS NULL": lambda t, s: t["x"] is None,
    "NOT t.s.a > 1": lambda t, s: opposite(greater((t["s"] or {"a": None})["a"], 1)),
    "t.g IS NOT NULL AND t.k IN (1, 3)": lambda t, s: both(
        t["g"] is not None, None if t["k"] is None else t["k"] in (1, 3)
    ),
}
SOURCE_CONDITIONS: dict[str, Condition] = {
    "s.k > 1": lambda t, s: greater(s["k"], 1),
    "s.x IS NULL OR s.g = 'a'": lambda t, s: s["x"] is None or equal(s["g"], "a"),
}
PAIR_CONDITIONS: dict[str, Condition] = {
    **TARGET_CONDITIONS,
    **SOURCE_CONDITIONS,
    "t.x > s.x": lambda t, s: greater(t["x"], s["x"]),
}
MATCHES: dict[str, Condition] = {
    "t.k = s.k": lambda t, s: equal(t["k"], s["k"]),
    "s.k <=> t.k": lambda t, s: t["k"] == s["k"],
    "t.k = s.k AND t.g = s.g": lambda t, s: both(equal(t["k"], s["k"]), equal(t["g"], s["g"])),
    "t.k = s.k AND t.g <=> s.g AND s.k > 1": lambda t, s: both(
        equal(t["k"], s["k"]), t["g"] == s["g"], greater(s["k"], 1)
    ),
    "t.k = s.k AND t.g = 'b'": lambda t, s: both(equal(t["k"], s["k"]), equal(t["g"], "b")),
    "t.k + 1 = s.k": lambda t, s: equal(None if t["k"] is None else t["k"] + 1, s["k"]),
    "t.k = s.k AND t.x > s.x": lambda t, s: both(equal(t["k"], s["k"]), greater(t["x"], s["x"])),
    "t.x > s.x": lambda t, s: greater(t["x"], s["x"]),
    "1 = 0": lambda t, s: False,
}


def plus(value: Any, more: int) -> Any:
    return None if value is None else value + more


Change = Callable[[Row, Row], Row]
# Assignments, and what they make of a row.
TARGET_VALUES: list[tuple[dict[str, str], Change]] = [
    ({"x": "x + 10"}, lambda t, s: {"x": plus(t["x"], 10)}),
    ({"g": "'c'", "x": "k"}, lambda t, s: {"g": "c", "x": t["k"]}),
    (
        {"s.a": "k"},
        lambda t, s: {"s": {"a": t["k"], "b": None if t["s"] is None else t["s"]["b"]}},
    ),
    ({"s": "NULL"}, lambda t, s: {"s": None}),
    ({"k": "x", "x": "k"}, lambda t, s: {"k": t["x"], "x": t["k"]}),
]
PAIR_VALUES: list[tuple[dict[str, str] | None, Change]] = [
    (None, lambda t, s: dict(s)),
    ({"x": "s.x", "t.g": "s.g"}, lambda t, s: {"x": s["x"], "g": s["g"]}),
    ({"x": "t.k + s.k"}, lambda t, s: {"x": plus(t["k"], s["k"]) if s["k"] is not None else None}),
    ({"s": "s.s", "k": "s.k + 1"}, lambda t, s: {"s": s["s"], "k": plus(s["k"], 1)}),
]
INSERT_VALUES: list[tuple[dict[str, str] | None, Change]] = [
    (None, lambda t, s: dict(s)),
    ({"k": "s.k", "g": "'n'"}, lambda t, s: {"k": s["k"], "g": "n"}),
]
EMPTY: Row = dict.fromkeys(COLUMNS)
KINDS: list[tuple[str, pa.DataType]] = [
    ("k", pa.int64()),
    ("g", pa.string()),
    ("x", pa.int64()),
    ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
]


@dataclass
class Step:
    """A clause, and what it means."""

    when: When
    action: Action
    condition: tuple[str, Condition] | None
    values: tuple[dict[str, str] | None, Change] | None

    @property
    def clause(self) -> Clause:
        values = None if self.values is None else self.values[0]
        return Clause(
            when=self.when,
            action=self.action,
            condition=None if self.condition is None else self.condition[0],
            values=None if values is None else dict(values.items()),
        )

    def takes(self, target: Row, source: Row) -> bool:
        return self.condition is None or self.condition[1](target, source) is True


NUMBERS = st.none() | st.integers(0, 4)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": NUMBERS,
            "g": st.sampled_from([None, "a", "b"]),
            "x": NUMBERS,
            "s": st.none()
            | st.fixed_dictionaries({"a": NUMBERS, "b": st.sampled_from([None, "y"])}),
        }
    ),
    max_size=6,
)
TABLES = st.builds(
    lambda vectors, mapped, partitioned: (
        {**FEED, **ROW_IDS, **vectors, **(MAPPED if mapped else {})},
        ["g"] if partitioned else [],
    ),
    st.sampled_from([{}, VECTORS, {**VECTORS, "deltalog.maxDeletedRowsRatio": "1"}]),
    st.booleans(),
    st.booleans(),
)


@st.composite
def steps(draw: Any, when: When) -> list[Step]:
    """Some clauses, of which only the last may be without a condition."""
    conditions = {
        When.MATCHED: PAIR_CONDITIONS,
        When.NOT_MATCHED: SOURCE_CONDITIONS,
        When.NOT_MATCHED_BY_SOURCE: TARGET_CONDITIONS,
    }[when]
    values: Any = {
        When.MATCHED: PAIR_VALUES,
        When.NOT_MATCHED: INSERT_VALUES,
        When.NOT_MATCHED_BY_SOURCE: TARGET_VALUES,
    }[when]
    count = draw(st.integers(0, 2))
    found = []
    for place in range(count):
        some = st.sampled_from(sorted(conditions.items(), key=lambda item: item[0]))
        condition = draw(some if place < count - 1 else st.none() | some)
        deletes = when is not When.NOT_MATCHED and draw(st.booleans())
        if when is When.NOT_MATCHED:
            found.append(Step(when, Action.INSERT, condition, draw(st.sampled_from(values))))
        elif deletes:
            found.append(Step(when, Action.DELETE, condition, None))
        else:
            found.append(Step(when, Action.UPDATE, condition, draw(st.sampled_from(values))))
    return found


@dataclass
class Statement:
    """Something that is done to a table."""

    run: Callable[[StatedTable], object]
    model: Callable[[list[Row]], tuple[list[tuple[Row, Row | None]], list[Row]]]
    text: str

    def __repr__(self) -> str:
        return self.text


@st.composite
def statements(draw: Any) -> Statement:
    kind = draw(st.sampled_from(["append", "delete", "update", "merge", "merge"]))
    if kind == "append":
        more = draw(ROWS)
        return Statement(
            lambda table: table.append(more) if more else None,
            lambda rows: ([(row, row) for row in rows], [dict(row) for row in more]),
            f"append {more}",
        )
    if kind == "merge":
        return merging(
            draw(ROWS),
            draw(st.sampled_from(sorted(MATCHES.items(), key=lambda item: item[0]))),
            [step for when in When for step in draw(steps(when))]
            or [Step(When.NOT_MATCHED, Action.INSERT, None, INSERT_VALUES[0])],
        )
    sql, holds = draw(st.sampled_from(sorted(TARGET_CONDITIONS.items(), key=lambda item: item[0])))
    where = sql.replace("t.", "")
    if kind == "delete":
        return Statement(
            lambda table: table.delete(where),
            lambda rows: ([(row, None if holds(row, EMPTY) else row) for row in rows], []),
            f"delete {where}",
        )
    values, change = draw(st.sampled_from(TARGET_VALUES))
    return Statement(
        lambda table: table.update(dict(values.items()), where),
        lambda rows: (
            [
                (row, {**row, **change(row, EMPTY), "changed": True} if holds(row, EMPTY) else row)
                for row in rows
            ],
            [],
        ),
        f"update {values} {where}",
    )


def merging(source: list[Row], on: tuple[str, Condition], clauses: list[Step]) -> Statement:
    """A merge, and what it means: every row of the table beside every row of the source."""

    # As in Delta Spark: a delete without a condition, which is the only clause for rows that match.
    acts = [step for step in clauses if step.when is When.MATCHED]
    may_repeat = [(step.action, step.condition) for step in acts] == [(Action.DELETE, None)]

    def model(rows: list[Row]) -> tuple[list[tuple[Row, Row | None]], list[Row]]:
        found: list[tuple[Row, Row | None]] = []
        used: set[int] = set()
        for row in rows:
            matches = [place for place, other in enumerate(source) if on[1](row, other) is True]
            used.update(matches)
            if matches:
                acting = [
                    (step, source[place])
                    for place in matches
                    for step in [first(When.MATCHED, row, source[place])]
                    if step is not None
                ]
            else:
                alone = first(When.NOT_MATCHED_BY_SOURCE, row, EMPTY)
                acting = [] if alone is None else [(alone, EMPTY)]
            if len(acting) > 1 and not may_repeat:
                raise AmbiguousMergeError("the model")
            found.append((row, done(*acting[0], row) if acting else row))
        new = []
        for place, other in enumerate(source):
            step = None if place in used else first(When.NOT_MATCHED, EMPTY, other)
            if step is not None and step.values is not None:
                new.append({**EMPTY, **step.values[1](EMPTY, other)})
        return found, new

    def first(when: When, row: Row, other: Row) -> Step | None:
        return next(
            (step for step in clauses if step.when is when and step.takes(row, other)), None
        )

    def done(step: Step, other: Row, row: Row) -> Row | None:
        if step.values is None:
            return None
        return {**row, **step.values[1](row, other), "changed": True}

    data = [dict(row) for row in source] or pa.schema(KINDS).empty_table()
    return Statement(
        lambda table: table.merge(data, on[0], *(step.clause for step in clauses)),
        model,
        f"merge {source} on {on[0]}: "
        f"{[(str(step.clause), step.clause.condition, step.clause.values) for step in clauses]}",
    )


def plain(row: Row) -> Row:
    return {name: row[name] for name in COLUMNS}


def shown(rows: Sequence[Row]) -> list[Row]:
    return in_order([{**plain(row), "id": row["id"], "version": row["version"]} for row in rows])


def in_table(table: StatedTable) -> list[Row]:
    names = [*COLUMNS, "id", "version"]
    return in_order([dict(zip(names, row.values(), strict=True)) for row in table.rows(*IDS)])


def feed(pairs: Sequence[tuple[Row, Row | None]], new: Sequence[Row]) -> list[Row]:
    """What the change feed says of a statement."""
    found = [{**row, "_change_type": "insert"} for row in map(plain, new)]
    for before, after in pairs:
        if after is None:
            found.append({**plain(before), "_change_type": "delete"})
        elif "changed" in after:
            found.append({**plain(before), "_change_type": "update_preimage"})
            found.append({**plain(after), "_change_type": "update_postimage"})
    return in_order(found)


@settings(max_examples=examples(60), deadline=None)
@given(
    TABLES, st.lists(ROWS.filter(bool), min_size=1, max_size=3), st.lists(statements(), max_size=4)
)
@pytest.mark.protocol("ROWID-13", "CDC-02", "DF-08")
def test_statements_do_to_a_table_what_they_do_to_a_list(
    made: tuple[dict[str, str], list[str]], files: list[list[Row]], todo: list[Statement]
) -> None:
    properties, partition_by = made
    table = StatedTable(COLUMNS, *files, properties=properties, partition_by=partition_by)
    rows = in_table(table)
    assert in_order(map(plain, rows)) == in_order([row for file in files for row in file])
    highest = max(row["id"] for row in rows)
    for statement in todo:
        before = table.version
        try:
            pairs, new = statement.model(rows)
        except AmbiguousMergeError:
            with pytest.raises(AmbiguousMergeError):
                statement.run(table)
            assert table.version == before
            continue
        statement.run(table)
        changes = feed(pairs, new)
        assert table.version == before + bool(changes)
        if not changes:
            continue
        assert table.changes() == changes
        found = in_table(table)
        kept = [after for _, after in pairs if after is not None]
        for row in kept:
            if row.pop("changed", False):
                row["version"] = table.version
        # Who keeps an id is told exactly; new rows have ids that no row ever had.
        ids = {row["id"] for row in kept}
        assert in_order([row for row in found if row["id"] in ids]) == shown(kept)
        fresh = [row for row in found if row["id"] not in ids]
        assert in_order(map(plain, fresh)) == in_order(new)
        assert all(row["id"] > highest and row["version"] == table.version for row in fresh)
        assert len({row["id"] for row in found}) == len(found)
        highest = max([highest, *(row["id"] for row in fresh)])
        rows = found
