"""Completing new rows, and checking them against the table's constraints.

This module defines the order of the steps. First, columns are matched (`fit`). Then defaults,
identity values and generated columns are added. Then NOT NULL, lengths, invariants and CHECK
constraints are checked. `rules` evaluates the constraints and expressions that are SQL.

Protocol: Column Invariants, CHECK Constraints, Generated Columns, Identity Columns, Default Columns
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from deltalog._util.kernels import Array, pc
from deltalog.data.write.encode import not_null_paths, rows_where, values_at
from deltalog.data.write.fit import Fit, violation
from deltalog.errors import InvalidInputError
from deltalog.protocol.features.char_varchar import LengthLimit, length_limits
from deltalog.protocol.features.declarations import (
    Check,
    default_expressions,
    generation_expressions,
    table_checks,
)
from deltalog.protocol.features.identity_columns import (
    IdentityColumn,
    identity_columns,
    next_values,
)
from deltalog.schema import to_arrow_schema
from deltalog.schema.primitives.strings import is_bytes, is_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from deltalog.data.write.options import WriteSpec
    from deltalog.data.write.rules import Rules
    from deltalog.protocol.configuration import TableConfiguration

logger: logging.Logger = logging.getLogger(__name__)


class Enforcer:
    """Completes and checks the rows of a write, batch after batch.

    Args:
        source: the schema of the data.
        table: the table's location, for error messages.
        time_zone: the zone for converting `timestamp_ntz` values to `timestamp` columns.
        identity_starts: for each identity column, the first value to assign, instead of the value
            that follows the high water mark.
        now_ms: the value of `current_timestamp()` in defaults and rules; None means the current
            time.
        keeps_identities: whether identity values in the data are preserved, because the rows were
            in the table before.
        has_partitions: whether the data must have all partition columns; False only for MERGE,
            which omits columns on purpose.
        casts: whether columns are cast; see `fit.Fit`.
        as_before: columns whose values were not changed, so that they may violate NOT NULL.

    Attributes:
        schema: the schema of the batches that `apply` returns.
        identity_marks: for each identity column, the last value that was assigned.
        identity_starts: for each identity column, the first value that was assigned.
        sources: for each column of the table, the number of the data's column, if `apply` returns
            all columns unchanged; None if it adds, converts or checks anything.

    Raises:
        SchemaMismatchError: columns are missing, unknown, or of a wrong type.
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
        as_before: Collection[str] = (),
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
        self._check_explicit(identities, keeps_identities=keeps_identities)
        self._identities = {name: identities[name] for name in missing if name in identities}
        starts = identity_starts or {}
        self._next = {
            name: starts.get(name, column.next_value) for name, column in self._identities.items()
        }
        self.identity_marks: dict[str, int] = {}
        self.identity_starts: dict[str, int] = {}
        filled = {name: text for name, text in defaults.items() if name in missing}
        checks = _checks(configuration)
        self._rules: Rules | None = None
        if filled or generated or checks:
            # Import on demand, because few tables have rules, and importing the SQL evaluator is
            # slow.
            from deltalog.data.write.rules import Rules  # noqa: PLC0415

            self._rules = Rules(
                configuration.schema,
                missing=missing,
                defaults=filled,
                generated=generated,
                checks=checks,
                table=table,
                time_zone=time_zone,
                now_ms=now_ms,
            )
        # Do not check unchanged columns. Their rows may be older than NOT NULL, or their writer may
        # have interpreted NOT NULL for a struct's field differently.
        self._not_null = [
            path for path in not_null_paths(self._logical) if path[0] not in as_before
        ]
        self._limits = _limits(configuration)
        self._logged_names: set[str] = set()
        self._texts_of_partitions = [
            name
            for name in configuration.partition_columns
            if is_text(kind := self.schema.field(name).type) or is_bytes(kind)
        ]
        steps = (self._identities, self._rules, self._not_null, self._limits, missing)
        self.sources: tuple[int, ...] | None = None if any(steps) else self._fit.sources

    @classmethod
    def of_spec(cls, spec: WriteSpec, source: pa.Schema) -> Self:
        """Return the enforcer of a write spec, for data of the schema `source`."""
        made = cls(
            spec.configuration,
            source,
            table=spec.store.root,
            time_zone=spec.time_zone,
            identity_starts=spec.identity_starts,
            now_ms=spec.now_ms,
            has_partitions=True,
            casts=spec.casts,
        )
        made._fit.counts_rows = True
        return made

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows in the table's schema, completed and checked.

        Call this method with the batches in order, because identity values continue in the next
        batch.

        Raises:
            SchemaMismatchError: a value cannot be stored in its column.
            ConstraintViolationError: rows violate a constraint.
            InvalidInputError: an expression fails for a row (overflow, a failed cast), or an
                identity column has no values left.

        Cost: one pass of kernels per rule; a column that already has the right type is not copied.
        """
        if self.sources is not None:
            columns = [batch.column(number) for number in self.sources]
            return self._without_empty_partitions(
                pa.RecordBatch.from_arrays(columns, schema=self.schema)
            )
        num_rows = batch.num_rows
        found = self._fit.apply(batch)
        rules = self._rules
        if rules is not None:
            found |= rules.defaults(num_rows)
        for name, column in self._identities.items():
            found[name] = self._number(column, num_rows)
        for field in self.schema:
            if field.name not in found and (rules is None or field.name not in rules.generated):
                found[field.name] = pa.nulls(num_rows, field.type)
        if rules is not None:
            rules.generate(found, self.schema)
        result = pa.RecordBatch.from_arrays(
            [found[field.name] for field in self.schema], schema=self.schema
        )
        result = self._without_empty_partitions(result)
        self._check_nulls(result)
        self._check_lengths(result)
        if rules is not None:
            rules.check(result)
        return result

    @property
    def identity_next(self) -> Mapping[str, int]:
        """Return the next value of each identity column that is missing in the data."""
        return self._next

    # --- Used by the constructor

    def _check_explicit(
        self, identities: Mapping[str, IdentityColumn], *, keeps_identities: bool
    ) -> None:
        given = [
            name
            for name in self._fit.supplied
            if name in identities and not identities[name].allow_explicit_insert
        ]
        if given and not keeps_identities:
            from deltalog.expressions.render import quote_name  # noqa: PLC0415  # only for errors

            rest = ", ".join(quote_name(name) for name in self._fit.supplied if name not in given)
            raise InvalidInputError(
                f"cannot write to {self._table}: the identity column(s) "
                f"{', '.join(map(repr, given))} are always generated; leave them out of the data"
                f"{f' (in SQL, name the others: INSERT INTO t ({rest}) …)' if rest else ''}"
            )

    # --- Used for each batch

    def _number(self, column: IdentityColumn, num_rows: int) -> Array:
        first = self._next[column.name]
        values = next_values(column, first, num_rows)
        if num_rows:
            last = first + (num_rows - 1) * column.step
            self.identity_starts.setdefault(column.name, first)
            self.identity_marks[column.name] = last
            self._next[column.name] = last + column.step
        return values

    def _without_empty_partitions(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Replace empty strings in partition columns with NULL, before they are checked.

        The protocol's partition values cannot tell them apart. As in Delta Spark, NOT NULL refuses
        them, and they do not match `column = ''`.

        Protocol: Partition Value Serialization
        """
        for name in self._texts_of_partitions:
            place = batch.schema.get_field_index(name)
            values: Any = batch.column(place)
            is_empty: Any = pc.equal(pc.binary_length(values), pa.scalar(0))
            if not pc.any(is_empty).as_py():
                continue
            if name not in self._logged_names:
                self._logged_names.add(name)
                logger.warning(
                    "empty strings in the partition column %r of %s are stored as NULL",
                    *(name, self._table),
                )
            nulls = pc.if_else(is_empty, pa.scalar(None, values.type), values)
            batch = batch.set_column(place, batch.schema.field(place), nulls)
        return batch

    def _check_nulls(self, batch: pa.RecordBatch) -> None:
        for path in self._not_null:
            column = batch.column(path[0])
            values, rows = values_at(column, path[1:])
            if not values.null_count:
                continue
            is_null: Array = pc.is_null(values)
            if rows is not None:
                # Outside of lists, a NOT NULL field implies that its struct is NOT NULL, as in
                # Delta Spark. An element of a list may be a NULL struct, because Spark does not
                # check it.
                parents, _ = values_at(column, path[1:-1])
                if pa.types.is_struct(parents.type):
                    is_null = pc.and_(is_null, pc.is_valid(parents))
            bad = rows_where(is_null, rows)
            if len(bad):
                name = ".".join(path)
                raise violation(f"NOT NULL of column {name!r}", name, batch.select([path[0]]), bad)

    def _check_lengths(self, batch: pa.RecordBatch) -> None:
        for limit in self._limits:
            values, rows = values_at(batch.column(limit.path[0]), limit.path[1:])
            too_long = pc.greater(pc.utf8_length(values), pa.scalar(limit.length, pa.int32()))
            if pc.any(too_long).as_py():
                name = ".".join(limit.path)
                raise violation(
                    f"length of column {name!r} ({limit.type_name})",
                    name,
                    batch.select([limit.path[0]]),
                    rows_where(too_long, rows),
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
    """Return the defaults of top-level columns; Delta Spark allows no defaults in structs."""
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
