"""Evaluating the SQL of a table for new rows: defaults, generated columns and constraints.

Expressions are resolved once, and evaluated for whole batches. If deltalog cannot evaluate an
expression, the write fails.

Protocol: Column Invariants, CHECK Constraints, Generated Columns, Default Columns
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from deltalog._util import clock
from deltalog._util.clock import utc_moment
from deltalog._util.kernels import Array, pc
from deltalog.data.write.encode import rows_where
from deltalog.data.write.fit import violation
from deltalog.errors import DeltaError, InvalidInputError, UnsupportedFeatureError
from deltalog.expressions import (
    UTC_NAMES,
    Column,
    Expression,
    columns,
    depends_on_zone,
    evaluate,
    filter_mask,
    parse_sql,
    resolve,
    resolve_predicate,
)
from deltalog.expressions.nodes import Collate
from deltalog.expressions.rows import bounded
from deltalog.expressions.sql_session import RULES_OF_TABLES
from deltalog.protocol.features.declarations import CHECK, Check
from deltalog.protocol.features.rule_sql import parse_rule
from deltalog.schema import StructType, find_field
from deltalog.schema.collations import has_collations
from deltalog.schema.types import BY_BYTES, STRING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


_MOST_SHOWN: Final = 200


class _Rule(NamedTuple):
    what: str  # for messages: "CHECK constraint 'pos' (a > 0)"
    name: str
    condition: Expression  # a resolved condition, which must be true


class Rules:
    """The SQL rules of a table (defaults, generated columns, constraints), resolved for one write.

    Args:
        schema: the table's schema.
        missing: columns that the data lacks.
        defaults: the SQL default of each missing column that has one, by column.
        generated: the SQL expressions of all generated columns, by column.
        checks: constraints and invariants.
        table: the table's location, for error messages.
        time_zone: the time zone of the write. If it is not UTC, rules that depend on the zone are
            errors.
        now_ms: the value of `current_timestamp()`; None means the current time.

    Attributes:
        generated: resolved expressions of missing generated columns, by column.

    Raises:
        UnsupportedFeatureError: an expression cannot be evaluated; the message contains it.
    """

    def __init__(
        self,
        schema: StructType,
        *,
        missing: Collection[str],
        defaults: Mapping[str, str],
        generated: Mapping[str, str],
        checks: Collection[Check],
        table: str,
        time_zone: str,
        now_ms: int | None,
    ) -> None:
        self._table = table
        self._logical = schema
        self._zone = time_zone
        # The current time, because rules of other writers may depend on it.
        now = utc_moment(clock.now_ms() if now_ms is None else now_ms)
        self._session = replace(RULES_OF_TABLES, now=now)
        self._constants = {name: self._default(name, text) for name, text in defaults.items()}
        self.generated: dict[str, Expression] = {
            name: self._generation(name, text)
            for name, text in generated.items()
            if name in missing
        }
        self._rules = [
            *(
                self._verification(name, text)
                for name, text in generated.items()
                if name not in missing
            ),
            *(self._check(check) for check in checks),
        ]

    def defaults(self, num_rows: int) -> dict[str, Array]:
        """Return `num_rows` values of each missing column that has a default, by column."""
        return {name: pa.repeat(value, num_rows) for name, value in self._constants.items()}

    def generate(self, found: dict[str, Array], schema: pa.Schema) -> None:
        """Add missing generated columns to `found`.

        Args:
            found: all other columns, by name; the result is added to this dictionary.
            schema: the Arrow schema of the table.
        """
        if not self.generated:
            return
        known = [field for field in schema if field.name in found]
        base = pa.RecordBatch.from_arrays(
            [found[field.name] for field in known], schema=pa.schema(known)
        )
        for name, expression in self.generated.items():
            what = f"the generated column {name!r} of {self._table}"
            with _noting(f"computing {what}"), bounded(what, base):
                found[name] = evaluate(expression, base)

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise ConstraintViolationError if a rule is not true for a row."""
        for rule in self._rules:
            self._check_rule(rule, batch)

    # --- Used by the constructor

    def _default(self, name: str, text: str) -> Any:
        """Return the value of a default, which is the same for all rows."""
        what = f"the default of column {name!r} ({text})"
        field = find_field(self._logical, (name,))
        with _naming(self._table, what, "allowColumnDefaults"):
            resolved = resolve(parse_sql(text).cast(field.type), StructType([]), self._session)
            self._check_zone(text, resolved, StructType([]))
            one_row = pa.record_batch({"": pa.nulls(1)})
            with bounded(_shortened(what), one_row):
                return evaluate(resolved, one_row)[0]

    def _generation(self, name: str, text: str) -> Expression:
        """Return the resolved expression of a generated column, cast to the column's type."""
        field = find_field(self._logical, (name,))
        what = f"the expression of the generated column {name!r} ({text})"
        with _naming(self._table, what, "generatedColumns"):
            resolved = resolve(self._parse(text).cast(field.type), self._logical, self._session)
            self._check_zone(text, resolved, self._logical)
            return resolved

    def _verification(self, name: str, text: str) -> _Rule:
        """Return the rule that given values of a generated column equal the computed values."""
        what = f"generated column {name!r} ({text})"
        with _naming(self._table, what, "generatedColumns"):
            value, computed = Column((name,)), self._parse(text)
            is_same: Expression = value.equals_null_safe(computed)
            if find_field(self._logical, (name,)).type == STRING and has_collations(self._logical):
                # Compare bytes, because strings must be identical, not only equal by a collation.
                is_same = Collate(value, BY_BYTES).equals_null_safe(Collate(computed, BY_BYTES))
            resolved = resolve_predicate(is_same, self._logical, self._session)
            self._check_zone(text, resolved, self._logical)
            return _Rule(what, name, resolved)

    def _check(self, check: Check) -> _Rule:
        kind, feature = (
            ("CHECK constraint", "checkConstraints")
            if check.kind == CHECK
            else ("invariant of column", "invariants")
        )
        what = f"{kind} {check.name!r} ({check.text})"
        with _naming(self._table, what, feature):
            condition = resolve_predicate(self._parse(check.text), self._logical, self._session)
            self._check_zone(check.text, condition, self._logical)
        return _Rule(what, check.name, condition)

    def _check_zone(self, text: str, resolved: Expression, schema: StructType) -> None:
        """Raise if a rule depends on the time zone and the zone is not UTC.

        Other engines derive filters from generated columns. With another zone, such filters would
        skip rows.
        """
        if self._zone not in UTC_NAMES and depends_on_zone(text, resolved, schema):
            raise InvalidInputError(
                f"its value depends on the time zone; expected UTC, found {self._zone!r}; write "
                "with a session or default_timezone of UTC"
            )

    def _parse(self, text: str) -> Expression:
        return parse_rule(text, self._logical)

    # --- Used for each batch

    def _check_rule(self, rule: _Rule, batch: pa.RecordBatch) -> None:
        what = f"{rule.what} of {self._table}"
        with _noting(f"checking {what}"), bounded(_shortened(what), batch):
            holds: Array = filter_mask(rule.condition, batch)
        if pc.all(holds, min_count=0).as_py():
            return
        shown = sorted({path[0] for path in columns(rule.condition)})
        raise violation(
            rule.what,
            rule.name,
            batch.select(shown) if shown else batch,
            rows_where(pc.invert(holds), None),
        )


def _shortened(what: str) -> str:
    return what if len(what) <= _MOST_SHOWN else f"{what[:_MOST_SHOWN]}…"


@contextlib.contextmanager
def _naming(table: str, what: str, feature: str) -> Iterator[None]:
    """Convert an error of parsing to an UnsupportedFeatureError that contains the rule."""
    try:
        yield
    except InvalidInputError as error:
        raise UnsupportedFeatureError(
            table=table,
            version=None,
            operation="write to",
            features=[feature],
            hint=f"deltalog cannot evaluate {what}: {error}",
        ) from error


@contextlib.contextmanager
def _noting(what: str) -> Iterator[None]:
    """Add the rule to an error of its evaluation."""
    try:
        yield
    except DeltaError as error:
        error.add_note(f"while {what}")
        if not error.args[0].startswith("cannot cast "):
            raise
        raise error.with_message(f"{error}, while {what}") from error
