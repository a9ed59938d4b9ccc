"""`table.alter`: changes of schema, properties, constraints and protocol.

Each method is one commit, but for `drop_feature`. Names and meanings are deltalake's where it
has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog.errors import InvalidInputError
from deltalog.schema import Field
from deltalog.verbs.alter import clustering, columns, protocol
from deltalog.verbs.alter import constraints as _constraints
from deltalog.verbs.alter import properties as _properties
from deltalog.verbs.alter.drop_feature import drop_feature
from deltalog.verbs.verb import Operation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from deltalog.schema import DataType
    from deltalog.schema.alter import Where
    from deltalog.snapshot import Snapshot
    from deltalog.table.target import LatestTable
    from deltalog.transaction import (
        CommitProperties,
        PendingTransaction,
        PostCommitHookProperties,
    )

    Stage = Callable[[PendingTransaction], object]
    ColumnPath = str | tuple[str, ...]


class TableAlterer:
    """Changes of a table that touch no row. Reached as `DeltaTable.alter`.

    A column is named by its path: `"a.b"` is the field `b` of the struct `a`, `"list.element.b"`
    reaches into containers, and a tuple of parts names a column whose name has dots. Every method
    takes `commit_properties` and `post_commithook_properties`, and raises `InvalidInputError` for
    what the table or the protocol does not allow, saying why.
    """

    def __init__(self, table: LatestTable) -> None:
        self._table = table

    def __repr__(self) -> str:
        """Of which table."""
        return f"{self._table!r}.alter"

    def add_columns(
        self,
        fields: Field | Sequence[Field],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        parent: ColumnPath = (),
        where: Where = "last",
    ) -> None:
        """Add nullable columns; rows that exist have no value for them.

        Args:
            fields: one or several.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
            parent: path of the struct that gets them; empty is the table itself.
            where: `first`, `last` or `("after", name)`.
        """
        wanted = [fields] if isinstance(fields, Field) else list(fields)
        if not all(isinstance(field, Field) for field in wanted):
            raise InvalidInputError(
                f"cannot add {fields!r}: expected a Field or a list of them, such as "
                "Field('name', 'string')"
            )
        self._run(
            lambda pending: columns.add_columns(pending, wanted, parent=parent, where=where),
            commit_properties,
            post_commithook_properties,
        )

    def rename_column(
        self,
        column: ColumnPath,
        new_name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Give a column another name; the table needs column mapping, files stay as they are."""
        self._run(
            lambda pending: columns.rename_column(pending, column, new_name),
            commit_properties,
            post_commithook_properties,
        )

    def drop_columns(
        self,
        names: ColumnPath | list[ColumnPath],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Take columns out of the schema; the table needs column mapping, files stay."""
        # A tuple is one path; only a list is several.
        paths: list[ColumnPath] = names if isinstance(names, list) else [names]
        self._run(
            lambda pending: columns.drop_columns(pending, paths),
            commit_properties,
            post_commithook_properties,
        )

    def move_column(
        self,
        column: ColumnPath,
        where: Where,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Put a column elsewhere among its siblings: `first`, `last` or `("after", name)`."""
        self._run(
            lambda pending: columns.move_column(pending, column, where),
            commit_properties,
            post_commithook_properties,
        )

    def set_column_type(
        self,
        column: ColumnPath,
        to_type: DataType | str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Widen a column's type; the table needs `delta.enableTypeWidening`."""
        self._run(
            lambda pending: columns.set_column_type(pending, column, to_type),
            commit_properties,
            post_commithook_properties,
        )

    def set_column_comment(
        self,
        column: ColumnPath,
        comment: str | None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Say what a column means; None takes the comment away."""
        self._run(
            lambda pending: columns.set_column_comment(pending, column, comment),
            commit_properties,
            post_commithook_properties,
        )

    def set_column_metadata(
        self,
        column: ColumnPath,
        metadata: Mapping[str, Any],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set entries of a column's metadata; what the protocol keeps there has its own verbs."""
        self._run(
            lambda pending: columns.set_column_metadata(pending, column, metadata),
            commit_properties,
            post_commithook_properties,
        )

    def set_column_default(
        self,
        column: ColumnPath,
        default: str | None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """The SQL expression that rows get where a write leaves the column out; None drops it."""
        self._run(
            lambda pending: columns.set_column_default(pending, column, default),
            commit_properties,
            post_commithook_properties,
        )

    def set_column_not_null(
        self,
        column: ColumnPath,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Forbid NULL in a column; rows that exist are checked first."""
        self._run(
            lambda pending: columns.set_column_not_null(pending, column),
            commit_properties,
            post_commithook_properties,
        )

    def drop_column_not_null(
        self,
        column_name: ColumnPath,  # deltalake's name
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Allow NULL in a column."""
        self._run(
            lambda pending: columns.drop_column_not_null(pending, column_name),
            commit_properties,
            post_commithook_properties,
        )

    def add_constraint(
        self,
        constraints: Mapping[str, str],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Add CHECK constraints: name → Spark SQL; rows that exist are checked first.

        Raises:
            ConstraintViolationError: rows break it; the message counts and shows some.
        """
        self._run(
            lambda pending: _constraints.add_constraints(pending, constraints),
            commit_properties,
            post_commithook_properties,
        )

    def drop_constraint(
        self,
        name: str,
        raise_if_not_exists: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop a CHECK constraint."""
        self._run(
            lambda pending: _constraints.drop_constraint(
                pending, name, raise_if_not_exists=raise_if_not_exists
            ),
            commit_properties,
            post_commithook_properties,
        )

    def set_table_properties(
        self,
        properties: Mapping[str, str],
        raise_if_not_exists: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set properties; what they switch on comes with its table feature.

        Args:
            properties: key → text; `delta.feature.<name>=supported` and `delta.minReaderVersion`
                ask for a protocol.
            raise_if_not_exists: whether an unknown `delta.` property is refused.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
        """
        self._run(
            lambda pending: _properties.set_table_properties(
                pending, properties, raise_if_not_exists=raise_if_not_exists
            ),
            commit_properties,
            post_commithook_properties,
        )

    def unset_table_properties(
        self,
        keys: str | Sequence[str],
        raise_if_not_exists: bool = True,  # noqa: FBT001, FBT002  # as for setting them
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Take properties away: their defaults hold again."""
        wanted = [keys] if isinstance(keys, str) else list(keys)
        self._run(
            lambda pending: _properties.unset_table_properties(
                pending, wanted, raise_if_not_exists=raise_if_not_exists
            ),
            commit_properties,
            post_commithook_properties,
        )

    def set_table_name(
        self,
        name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Name the table."""
        self._run(
            lambda pending: _properties.set_table_name(pending, name),
            commit_properties,
            post_commithook_properties,
        )

    def set_table_description(
        self,
        description: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Say what the table holds."""
        self._run(
            lambda pending: _properties.set_table_description(pending, description),
            commit_properties,
            post_commithook_properties,
        )

    def set_clustering_columns(
        self,
        names: Sequence[ColumnPath] | None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Cluster new files by these columns; None ends clustering."""
        self._run(
            lambda pending: clustering.set_clustering_columns(pending, names),
            commit_properties,
            post_commithook_properties,
        )

    def add_feature(
        self,
        feature: str | Sequence[str],
        allow_protocol_versions_increase: bool = False,  # noqa: FBT001, FBT002  # deltalake's
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Let the table support features; engines that lack them lose access.

        Args:
            feature: one or several, by name.
            allow_protocol_versions_increase: whether reader and writer version may rise for it.
            commit_properties: of the commit.
            post_commithook_properties: what follows it.
        """
        self._run(
            lambda pending: protocol.add_feature(
                pending, feature, allow_protocol_versions_increase=allow_protocol_versions_increase
            ),
            commit_properties,
            post_commithook_properties,
        )

    def drop_feature(
        self,
        feature: str,
        truncate_history: bool = False,  # noqa: FBT001, FBT002  # as Delta Spark's TRUNCATE HISTORY
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Take a feature out of the protocol, after everything that uses it.

        Takes one to three commits. What stays of the history is protected by checkpoints, and by
        the feature `checkpointProtection`.

        Args:
            feature: by name.
            truncate_history: delete the history that needs the feature instead; refused while
                that is younger than `delta.dropFeatureTruncateHistory.retentionDuration`.
            commit_properties: of every commit.
            post_commithook_properties: what follows them.

        Raises:
            InvalidInputError: the feature cannot be dropped, or not yet: then the table does not
                use it any more, and the same call goes on later.

        Cost: files that need the feature are written anew; one checkpoint; with
        `truncate_history`, every commit of the log is read.
        """

        def commit(stage: Stage, operation: str) -> Snapshot:
            done = self._table.carry_out(
                Operation(name=operation, plan=stage, skips_empty=True),
                commit_properties=commit_properties,
                hooks=post_commithook_properties,
            )
            return done.committed.snapshot

        # The newest version: a run without a stage finds it, and that nobody stands on an old one.
        snapshot = commit(lambda _: None, "DROP FEATURE")
        drop_feature(snapshot, feature, commit=commit, truncate_history=truncate_history)

    def upgrade_protocol(
        self,
        reader_version: int,
        writer_version: int,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Raise the protocol to what these versions mean; it never falls."""
        self._run(
            lambda pending: protocol.upgrade_protocol(pending, reader_version, writer_version),
            commit_properties,
            post_commithook_properties,
        )

    def _run(
        self,
        stage: Stage,
        commit_properties: CommitProperties | None,
        hooks: PostCommitHookProperties | None,
    ) -> None:
        # The stage names the operation as the reference does, and its parameters.
        self._table.do(
            Operation(name="ALTER TABLE", plan=stage, skips_empty=True),
            commit_properties=commit_properties,
            post_commithook_properties=hooks,
        )
