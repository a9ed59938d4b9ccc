"""The methods of `DeltaTable` that change rows, commit, and work with branches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from deltalog._util.argument_types import checks_types, shortened
from deltalog._util.cards import Progress
from deltalog._util.readable import counted
from deltalog._util.similar_names import suggests_arguments
from deltalog.errors import BranchExistsError, InvalidInputError
from deltalog.operations import arguments
from deltalog.schema.columns import find_field, naming_the_attempt
from deltalog.table.inspect.display import ShownList, as_facts
from deltalog.table.reading import ReadableTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import timedelta

    from deltalog.data.write.options import WriterProperties, WriteSpec
    from deltalog.data.write.source import Rows
    from deltalog.data.write.written import WrittenFiles
    from deltalog.expressions import Expression
    from deltalog.log.branches import Branch
    from deltalog.operations.engine import Engine
    from deltalog.operations.operation import Operation, Outcome, OutcomeT_co
    from deltalog.schema import Schema
    from deltalog.table.appender import Appender
    from deltalog.table.branches import PublishOutcome
    from deltalog.table.merge import TableMerger
    from deltalog.table.transaction import TableTransaction
    from deltalog.transaction import (
        AddAction,
        CommitOptions,
        CommitProperties,
        PendingTransaction,
        PostCommitHookProperties,
        RemoveAction,
    )
    from deltalog.transaction.commit import Committed, Ran

    T = TypeVar("T")
    ResultT = TypeVar("ResultT")
    Parameters = Sequence[object] | Mapping[str, object] | None


@checks_types
@suggests_arguments
class ChangeableTable(ReadableTable):
    """A table with the methods of `DeltaTable` that change rows, commit, and work with branches."""

    def do(
        self,
        operation: Operation[Outcome[ResultT]],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        progress: Progress | None = None,
        *,
        dry_run: bool = False,
        on_conflict: Literal["retry", "raise"] = "retry",
    ) -> ResultT:
        """Run an operation of `deltalog.operations`, and load the committed version.

        Args:
            operation: the operation.
            on_conflict: `retry` stages the operation again after a conflict; `raise` raises.

        Returns:
            The operation's result; an empty dictionary if the application transaction of the commit
            is already recorded.

        Raises:
            InvalidInputError: this object was opened at an old version.
        """
        options = commit_options(commit_properties, post_commithook_properties, on_conflict)
        if dry_run:
            from deltalog.operations.execute import preview

            # A dry run uses the latest version, unless the table was opened at an old version.
            is_old = self._travelled or not operation.needs_latest
            seen = self._snapshot if is_old else self._snapshot.refresh(same_table=True)
            return as_facts(cast("ResultT", preview(operation, seen, self.engine)), operation.name)
        done = self.execute(operation, options, progress=progress)
        found = cast("ResultT", {}) if done.value is None else done.value.result()
        return as_facts(found, operation.name)

    def execute(
        self,
        operation: Operation[OutcomeT_co],
        options: CommitOptions | None = None,
        *,
        progress: Progress | None = None,
        engine: Engine | None = None,
        is_fresh: bool = False,
    ) -> Ran[OutcomeT_co]:
        """Run an operation, load the committed version, and return outcome and commit.

        See `execute_on` for the arguments.
        """
        from deltalog.operations.execute import execute_on

        self._check_latest(operation.name)
        if (transactions := sys.modules.get("deltalog.table.transaction")) is not None:
            transactions.warn_of_block(self, operation.name)
        options, engine = options or commit_options(), engine or self.engine
        done = execute_on(
            operation, self._snapshot, engine, options, is_fresh=is_fresh, progress=progress
        )
        self._show(done.committed)
        return done

    def run(
        self,
        operation: str,
        stage: Callable[[PendingTransaction], T],
        *,
        parameters: Mapping[str, Any] | None = None,
        refresh: bool = True,
        on_conflict: Literal["retry", "raise"] = "retry",
        commit_properties: CommitProperties | None = None,
        hooks: PostCommitHookProperties | None = None,
        skip_empty: bool = False,
    ) -> Ran[T]:
        """Stage an operation with a function of your own, commit it, and load its version.

        The interface of `PendingTransaction` is not stable.

        Args:
            operation: name of the operation in the history.
            stage: stages the operation. After a conflict, it is called again on the newest version.
            parameters: parameters of the operation in the history.
            refresh: whether to refresh the table first; not necessary for an append.
            on_conflict: see `do`.
            hooks: the `post_commithook_properties`.
            skip_empty: whether to skip the commit if nothing was staged.

        Raises:
            InvalidInputError: this object was opened at an old version.
        """
        from deltalog.operations.operation import CustomOperation
        from deltalog.transaction.commit import Ran

        custom = CustomOperation(
            name=operation,
            plan=stage,
            parameters=parameters,
            needs_latest=refresh,
            skips_empty=skip_empty,
        )
        options = commit_options(commit_properties, hooks, on_conflict)
        done = self.execute(custom, options)
        return Ran(value=None if done.value is None else done.value.value, committed=done.committed)

    def _show(self, committed: Committed) -> None:
        """Make the version of a new commit the current version of this object."""
        self._snapshot = committed.snapshot
        self._travelled = False

    def transaction(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> TableTransaction:
        """Begin a transaction with one commit: `with table.transaction() as tx: tx.append(…)`.

        All operations see the table as it was at the beginning of the transaction.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://transaction", [{"id": 1}])
            >>> table = DeltaTable("memory://transaction")
            >>> with table.transaction() as tx:
            ...     tx.delete("id = 1")
            ...     tx.append([{"id": 2}])
            >>> table.version(), table.count()
            (1, 1)
        """
        from deltalog.table.transaction import TableTransaction

        self._check_latest("begin a transaction")
        options = commit_options(commit_properties, post_commithook_properties)
        return TableTransaction(self, options)

    def branch(
        self,
        name: str,
        *,
        version: int | None = None,
        exist_ok: bool = False,
        expires_after: timedelta | None = None,
    ) -> Self:
        """Create a branch, and return it as a table of its own; a preview feature.

        Commits to the branch are not visible in main until `publish()`. Operations, SQL, engines
        and time travel work on a branch; `DeltaTable("table@name")` opens it. Data files are in the
        table's directory, and nothing is copied. `vacuum` keeps the files of branches, but the
        vacuum of another engine deletes them after its retention period.

        Args:
            name: letters, digits, `_` and `-`.
            version: the version of main at which the branch starts. None means the version at
                which this object was opened, or the latest.
            exist_ok: whether to open the branch if it exists, at the same `version` if it is given.
            expires_after: after this time, vacuum deletes the branch; None means never.

        Raises:
            BranchExistsError: the branch exists.
            InvalidInputError: the name is not valid, the table is a branch, or the existing branch
                starts at another version.

        Cost: writes a checkpoint of the version, which lists its files.
        """
        from deltalog.log.branches import find_branch, get_branch, on_branch
        from deltalog.table.branches import create_branch

        store = self._snapshot.store
        branch = find_branch(store, name) if exist_ok else None
        if branch is None:
            try:
                start = self.version() if version is None and self._travelled else version
                branch = create_branch(self, name, version=start, expires_after=expires_after)
            except BranchExistsError:
                if not exist_ok:
                    raise
                branch = get_branch(store, name)  # another caller was faster
        if version is not None and branch.base_version != version:
            raise InvalidInputError(
                f"cannot open the branch {name!r} of {store.root} with version={version}: it "
                f"exists, and starts at version {branch.base_version}; leave version out, or "
                "choose another name"
            )
        return type(self).from_context(on_branch(self._snapshot.context, branch), self._engine)

    def branches(self) -> list[Branch]:
        """Return the branches of the table, in the order of their names.

        Cost: one listing, and one request for each branch.
        """
        from deltalog.log.branches import list_branches, on_main
        from deltalog.schema.check import readable_moment

        found = list_branches(on_main(self._snapshot.context).store)
        return ShownList(
            found,
            title=counted(len(found), "branch", "branches"),
            names=("name", "starts at version", "created", "expires", "state"),
            row_of=lambda one: (
                one.name,
                one.base_version,
                readable_moment(one.created_ms),
                None if one.expires_ms is None else readable_moment(one.expires_ms),
                one.state.value,
            ),
        )

    def drop_branch(self, name: str) -> None:
        """Delete a branch by its name, even if its log is damaged; see `discard`.

        Raises:
            BranchNotFoundError: there is no branch with this name.
        """
        from deltalog.log.branches import get_branch, on_main
        from deltalog.table.branches import drop_branch

        main = on_main(self._snapshot.context)
        drop_branch(main, get_branch(main.store, name))

    def publish(
        self,
        checks: Sequence[str | Callable[[Self], object]] = (),
        *,
        commit_properties: CommitProperties | None = None,
    ) -> PublishOutcome:
        """Commit the net changes of this branch to main, as one version, and delete the branch.

        Files and rows that the branch has changed several times appear once. The conflict rules are
        those of any commit: rows that main has changed in the meantime must not be rows that the
        branch has changed or read. After a conflict, the branch remains.

        Args:
            checks: conditions in SQL that all rows of the branch must match (NULL does not match),
                and functions of the branch, which raise `AssertionError`, or return False or a
                string, if it must not be published.

        Raises:
            AuditFailedError: a check fails; the error has examples, and main is unchanged.
            BranchNotFoundError: the branch was discarded.
            CommitConflictError: a commit of main conflicts with the branch.
            DataFileMissingError: files of the branch no longer exist.
            InvalidInputError: this table is no branch, or the branch has expired.
            VersionNotFoundError: main no longer has the version at which the branch starts.

        Cost: reads the file lists of both versions and the commits of both since the branch began;
        one request for each new file.
        """
        from deltalog.table.branches import publish

        return publish(self, checks, commit_properties)

    def discard(self) -> None:
        """Delete this branch; `vacuum(full=True)` deletes its data files.

        Raises:
            BranchNotFoundError: the branch was published or discarded.
            InvalidInputError: this table is no branch.
        """
        from deltalog.table.branches import discard

        discard(self)

    def audit(
        self,
        checks: Sequence[str | Callable[[Self], object]] = (),
        *,
        name: str | None = None,
    ) -> AbstractContextManager[Self]:
        """Write, audit, publish: `with table.audit(["price > 0"]) as draft: draft.merge(…)`.

        The block gets a new branch. After the block, the branch is checked and published, see
        `publish`, and this object shows the new version. If the block raises, the branch is
        discarded. If a check fails or the publish conflicts, the branch remains.

        Args:
            checks: see `publish`.
            name: name of the branch; None means a random name.
        """
        from deltalog._util.builders import Block
        from deltalog.table.branches import audited

        return Block(
            audited(self, checks, name),
            "audit(…) was never used: it checks what its block writes, `with table.audit([…]) as "
            "draft:`; count(condition) checks the rows of the table",
            f"{self!r}.audit(), used as `with table.audit([…]) as draft:`",
        )

    def appender(
        self,
        *,
        wait_ms: float = 2.0,
        most_rows: int = 1_000_000,
        most_bytes: int = 128 * 1024 * 1024,
        waiting_bytes: int = 256 * 1024 * 1024,
        upsert: bool | str | Sequence[str] = False,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> Appender:
        """Return an appender, which commits the rows of many threads or tasks in few versions.

        `with table.appender() as appender: version = appender.append(rows).result()`; in a
        coroutine: `await appender.append_async(rows)`. Each caller gets its own result: the version
        that durably contains its rows, or an error. At the end of the block, all queued rows are
        committed.

        Args:
            wait_ms: how long the first rows of a version wait for further rows. With 0, they do not
                wait, but rows that arrive during a commit still share the next version.
            most_rows: maximum number of rows in a version. The rows of one call are never split, so
                they may exceed it.
            most_bytes: maximum size of the rows of a version in memory, in bytes. The rows of one
                call may exceed it.
            waiting_bytes: maximum size of uncommitted rows, in bytes. At this limit, callers block.
            upsert: columns that identify a row. Rows with an existing key then replace the row of
                the table, see `upsert`; of rows with the same key in one version, the last one
                counts. True means the columns of the key index. False appends all rows.

        Raises:
            InvalidInputError: there is no such column; or `upsert` is True, but the table has no
                key index.

        Cost: for each version, one commit, and one data file for each partition; with `upsert`, one
            merge.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://appender", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://appender")
            >>> with table.appender() as appender:
            ...     version = appender.append([{"id": 3, "n": 9}]).result()
            >>> version, table.count()
            (1, 3)
        """
        from deltalog.table.appender import Appender, AppendWindow

        self._check_latest("append")
        window = AppendWindow(
            wait_ms=wait_ms,
            most_rows=most_rows,
            most_bytes=most_bytes,
            waiting_bytes=waiting_bytes,
        )
        options = commit_options(commit_properties, post_commithook_properties)
        key = self._upsert_key(upsert=upsert)
        arguments.check_key(key, self.schema())
        with naming_the_attempt("upsert rows of", self.table_uri):
            for name in key:
                find_field(self.schema(), (name,))
        return Appender(self, window, writer_properties=writer_properties, options=options, key=key)

    def _upsert_key(self, *, upsert: bool | str | Sequence[str]) -> Sequence[str]:
        """Return the key columns of an appender; none if it does not upsert."""
        if isinstance(upsert, str):
            return (upsert,)
        if not isinstance(upsert, bool):
            if not upsert:
                raise InvalidInputError(
                    f"cannot upsert rows of {self.snapshot.store.root} with upsert={upsert!r}: "
                    "expected the columns that identify a row; upsert=False appends all rows"
                )
            return tuple(upsert)
        if not upsert:
            return ()
        from deltalog.data.scan.rows import require_library

        require_library("numpy", extra="pandas")
        from deltalog.data.keys.hashing import key_of

        key = key_of(self.snapshot.configuration)
        if key is None:
            raise InvalidInputError(
                f"cannot upsert by the key index of {self.snapshot.store.root}: the table has "
                "none; pass the columns that identify a row, such as upsert='id', or set a key "
                "with alter.set_key_index"
            )
        return key.names

    def delete(
        self,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        parameters: Parameters = None,
        use_deletion_vectors: bool | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Delete the rows for which a predicate is true; without a predicate, delete all rows.

        Returns:
            Counts of rows and files, and times in milliseconds.

        Cost: after pruning, reads the predicate's columns of the remaining files. Then writes
        deletion vectors of a few kilobytes, or rewrites the files with matching rows.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://delete", [{"id": 1}, {"id": 2}])
            >>> DeltaTable("memory://delete").delete("id = ?", parameters=[1])["num_deleted_rows"]
            1
        """
        from deltalog.operations.changes.file_options import FileOptions
        from deltalog.operations.delete import Delete

        arguments.check_given(predicate)
        operation = Delete.where(
            predicate,
            parameters=parameters,
            use_deletion_vectors=use_deletion_vectors,
            file_options=FileOptions(writer_properties=writer_properties),
        )
        return self.do(
            operation, commit_properties, post_commithook_properties, progress, dry_run=dry_run
        )

    def update(  # noqa: PLR0913  # callers need each parameter
        self,
        updates: Mapping[str, Any] | None = None,
        new_values: Mapping[str, object] | None = None,
        predicate: Any = None,
        writer_properties: WriterProperties | None = None,
        error_on_type_mismatch: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        parameters: Parameters = None,
        use_deletion_vectors: bool | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Update the rows for which a predicate is true; without a predicate, update all rows.

        Args:
            updates: column → Spark SQL string or expression, computed from the values before the
                update. A number, date or None is a value. A dotted name is a field of a struct. SQL
                may use `parameters`: the first values of a list are for `?` in the updates, the
                others for `?` in the predicate.
            new_values: column → Python value. A string is never interpreted as SQL.
            error_on_type_mismatch: whether to raise for a value that cannot be converted to the
                column's type. False replaces such values with NULL.

        Returns:
            Counts of rows and files, and times in milliseconds.

        Raises:
            InvalidInputError: a column does not exist, or cannot be assigned.
            ConstraintViolationError: new rows violate a constraint of the table.

        Cost: after pruning, reads the predicate's columns of the remaining files. Then reads all
        columns of the row groups with matching rows, or of the whole files without deletion
        vectors.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://update", [{"id": 1, "price": 5.0}])
            >>> table = DeltaTable("memory://update")
            >>> table.update({"price": "price * 2"}, predicate="id = 1")["num_updated_rows"]
            1
        """
        from deltalog.operations.changes.file_options import FileOptions
        from deltalog.operations.update import Update

        arguments.check_given(predicate)
        with naming_the_attempt("run UPDATE on", self.table_uri):
            values = arguments.as_updates(updates, new_values, parameters, self.schema())
        operation = Update.where(
            predicate,
            values,
            parameters=arguments.left_for_predicate(parameters, predicate, updates),
            error_on_type_mismatch=error_on_type_mismatch,
            use_deletion_vectors=use_deletion_vectors,
            file_options=FileOptions(writer_properties=writer_properties),
        )
        return self.do(
            operation, commit_properties, post_commithook_properties, progress, dry_run=dry_run
        )

    def merge(  # noqa: PLR0913, PLR0917  # deltalake's parameters, and more
        self,
        source: Rows,
        predicate: str | Expression,
        source_alias: str | None = None,
        target_alias: str | None = None,
        merge_schema: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        error_on_type_mismatch: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        writer_properties: WriterProperties | None = None,
        streamed_exec: bool = True,  # noqa: ARG002, FBT001, FBT002  # deltalake's signature
        max_spill_size: int | None = None,  # noqa: ARG002  # deltalake's signature
        max_temp_directory_size: int | None = None,  # noqa: ARG002  # deltalake's signature
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        parameters: Mapping[str, object] | None = None,
        use_deletion_vectors: bool | None = None,
    ) -> TableMerger:
        """Begin a merge: update, delete and insert rows of the table with the rows of a source.

        Add clauses to the result, then call `execute()`.

        Args:
            source: rows of any type that `write_deltalake` accepts; they may be larger than memory.
                Dicts must all have the same keys.
            predicate: the condition for a match of a source row and a table row, as a Spark SQL
                string or an expression.
            source_alias: additional name of the source in SQL; `source` is always a name.
            target_alias: additional name of the table in SQL; `target` is always a name.
            merge_schema: whether to add columns to the table that only the source has.
            error_on_type_mismatch: whether to raise for a value that cannot be converted to the
                column's type. False replaces such values with NULL.
            streamed_exec: ignored; accepted for compatibility with deltalake.
            max_spill_size: ignored; accepted for compatibility with deltalake.
            max_temp_directory_size: ignored; accepted for compatibility with deltalake.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://merge", [{"id": 1, "price": 5.0}])
            >>> merge = DeltaTable("memory://merge").merge(
            ...     [{"id": 1, "price": 6.0}, {"id": 2, "price": 7.0}], "target.id = source.id"
            ... )
            >>> merge = merge.when_matched_update_all().when_not_matched_insert_all()
            >>> merge.execute()["num_target_rows_inserted"]
            1
        """
        from deltalog.operations.changes.file_options import FileOptions
        from deltalog.operations.changes.request import ChangeRequest
        from deltalog.operations.merge import Merge
        from deltalog.table.merge import TableMerger, check_condition, check_source

        request = ChangeRequest(
            condition=check_condition(predicate),
            clauses=(),
            source=check_source(source, self.schema()),
            source_alias=source_alias,
            target_alias=target_alias,
            merge_schema=merge_schema,
            error_on_type_mismatch=error_on_type_mismatch,
            parameters=parameters,
            use_deletion_vectors=use_deletion_vectors,
            file_options=FileOptions(writer_properties=writer_properties),
        )
        return TableMerger(
            self,
            Merge(request),
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )

    def upsert(
        self,
        data: Rows,
        key: str | Sequence[str],
        *,
        null_safe: bool = False,
        merge_schema: bool = False,
        commit_properties: CommitProperties | None = None,
        progress: Progress | None = None,
    ) -> dict[str, Any]:
        """Update the rows whose key is in the data, and insert rows with new keys.

        Args:
            data: rows of any type that `write_deltalake` accepts. Values are converted to the
                table's types as in a write. Dicts must all have the same keys.
            key: the columns that identify a row.
            null_safe: whether NULL keys match each other. Otherwise rows with a NULL key are always
                inserted.
            merge_schema: whether to add columns to the table that only the data has.

        Returns:
            The counts of a merge; see `TableMerger.execute`.

        Raises:
            SchemaMismatchError: a value cannot be stored in its column without loss.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://upsert", [{"id": 1, "price": 5.0}])
            >>> rows = [{"id": 1, "price": 6.0}, {"id": 2, "price": 7.0}]
            >>> DeltaTable("memory://upsert").upsert(rows, "id")["num_target_rows_inserted"]
            1
        """
        from deltalog.operations.merge import upsert
        from deltalog.table.merge import TableMerger, check_source

        arguments.check_key(key, self.schema())
        data = check_source(data, self.schema())
        operation = upsert(data, key, null_safe=null_safe, merge_schema=merge_schema)
        merger = TableMerger(self, operation, commit_properties=commit_properties)
        return merger.execute(progress=progress)

    def truncate(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> dict[str, Any]:
        """Remove all rows without reading them.

        Returns:
            Number and size of the removed files.
        """
        from deltalog.operations.delete import Truncate

        given: object = commit_properties
        if isinstance(given, str):
            raise InvalidInputError(
                f"cannot truncate with {shortened(given)}: truncate deletes all rows; "
                f"delete({shortened(given)}) "
                "deletes those of a condition"
            )
        found = self.do(Truncate(), commit_properties, post_commithook_properties)
        counts = {"num_removed_files": 0, "num_removed_bytes": 0, **found}
        return as_facts(counts, "TRUNCATE")

    def write_spec(
        self,
        *,
        target_file_size: int | None = None,
        writer_properties: WriterProperties | None = None,
    ) -> WriteSpec:
        """Return a picklable description of the table, for `write_files` on another machine."""
        from deltalog.operations.changes.file_options import FileOptions

        options = FileOptions(
            target_file_size_bytes=target_file_size,
            writer_properties=writer_properties,
            casts=True,
        )
        return options.spec(self._snapshot.context, self._snapshot.configuration)

    def commit(
        self,
        written: WrittenFiles | Sequence[WrittenFiles],
        *,
        mode: Literal["append", "overwrite"] = "append",
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> int:
        """Commit files that `write_files` has written, on any machine; return the new version.

        With application transactions in `commit_properties`, a repeated call is skipped.

        Args:
            written: the result of one `write_files` call, or a list of results.
            mode: `append`, or `overwrite`, which removes all existing rows.

        Raises:
            InvalidInputError: the files were written for another table or schema.
            CommitFailedError: a concurrent commit conflicts. The files are not deleted, so that you
                can commit them again.
        """
        from deltalog.data.write.written import WrittenFiles
        from deltalog.operations.commit_files import CommitFiles

        parts = [written] if isinstance(written, WrittenFiles) else list(written)
        options = commit_options(commit_properties, post_commithook_properties)
        return self.execute(CommitFiles(parts=parts, mode=mode), options).committed.version

    def create_write_transaction(
        self,
        actions: Sequence[AddAction | RemoveAction],
        mode: str,
        schema: Schema | Any,
        partition_by: Sequence[str] | str | None = None,
        partition_filters: Any = None,
        *,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Commit Parquet files that already exist in the table's directory.

        The files are not read, so the caller is responsible for their columns and statistics.
        `commit` is the safe alternative for files of `write_files`.

        Args:
            actions: the files to add (`deltalog.transaction.AddAction`) and, with `append`, to
                remove (`RemoveAction`).
            mode: `append`, or `overwrite`, which removes the existing files.
            schema: schema of the files; it must be the table's schema.
            partition_by: the table's partition columns.
            partition_filters: with `overwrite`: remove only the files of these partitions.

        Raises:
            InvalidInputError: an action is not valid for the table; or the table has constraints,
                generated columns or identity columns, which cannot be checked here.
            DataFileMissingError: a file does not exist.

        Cost: one request for each added file.
        """
        from deltalog.operations.commit_files import CommitActions
        from deltalog.operations.create import as_schema

        operation = CommitActions(
            actions=list(actions),
            mode=mode,
            schema=as_schema(schema),
            partition_by=[partition_by] if isinstance(partition_by, str) else partition_by,
            partition_filters=partition_filters,
        )
        self.do(operation, commit_properties, post_commithook_properties)


def commit_options(
    commit_properties: CommitProperties | None = None,
    post_commithook_properties: PostCommitHookProperties | None = None,
    on_conflict: Literal["retry", "raise"] = "retry",
) -> CommitOptions:
    """Return the options of a commit."""
    from deltalog.transaction.properties import CommitOptions  # reads do not need this import

    return CommitOptions(
        properties=commit_properties, hooks=post_commithook_properties, on_conflict=on_conflict
    )
