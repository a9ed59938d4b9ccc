"""Complete new rows, and check them against the table's constraints.

Owns the order of steps: columns are matched (`fit`); defaults, identity values and generated
columns are filled in; then NOT NULL, lengths, invariants and CHECK constraints are checked. SQL
expressions are evaluated over whole batches; if deltalog cannot evaluate one, the write fails.

Protocol: Column Invariants, CHECK Constraints, Generated Columns, Identity Columns, Default Columns
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import pyarrow as pa

from deltalog import clock
from deltalog.clock import utc_moment
from deltalog.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidInputError,
    UnsupportedFeatureError,
)
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
from deltalog.features.char_varchar import LengthLimit, length_limits
from deltalog.features.computed_columns import default_expressions, generation_expressions
from deltalog.features.constraints import CHECK, Check, table_checks
from deltalog.features.identity_columns import IdentityColumn, identity_columns, next_values
from deltalog.features.rule_sql import parse_rule
from deltalog.kernels import Array, pc
from deltalog.schema import StructType, find_field, to_arrow_schema
from deltalog.schema.collation_names import BY_BYTES
from deltalog.schema.collations import has_collations
from deltalog.schema.readable import readable_rows
from deltalog.schema.types import STRING
from deltalog.sql_session import RULES_OF_TABLES
from deltalog.write.fit import Fit
from deltalog.write.nested_paths import not_null_paths, rows_where, values_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deltalog.configuration import TableConfiguration
    from deltalog.write.spec import WriteSpec


_MAX_EXAMPLES: Final = 5
_MOST_COMPARED: Final = 1000


class _Rule(NamedTuple):
    what: str  # for messages: "CHECK constraint 'pos' (a > 0)"
    name: str
    condition: Expression  # resolved; must be true


class Enforcer:
    """Completes and checks the rows of a write, batch after batch.

    Args:
        configuration: of the table.
        source: schema of the data.
        table: location of the table, for messages.
        time_zone: applied to values of `timestamp_ntz` that go into `timestamp` columns.
        identity_starts: identity column → first value to assign, instead of the next one.
        now_ms: the value of `current_timestamp()` in defaults and rules; None is the current time.
        keeps_identities: the rows were in the table before, and keep their identity values.
        has_partitions: whether a partition column that the data lacks is refused; only MERGE leaves
            out columns on purpose.
        casts: whether columns are cast, see `fit.Fit`.

    Attributes:
        schema: of the batches that `apply` returns.
        identity_marks: identity column → the last value assigned so far.
        identity_starts: identity column → the first value assigned so far.

    Raises:
        SchemaMismatchError: columns are missing, unknown, or of a type that does not fit.
        InvalidInputError: the data has values for an identity column that is always generated.
        UnsupportedFeatureError: an expression cannot be evaluated; the message contains it.
    """

    def __init__(
        self,
        configuration: TableConfiguration,
        source: pa.Schema,
        *,
        table: str = "the table",
        time_zone: str,
        identity_starts: Mapping[str, int] | None = None,
        now_ms: int | None = None,
        keeps_identities: bool = False,
        has_partitions: bool = False,
        casts: bool = False,
    ) -> None:
        self._table = table
        self._logical = configuration.schema
        self.schema: pa.Schema = to_arrow_schema(configuration.schema)
        identities = _identities(configuration)
        generated = _generated(configuration)
        defaults = _defaults(configuration)
        self._fit = Fit(
            source,
            configuration.schema,
            optional={*identities, *generated, *defaults},
            partition_columns=configuration.partition_columns if has_partitions else (),
            time_zone=time_zone,
            casts=casts,
        )
        missing = self._fit.missing
        self._zone = time_zone
        # No rule that deltalog makes depends on the time, but other writers made such rules.
        now = utc_moment(clock.now_ms() if now_ms is None else now_ms)
        self._session = replace(RULES_OF_TABLES, now=now)
        self._constants = {
            name: self._default(name, defaults[name]) for name in missing if name in defaults
        }
        self._check_explicit(identities, keeps_identities=keeps_identities)
        self._identities = {name: identities[name] for name in missing if name in identities}
        starts = identity_starts or {}
        self._next = {
            name: starts.get(name, column.next_value) for name, column in self._identities.items()
        }
        self.identity_marks: dict[str, int] = {}
        self.identity_starts: dict[str, int] = {}
        self._generated = {
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
            *(self._check(check) for check in _checks(configuration)),
        ]
        self._not_null = list(not_null_paths(self._logical))
        self._limits = _limits(configuration)

    @classmethod
    def of_spec(cls, spec: WriteSpec, source: pa.Schema) -> Self:
        """Return the enforcer of a write spec, for data of the schema `source`."""
        return cls(
            spec.configuration,
            source,
            table=spec.store.root,
            time_zone=spec.time_zone,
            identity_starts=spec.identity_starts,
            now_ms=spec.now_ms,
            has_partitions=True,
            casts=spec.casts,
        )

    @property
    def sources(self) -> tuple[int, ...] | None:
        """Which column of the data each of the table's is, value for value; None if rows change.

        None says that `apply` fills in, converts or checks something.
        """
        changes = (
            self._constants,
            self._identities,
            self._generated,
            self._rules,
            self._not_null,
            self._limits,
        )
        return None if any(changes) or self._fit.missing else self._fit.sources

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows in the table's schema, completed and checked.

        Must be called with the batches in order: identity values continue from one to the next.

        Raises:
            SchemaMismatchError: a value does not fit its column.
            ConstraintViolationError: rows violate a constraint.
            InvalidInputError: an expression fails for a row (overflow, a failed cast), or an
                identity column has no values left.

        Cost: columns of the right type are not copied; one pass of kernels per rule.
        """
        num_rows = batch.num_rows
        found = self._fit.apply(batch)
        for name, constant in self._constants.items():
            found[name] = pa.repeat(constant, num_rows)
        for name, column in self._identities.items():
            found[name] = self._number(column, num_rows)
        for field in self.schema:
            if field.name not in found and field.name not in self._generated:
                found[field.name] = pa.nulls(num_rows, field.type)
        self._generate(found)
        result = pa.RecordBatch.from_arrays(
            [found[field.name] for field in self.schema], schema=self.schema
        )
        self._check_nulls(result)
        self._check_lengths(result)
        for rule in self._rules:
            self._check_rule(rule, result)
        return result

    @property
    def identity_next(self) -> Mapping[str, int]:
        """Identity column → the value that the next row gets; only columns that the data lacks."""
        return self._next

    # --- made once

    def _check_explicit(
        self, identities: Mapping[str, IdentityColumn], *, keeps_identities: bool
    ) -> None:
        given = [
            name
            for name in self._fit.supplied
            if name in identities and not identities[name].allow_explicit_insert
        ]
        if given and not keeps_identities:
            raise InvalidInputError(
                f"cannot write to {self._table}: the identity column(s) "
                f"{', '.join(map(repr, given))} are always generated; leave them out of the data"
            )

    def _default(self, name: str, text: str) -> Any:
        """Evaluate a default to the constant that all rows get."""
        what = f"the default of column {name!r} ({text})"
        field = find_field(self._logical, (name,))
        with _naming(self._table, what, "allowColumnDefaults"):
            resolved = resolve(parse_sql(text).cast(field.type), StructType([]), self._session)
            self._check_zone(text, resolved, StructType([]))
            one_row = pa.record_batch({"": pa.nulls(1)})
            return evaluate(resolved, one_row)[0]

    def _generation(self, name: str, text: str) -> Expression:
        """Resolve the expression of a generated column, with a cast to the column's type."""
        field = find_field(self._logical, (name,))
        what = f"the expression of the generated column {name!r} ({text})"
        with _naming(self._table, what, "generatedColumns"):
            resolved = resolve(self._parse(text).cast(field.type), self._logical, self._session)
            self._check_zone(text, resolved, self._logical)
            return resolved

    def _verification(self, name: str, text: str) -> _Rule:
        """Return the rule that given values of a generated column equal the computed ones."""
        what = f"generated column {name!r} ({text})"
        with _naming(self._table, what, "generatedColumns"):
            value, computed = Column((name,)), self._parse(text)
            is_same: Expression = value.equals_null_safe(computed)
            if find_field(self._logical, (name,)).type == STRING and has_collations(self._logical):
                # It is the same text, and not one that a collation takes for equal.
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
        """Refuse a rule that other engines would evaluate in the zone of this table's context.

        They derive filters from generated columns, and would miss the rows that UTC put elsewhere.
        """
        if self._zone not in UTC_NAMES and depends_on_zone(text, resolved, schema):
            raise InvalidInputError(
                f"its value depends on the time zone, which is {self._zone!r} here, and deltalog "
                "computes it in UTC only; write in a session, or with a default_timezone, of UTC"
            )

    def _parse(self, text: str) -> Expression:
        return parse_rule(text, self._logical)

    # --- for each batch

    def _number(self, column: IdentityColumn, num_rows: int) -> Array:
        first = self._next[column.name]
        values = next_values(column, first, num_rows)
        if num_rows:
            last = first + (num_rows - 1) * column.step
            self.identity_starts.setdefault(column.name, first)
            self.identity_marks[column.name] = last
            self._next[column.name] = last + column.step
        return values

    def _generate(self, found: dict[str, Array]) -> None:
        if not self._generated:
            return
        known = [field for field in self.schema if field.name in found]
        base = pa.RecordBatch.from_arrays(
            [found[field.name] for field in known], schema=pa.schema(known)
        )
        for name, expression in self._generated.items():
            with _noting(f"computing the generated column {name!r} of {self._table}"):
                found[name] = evaluate(expression, base)

    def _check_nulls(self, batch: pa.RecordBatch) -> None:
        for path in self._not_null:
            column = batch.column(path[0])
            values, rows = values_at(column, path[1:])
            if not values.null_count:
                continue
            is_null: Array = pc.is_null(values)
            if rows is not None:
                # As in Delta Spark, a NOT NULL field makes its struct NOT NULL as well; but not if
                # the struct is an element of a list, where Delta Spark does not check NOT NULL.
                parents, _ = values_at(column, path[1:-1])
                if pa.types.is_struct(parents.type):
                    is_null = pc.and_(is_null, pc.is_valid(parents))
            bad = rows_where(is_null, rows)
            if len(bad):
                name = ".".join(path)
                raise _violation(f"NOT NULL of column {name!r}", name, batch.select([path[0]]), bad)

    def _check_lengths(self, batch: pa.RecordBatch) -> None:
        for limit in self._limits:
            values, rows = values_at(batch.column(limit.path[0]), limit.path[1:])
            too_long = pc.greater(pc.utf8_length(values), pa.scalar(limit.length, pa.int32()))
            if pc.any(too_long).as_py():
                name = ".".join(limit.path)
                raise _violation(
                    f"length of column {name!r} ({limit.type_name})",
                    name,
                    batch.select([limit.path[0]]),
                    rows_where(too_long, rows),
                )

    def _check_rule(self, rule: _Rule, batch: pa.RecordBatch) -> None:
        with _noting(f"checking {rule.what} of {self._table}"):
            holds: Array = filter_mask(rule.condition, batch)
        if pc.all(holds, min_count=0).as_py():
            return
        shown = sorted({path[0] for path in columns(rule.condition)})
        raise _violation(
            rule.what,
            rule.name,
            batch.select(shown) if shown else batch,
            rows_where(pc.invert(holds), None),
        )


