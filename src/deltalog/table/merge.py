"""`DeltaTable.merge`: a builder that collects clauses, and runs the merge with `execute`.

The builder has the same methods as in deltalake. `operations.changes` defines what clauses do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Self

from deltalog._util.argument_types import checks_types, shortened
from deltalog._util.builders import RunsOnce
from deltalog._util.cards import card, folding, grid, plain
from deltalog._util.readable import counted
from deltalog._util.similar_names import SimilarNames, suggests_arguments
from deltalog.data.write.same_keys import with_same_keys
from deltalog.data.write.source import is_rereadable
from deltalog.data.write.typed_values import with_typed_values
from deltalog.errors import InvalidInputError
from deltalog.expressions import Expression
from deltalog.expressions.render import shown_sql
from deltalog.operations.arguments import check_constants
from deltalog.operations.changes.merge.source import MergeSource
from deltalog.operations.changes.request import Action, Clause, When
from deltalog.operations.execute import explain
from deltalog.schema.columns import naming_the_attempt
from deltalog.table.inspect.display import ShownText

if TYPE_CHECKING:
    from deltalog._util.cards import Progress
    from deltalog.operations.merge import Merge
    from deltalog.schema import StructType
    from deltalog.table.creating import OperationTarget


def check_condition(predicate: object) -> str | Expression:
    """Return the condition of a merge; raise InvalidInputError if it is of another type."""
    if not isinstance(predicate, str | Expression):
        hint = ""
        if isinstance(predicate, list | tuple) and all(isinstance(one, str) for one in predicate):
            hint = f"; to merge by key columns, use upsert(data, {list(predicate)!r})"
        elif isinstance(predicate, list) or hasattr(predicate, "columns"):
            hint = "; the rows come first: merge(rows, condition)"
        raise _no_condition(predicate, hint)
    if isinstance(predicate, str) and not predicate.strip():
        raise _no_condition(predicate, "; write_deltalake(table, rows, mode='append') adds rows")
    return predicate


def _no_condition(predicate: object, hint: str) -> InvalidInputError:
    return InvalidInputError(
        f"cannot merge with the predicate {shortened(predicate)}: expected SQL or an expression "
        f"over both rows, such as 'source.id = target.id'{hint}"
    )


def check_source(source: Any, schema: StructType) -> Any:
    """Return the source of a merge, with values of maps as in the schema of the table.

    Raises:
        InvalidInputError: the source is the location of a table, or a row lacks a key of another
            row.
    """
    if source is None:
        raise InvalidInputError("cannot merge rows of None: expected rows, such as a dataframe")
    if isinstance(source, str | PurePath):
        raise InvalidInputError(
            f"cannot merge rows of {str(source)!r}: expected rows, found a location; pass "
            f"DeltaTable({str(source)!r}) for the rows of a table"
        )
    return with_typed_values(with_same_keys(source, schema), schema)


_MEANT: Final = {
    "whenMatchedUpdate": "when_matched_update(updates)",
    "whenMatchedUpdateAll": "when_matched_update_all()",
    "whenMatchedDelete": "when_matched_delete()",
    "whenNotMatchedInsert": "when_not_matched_insert(updates)",
    "whenNotMatchedInsertAll": "when_not_matched_insert_all()",
    "whenNotMatchedBySourceUpdate": "when_not_matched_by_source_update(updates)",
    "whenNotMatchedBySourceDelete": "when_not_matched_by_source_delete()",
}
"""Methods of the builder of Spark."""


@checks_types
@suggests_arguments
class TableMerger(SimilarNames, RunsOnce):
    """A builder of a merge; nothing runs before `execute`.

    A builder with clauses that is freed without a call of `execute` causes a `RuntimeWarning`.

    There are three groups of clauses: matched, not matched, and not matched by source. In each
    group, the first clause whose predicate is true for a row applies. New values are Spark SQL
    strings, expressions or Python values.

    Args:
        target: the table, or a transaction on the table.
        merge: the merge without clauses. Its source has any type that `write_deltalake` accepts.
        options: options of `DeltaTable.do`.
    """

    _meant = _MEANT

    def __init__(self, target: OperationTarget, merge: Merge, **options: Any) -> None:
        self._target = target
        self._merge = merge
        self._kept = ExitStack()  # deletes the copy of a source that can be read only once
        self._is_merged = False
        self._is_tried = False
        self._options = options

    def __repr__(self) -> str:
        """Show the target, the condition, the number of clauses, and whether the merge has run."""
        request = self._merge.request
        number = counted(len(request.clauses), "clause")
        return (
            f"TableMerger(into {self._target!r}, on {_shown_sql(request.condition)!r}, {number}, "
            f"{self._state})"
        )

    def _repr_html_(self) -> str:
        """Return the notebook card: what the merge would do, and whether it has run."""
        request = self._merge.request
        facts = [("into", repr(self._target)), ("on", _shown_sql(request.condition))]
        clauses = [
            (f"{clause.when.value}, {clause.action.value}", _shown_condition(clause.condition))
            for clause in request.clauses
        ]
        number = counted(len(clauses), "clause")
        return card("Merge", plain(self._state), grid(facts), folding(number, grid(clauses)))

    def _left_undone(self) -> str | None:
        if self._is_tried or not self._merge.request.clauses:
            return None
        return f"the merge into {self._target!r} was never run: call execute() after the clauses"

    @property
    def _state(self) -> str:
        return "has run" if self._is_merged else "not run yet: call execute()"

    def when_matched_update(
        self, updates: Mapping[str, Any], predicate: str | Expression | None = None
    ) -> Self:
        """Update rows of the table that match a source row.

        Args:
            updates: column of the table → SQL over both rows, expression or Python value.
            predicate: condition on both rows. The clause applies only to rows for which it is true.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://merge_update", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://merge_update")
            >>> merge = table.merge([{"id": 1, "n": 1}], "target.id = source.id")
            >>> merge = merge.when_matched_update({"n": "target.n + source.n"}, "target.n < 100")
            >>> merge.execute()["num_target_rows_updated"]
            1
            >>> table.to_arrow().sort_by("id").to_pylist()
            [{'id': 1, 'n': 6}, {'id': 2, 'n': 7}]
        """
        return self._with(When.MATCHED, Action.UPDATE, predicate, values=updates)

    def when_matched_update_all(
        self,
        predicate: str | Expression | None = None,
        except_cols: str | Sequence[str] | None = None,
    ) -> Self:
        """Update rows of the table that match a source row, with all values of the source row.

        Columns are assigned by name. Columns that the source lacks keep their values. Columns that
        the table lacks are ignored, unless the merge has `merge_schema=True`.

        Args:
            predicate: condition on both rows. The clause applies only to rows for which it is true.
            except_cols: columns of the source that are not updated.
        """
        return self._with(When.MATCHED, Action.UPDATE, predicate, except_cols=except_cols)

    def when_matched_delete(self, predicate: str | Expression | None = None) -> Self:
        """Delete rows of the table that match a source row.

        Args:
            predicate: condition on both rows. The clause applies only to rows for which it is true.
        """
        return self._with(When.MATCHED, Action.DELETE, predicate)

    def when_not_matched_insert(
        self, updates: Mapping[str, Any], predicate: str | Expression | None = None
    ) -> Self:
        """Insert rows of the source that match no row of the table.

        Args:
            updates: column of the table → SQL over the source row, expression or Python value.
                Other columns get their default value, or NULL.
            predicate: condition on the source row. The clause applies only to rows for which it is
                true.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://merge_insert", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://merge_insert")
            >>> merge = table.merge([{"id": 3}], "target.id = source.id")
            >>> merge = merge.when_not_matched_insert({"id": "source.id", "n": 0})
            >>> merge.execute()["num_target_rows_inserted"]
            1
        """
        return self._with(When.NOT_MATCHED, Action.INSERT, predicate, values=updates)

    def when_not_matched_insert_all(
        self,
        predicate: str | Expression | None = None,
        except_cols: str | Sequence[str] | None = None,
    ) -> Self:
        """Insert rows of the source that match no row of the table, with all their values.

        Columns are assigned by name. Columns that the source lacks get their default value, or
        NULL. Columns that the table lacks are ignored, unless the merge has `merge_schema=True`.

        Args:
            predicate: condition on the source row. The clause applies only to rows for which it is
                true.
            except_cols: columns of the source that are not inserted.
        """
        return self._with(When.NOT_MATCHED, Action.INSERT, predicate, except_cols=except_cols)

    def when_not_matched_by_source_update(
        self, updates: Mapping[str, Any], predicate: str | Expression | None = None
    ) -> Self:
        """Update rows of the table that match no row of the source.

        Args:
            updates: column of the table → SQL over the table row, expression or Python value.
            predicate: condition on the table row. The clause applies only to rows for which it is
                true.
        """
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.UPDATE, predicate, values=updates)

    def when_not_matched_by_source_delete(self, predicate: str | Expression | None = None) -> Self:
        """Delete rows of the table that match no row of the source.

        Args:
            predicate: condition on the table row. The clause applies only to rows for which it is
                true.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://merge_delete", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://merge_delete")
            >>> merge = table.merge([{"id": 1}], "target.id = source.id")
            >>> merge.when_not_matched_by_source_delete().execute()["num_target_rows_deleted"]
            1
            >>> table.to_arrow().to_pylist()
            [{'id': 1, 'n': 5}]
        """
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, predicate)

    def execute(self, *, dry_run: bool = False, progress: Progress | None = None) -> dict[str, Any]:
        """Run the merge and commit it.

        Args:
            dry_run: whether to only count the rows and files that would change; new values are not
                computed.
            progress: see `DeltaTable`.

        Returns:
            Counts of rows and files, and times in milliseconds. The result of a dry run also
            contains `files`: an Arrow table of the files that would change, with the kind of change
            and its reason.

        Raises:
            AmbiguousMergeError: several source rows would change the same table row.
            InvalidInputError, SchemaMismatchError: clauses, names or types contradict each other;
                or the source can be read only once, and was already merged.
            ConstraintViolationError: new rows violate a constraint of the table.

        Cost: reads the columns of the conditions, from files that may match the source's keys. Then
        reads all columns of the row groups with changed rows, or of the whole files without
        deletion vectors. A source that is larger than memory is written to a temporary file.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://merge_execute", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://merge_execute")
            >>> merge = table.merge([{"id": 1}], "target.id = source.id").when_matched_delete()
            >>> merge.execute(dry_run=True)["num_target_rows_deleted"], table.count()
            (1, 2)
            >>> merge.execute()["num_target_rows_deleted"], table.count()
            (1, 1)
        """
        self._is_tried = True
        found: dict[str, Any] = self._target.do(
            self._with_rows(), dry_run=dry_run, progress=progress, **self._options
        )
        if not dry_run:
            self._is_merged = True
            self._kept.close()
        return found

    def explain(self) -> str:
        """Return the plan of the merge: keys, conditions, and the files that it would read."""
        self._is_tried = True
        with naming_the_attempt("explain a merge into", self._target.snapshot.store.root):
            plan = explain(self._with_rows(), self._target.snapshot, self._target.engine)
        return ShownText(plan)

    def _with_rows(self) -> Merge:
        """Return the merge. A source that can be read only once is copied, for further calls."""
        source = self._merge.request.source
        if is_rereadable(source):
            return self._merge
        if not isinstance(source, MergeSource):
            kept = self._kept.enter_context(self._target.engine.open_merge_source(source))
            self._merge = self._merge.with_source(kept)
        elif self._is_merged:
            raise InvalidInputError(
                f"cannot merge into {self._target!r} again: the source can be read only once; "
                "begin a new merge with a new source"
            )
        return self._merge

    def _with(
        self,
        when: When,
        action: Action,
        predicate: str | Expression | None,
        *,
        values: Mapping[str, Any] | None = None,
        except_cols: str | Sequence[str] | None = None,
    ) -> Self:
        tried, self._is_tried = self._is_tried, True  # an error in the next lines says enough
        if values is not None and not isinstance(values, Mapping):
            raise InvalidInputError(
                f"cannot {action.value} with {shortened(values)}: expected a dictionary "
                "(column: value)"
            )
        if isinstance(predicate, Mapping):
            raise InvalidInputError(
                f"cannot {action.value} with the condition {predicate!r}: expected SQL or an "
                "expression of deltalog; "
                + (
                    "a deletion has no new values"
                    if action is Action.DELETE
                    else "pass new values as the first argument"
                )
            )
        if predicate is not None and not isinstance(predicate, str | Expression):
            raise InvalidInputError(
                f"cannot {action.value} with the condition {shortened(predicate)}: expected SQL or "
                "an expression of deltalog, such as 'source.id > 1'"
            )
        if isinstance(predicate, str) and not predicate.strip():
            raise InvalidInputError(
                f"cannot {action.value} with an empty condition: for all rows, leave it out"
            )
        check_constants(values or {}, self._target.snapshot.configuration.schema)
        left_out = [except_cols] if isinstance(except_cols, str) else except_cols or ()
        clause = Clause(
            when=when,
            action=action,
            values=values,
            except_columns=tuple(left_out),
            condition=predicate,
        )
        self._merge = self._merge.with_clause(clause)
        self._is_tried = tried
        return self


def _shown_condition(condition: str | Expression | None) -> str:
    return "for each such row" if condition is None else f"if {_shown_sql(condition)}"


def _shown_sql(condition: str | Expression) -> str:
    return condition if isinstance(condition, str) else shown_sql(condition)