def _identities(configuration: TableConfiguration) -> dict[str, IdentityColumn]:
    if not configuration.supports("identityColumns"):
        return {}
    return {column.name: column for column in identity_columns(configuration.schema)}


def _generated(configuration: TableConfiguration) -> dict[str, str]:
    if not configuration.supports("generatedColumns"):
        return {}
    return generation_expressions(configuration.schema)


def _defaults(configuration: TableConfiguration) -> dict[str, str]:
    """Return defaults of top-level columns; as in Delta Spark, fields of structs get none."""
    if not configuration.supports("allowColumnDefaults"):
        return {}
    found = default_expressions(configuration.schema)
    return {path[0]: text for path, text in found.items() if len(path) == 1}


def _checks(configuration: TableConfiguration) -> tuple[Check, ...]:
    return table_checks(
        configuration.metadata.configuration,
        configuration.schema,
        invariants=configuration.supports("invariants"),
    )


def _limits(configuration: TableConfiguration) -> tuple[LengthLimit, ...]:
    return length_limits(configuration.schema)


def _violation(
    what: str, name: str, batch: pa.RecordBatch, rows: Array
) -> ConstraintViolationError:
    count = len(rows)
    looked_at = readable_rows(batch.take(rows.slice(0, _MOST_COMPARED)))
    examples = distinct(looked_at)[:_MAX_EXAMPLES]
    shown = ", ".join(repr(example) for example in examples)
    more = "" if len(examples) < _MAX_EXAMPLES or count == len(examples) else ", …"
    return ConstraintViolationError(
        f"cannot write the data: {what} is violated by {count} of the {batch.num_rows} rows that "
        f"were looked at: {shown}{more}",
        constraint=name,
        num_rows=count,
        examples=examples,
    )


def distinct(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows that look different, each once: the same one says nothing twice."""
    return list({repr(row): row for row in rows}.values())


@contextlib.contextmanager
def _naming(table: str, what: str, feature: str) -> Iterator[None]:
    """Turn an error of parsing a rule into an UnsupportedFeatureError that names the rule."""
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
    """Add a note to an error of evaluation, with the rule that was evaluated."""
    try:
        yield
    except DeltaError as error:
        error.add_note(f"while {what}")
        raise
