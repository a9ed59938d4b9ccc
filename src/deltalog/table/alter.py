"""`table.alter`: changes of schema, properties, constraints and protocol.

Each method builds an operation of `operations.alter` and runs it in one commit, except
`drop_feature`, which may need several commits. Methods that deltalake also has have the same names
and semantics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from deltalog._util import cards
from deltalog._util.argument_types import checks_types
from deltalog._util.call_errors import WrongCallError
from deltalog._util.paths import KEYS_DIRECTORY
from deltalog._util.similar_names import SimilarNames, suggests_arguments
from deltalog.errors import InvalidInputError
from deltalog.log.branches import branch_of
from deltalog.operations import alter
from deltalog.operations.alter.drop_feature import drop_feature
from deltalog.operations.arguments import as_constraints
from deltalog.operations.operation import CustomOperation, Operation
from deltalog.schema import DataType, Field, as_fields
from deltalog.schema.columns import naming_the_attempt
from deltalog.transaction.properties import CommitOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deltalog.log.snapshot import Snapshot
    from deltalog.schema.evolve import Where
    from deltalog.table.creating import LatestTable
    from deltalog.transaction import CommitProperties, PostCommitHookProperties

    ColumnPath = str | tuple[str, ...]


_MEANT: Final = {
    "drop_key_index": "set_key_index(None)",
    **dict.fromkeys(("rename", "renameColumn"), "rename_column(name, new_name)"),
    **dict.fromkeys(("add", "add_column", "addColumn"), "add_columns(fields)"),
    **dict.fromkeys(("drop", "drop_column", "dropColumn"), "drop_columns(names)"),
    **dict.fromkeys(("cast", "set_type"), "set_column_type(name, type)"),
    **dict.fromkeys(("add_key_index", "create_index"), "set_key_index(columns)"),
    **dict.fromkeys(
        (
            *("alter_column", "change_column", "update_column", "modify_column", "widen"),
            *("widen_column", "widen_type"),
            *("change_type", "change_column_type", "alter_column_type", "set_data_type"),
        ),
        "set_column_type(name, type)",
    ),
    **dict.fromkeys(
        ("set_comment", "comment_on", "comment", "add_comment"),
        "set_column_comment(column, text), or set_table_description(text) for the table",
    ),
    "delete_column": "drop_columns(names)",
    **dict.fromkeys(("set_name", "rename_table"), "set_table_name(name)"),
    **dict.fromkeys(("set_property", "set_properties"), "set_table_properties({key: value})"),
    **dict.fromkeys(("set_default", "set_default_value"), "set_column_default(name, sql)"),
    "drop_default": "set_column_default(name, None)",
    **dict.fromkeys(
        ("make_column_optional", "drop_not_null", "make_nullable"), "drop_column_not_null(name)"
    ),
    **dict.fromkeys(
        ("set_nullable", "set_column_nullable", "change_nullability", "set_nullability"),
        "set_column_not_null(name), or drop_column_not_null(name)",
    ),
    **dict.fromkeys(
        ("enable_cdf", "enable_change_data_feed", "enable_cdc"),
        "set_table_properties({'delta.enableChangeDataFeed': 'true'})",
    ),
    **dict.fromkeys(
        ("move_first", "move_before", "move_after", "reorder", "move"),
        "move_column(name, 'first'), or ('after', other) instead of 'first'",
    ),
    **dict.fromkeys(("add_check", "add_check_constraint"), "add_constraint({name: condition})"),
    **dict.fromkeys(("enable_feature", "add_features"), "add_feature(feature)"),
    **dict.fromkeys(
        ("set_primary_key", "add_primary_key", "set_identifier_fields"),
        "upsert(data, key) of the table, which keeps a key unique; tables have no primary keys",
    ),
    "union_by_name": "write_deltalake(…, schema_mode='merge')",
    **dict.fromkeys(
        ("partition_by", "set_partitioning", "update_spec"),
        "write_deltalake(…, mode='overwrite', schema_mode='overwrite', partition_by=…)",
    ),
    **dict.fromkeys(("commit", "execute"), "no more calls: each method commits"),
    **dict.fromkeys(
        ("cluster_by", "clusterBy", "set_clustering"), "set_clustering_columns(columns)"
    ),
}
"""What to use instead of names of other libraries."""


@checks_types
@suggests_arguments
class TableAlterer(SimilarNames):
    """Changes the metadata of a table, but no rows: the type of `DeltaTable.alter`.

    Arguments name a column by its path: `"a.b"` is the field `b` of the struct `a`, and
    `"list.element.b"` is a field of the structs in a list. A tuple of names is needed if a name
    contains dots. See `DeltaTable` for `commit_properties` and `post_commithook_properties`. Every
    method raises `InvalidInputError` for a change that the table or the protocol does not allow.
    """

    _meant = _MEANT
    _called = "DeltaTable.alter"
    _otherwise = "one of its methods, which print(table.alter) shows"

    if not TYPE_CHECKING:  # type checkers know that this is no method

        def __call__(self, *_: object, **__: object) -> NoReturn:
            """Raise an error that names methods."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise WrongCallError(
                "alter is not a method: call one of its methods, such as alter.add_columns(fields) "
                "or alter.set_table_properties(properties)"
            )

    def __init__(self, table: LatestTable) -> None:
        self._table = table

    def __repr__(self) -> str:
        """Show the table and the methods."""
        return f"{self._table!r}.alter: {cards.names_of_methods(TableAlterer)}"

    def _repr_html_(self) -> str:
        """Return the notebook card: what each method does."""
        return cards.methods_of(f"{self._table!r}.alter", TableAlterer)

    def add_columns(
        self,
        fields: Field | Sequence[Field | tuple[str, Any]] | Mapping[str, Any] | str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        parent: ColumnPath = (),
        where: Where = "last",
    ) -> None:
        """Add nullable columns; existing rows have NULL in them.

        Args:
            fields: a field or a schema, also of Arrow; a list of fields; a dictionary, name to
                type; or a string as in SQL, such as `size BIGINT, note STRING`. For a struct that
                already exists, its missing fields are added.
            parent: path of the struct to which the fields are added; empty means the table.
            where: position of the new columns: `first`, `last` or `("after", name)`.

        Examples:
            >>> from deltalog import Field
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://columns", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://columns")
            >>> table.alter.add_columns([Field("city", "string"), Field("at", "timestamp")])
            >>> table.alter.add_columns({"note": "string"}, where="first")
            >>> table.schema().names
            ('note', 'id', 'n', 'city', 'at')
        """
        place: Any = commit_properties
        if isinstance(place, str | tuple):
            raise InvalidInputError(
                f"cannot add columns with {place!r} as the second argument, which is "
                f"commit_properties: write the name, where={place!r}"
            )
        with naming_the_attempt("add columns to", self._table.snapshot.store.root):
            wanted = as_fields("DeltaTable.alter.add_columns", "fields", fields)
        self._do(
            alter.AddColumns(wanted, parent=parent, where=where, extends_structs=True),
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
        """Rename a column without rewriting files; the table needs column mapping.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://rename", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://rename")
            >>> table.alter.set_table_properties({"delta.columnMapping.mode": "name"})
            >>> table.alter.rename_column("n", "number")
            >>> table.schema().names
            ('id', 'number')
        """
        self._do(
            alter.RenameColumn(column, new_name), commit_properties, post_commithook_properties
        )

    def drop_columns(
        self,
        names: ColumnPath | list[ColumnPath],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop columns without rewriting files; the table needs column mapping.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://drop", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://drop")
            >>> table.alter.set_table_properties({"delta.columnMapping.mode": "name"})
            >>> table.alter.drop_columns(["n"])
            >>> table.schema().names
            ('id',)
        """
        # A tuple is the path of one column. A list contains the paths of several columns.
        paths: list[ColumnPath] = names if isinstance(names, list) else [names]
        self._do(alter.DropColumns(paths), commit_properties, post_commithook_properties)

    def move_column(
        self,
        column: ColumnPath,
        where: Where,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Move a column within its struct: to `first`, `last` or `("after", name)`.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://move", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://move")
            >>> table.alter.move_column("n", "first")
            >>> table.schema().names
            ('n', 'id')
        """
        self._do(alter.MoveColumn(column, where), commit_properties, post_commithook_properties)

    def set_column_type(
        self,
        column: ColumnPath,
        to_type: DataType | str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Widen a column's type; the table needs `delta.enableTypeWidening`.

        Examples:
            >>> import pyarrow as pa
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://widen", pa.table({"n": pa.array([1], pa.int32())}))
            >>> table = DeltaTable("memory://widen")
            >>> table.alter.set_table_properties({"delta.enableTypeWidening": "true"})
            >>> table.alter.set_column_type("n", "long")
            >>> print(table.schema())
            struct<n:long>
        """
        self._do(
            alter.SetColumnType(column, to_type), commit_properties, post_commithook_properties
        )

    def set_column_collation(
        self,
        column: ColumnPath,
        collation: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
        *,
        at: str = "",
    ) -> None:
        """Set the collation that compares the strings of a column; no file is rewritten.

        Args:
            column: path of a column of strings, or of lists or maps that contain strings.
            collation: name of the collation in SQL, such as `UTF8_LCASE`. `UTF8_BINARY` is the
                default of a column.
            at: path of the strings inside the column, such as `element`; empty means the column.
        """
        inner = tuple(at.split(".")) if at else ()
        self._do(
            alter.SetColumnCollations(column, {inner: collation}),
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
        """Set the comment of a column; None removes it."""
        self._do(
            alter.SetColumnComment(column, comment), commit_properties, post_commithook_properties
        )

    def set_column_metadata(
        self,
        column: ColumnPath,
        metadata: Mapping[str, Any],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set entries of a column's metadata, except entries that table features define."""
        self._do(
            alter.SetColumnMetadata(column, metadata), commit_properties, post_commithook_properties
        )

    def set_column_default(
        self,
        column: ColumnPath,
        default: str | None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the default value of a column, as an SQL expression; None removes it.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://default", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://default")
            >>> table.alter.set_column_default("n", "7 * 6")
            >>> write_deltalake(table, [{"id": 3}], mode="append")
            >>> table.to_arrow(filters="id = 3").to_pylist()
            [{'id': 3, 'n': 42}]
        """
        self._do(
            alter.SetColumnDefault(column, default), commit_properties, post_commithook_properties
        )

    def set_column_not_null(
        self,
        column: ColumnPath,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Forbid NULL in a column. Existing rows are checked first."""
        self._do(alter.SetColumnNotNull(column), commit_properties, post_commithook_properties)

    def drop_column_not_null(
        self,
        column_name: ColumnPath,  # deltalake's name
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Allow NULL in a column."""
        self._do(
            alter.DropColumnNotNull(column_name), commit_properties, post_commithook_properties
        )

    def add_constraint(
        self,
        constraints: Mapping[str, str],
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Add CHECK constraints (name → Spark SQL). Existing rows are checked first.

        Column names may be in double quotes, as in deltalake; they are stored in backticks.

        Raises:
            ConstraintViolationError: rows violate a constraint. The message contains the number of
                such rows, and examples.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://constraint", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://constraint")
            >>> table.alter.add_constraint({"positive": "n > 0"})
            >>> table.metadata().configuration
            {'delta.constraints.positive': 'n > 0'}
        """
        spelled = as_constraints(constraints, self._table.snapshot.configuration.schema.names)
        self._do(alter.AddConstraints(spelled), commit_properties, post_commithook_properties)

    def drop_constraint(
        self,
        name: str,
        raise_if_not_exists: bool = True,  # noqa: FBT001, FBT002  # deltalake's signature
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop a CHECK constraint."""
        self._do(
            alter.DropConstraint(name, raise_if_not_exists),
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
        """Set table properties, and add the table features that they need.

        Args:
            properties: key → string value. The keys `delta.feature.<name>` (value `supported`) and
                `delta.minReaderVersion` change the protocol.
            raise_if_not_exists: whether to raise for an unknown `delta.` property.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://properties", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://properties")
            >>> table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
            >>> table.properties.enable_deletion_vectors
            True
        """
        self._do(
            alter.SetTableProperties(properties, raise_if_not_exists),
            commit_properties,
            post_commithook_properties,
        )

    def unset_table_properties(
        self,
        keys: str | Sequence[str],
        raise_if_not_exists: bool = True,  # noqa: FBT001, FBT002  # as in set_table_properties
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Remove table properties, so that their defaults apply."""
        wanted = [keys] if isinstance(keys, str) else list(keys)
        self._do(
            alter.UnsetTableProperties(wanted, raise_if_not_exists),
            commit_properties,
            post_commithook_properties,
        )

    def set_table_name(
        self,
        name: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the name of the table."""
        self._do(alter.SetTableName(name), commit_properties, post_commithook_properties)

    def set_table_description(
        self,
        description: str,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the description of the table."""
        self._do(
            alter.SetTableDescription(description), commit_properties, post_commithook_properties
        )

    def set_clustering_columns(
        self,
        names: str | Sequence[ColumnPath] | None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the clustering columns of new files; None disables clustering.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://clustering", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://clustering")
            >>> table.alter.set_clustering_columns(["n"])
            >>> _ = table.optimize.cluster()
            >>> table.detail()["clusteringColumns"]
            ['n']
        """
        names = [names] if isinstance(names, str) else names
        self._do(alter.SetClusteringColumns(names), commit_properties, post_commithook_properties)

    def set_key_index(
        self,
        names: str | Sequence[str] | None,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Set the columns of the key index, or remove the key (a preview).

        The index finds the rows with given keys without reading the key columns of data files. It
        is used by reads, DELETE, UPDATE and MERGE with conditions such as `id = 5`. Later commits
        of deltalog index their new files. `optimize.key_index()` indexes existing files, and files
        of other writers. Other engines ignore the index.

        Args:
            names: the key columns, usually one; None removes the key, and deletes the index.
        """
        names = [names] if isinstance(names, str) else names
        self._do(alter.SetKeyIndex(names), commit_properties, post_commithook_properties)
        store = self._table.snapshot.store
        if names is None and branch_of(store) is None:  # main may have the key
            store.delete_many([info.path for info in store.list_all(KEYS_DIRECTORY)])

    def add_feature(
        self,
        feature: str | Sequence[str],
        allow_protocol_versions_increase: bool = False,  # noqa: FBT001, FBT002  # deltalake's signature
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Add table features to the protocol. Engines without them can no longer use the table.

        Args:
            feature: name of a feature, or a list of names.
            allow_protocol_versions_increase: whether the reader and writer versions may increase.
        """
        self._do(
            alter.AddFeature(feature, allow_protocol_versions_increase),
            commit_properties,
            post_commithook_properties,
        )

    def drop_feature(
        self,
        feature: str,
        truncate_history: bool = False,  # noqa: FBT001, FBT002  # as TRUNCATE HISTORY in Delta Spark
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Drop a table feature: remove all uses of it, then remove it from the protocol.

        This makes one to three commits. Older versions remain readable: checkpoints and the feature
        `checkpointProtection` protect them.

        Args:
            feature: name of the feature.
            truncate_history: whether to delete the history that needs the feature, instead of
                protecting it. This history must be older than
                `delta.dropFeatureTruncateHistory.retentionDuration`.

        Raises:
            InvalidInputError: the feature cannot be dropped; or the history is too young. In the
                second case, the table no longer uses the feature, and a later call completes the
                drop.

        Cost: rewrites files that need the feature, and writes one checkpoint. With
        `truncate_history`, also reads all commits of the log.

        Examples:
            >>> from deltalog import DeltaTable, write_deltalake
            >>> write_deltalake("memory://dropped", [{"id": 1, "n": 5}, {"id": 2, "n": 7}])
            >>> table = DeltaTable("memory://dropped")
            >>> table.alter.set_table_properties({"delta.enableDeletionVectors": "true"})
            >>> table.alter.drop_feature("deletionVectors")
            >>> table.protocol().reader_features
        """
        options = CommitOptions(properties=commit_properties, hooks=post_commithook_properties)

        def commit(operation: Operation[Any]) -> Snapshot:
            return self._table.execute(operation, options).committed.snapshot

        # This empty operation makes no commit. It refreshes the table, and raises an error if the
        # table was opened at an old version.
        look = CustomOperation(name="DROP FEATURE", plan=lambda _: None, skips_empty=True)
        drop_feature(commit(look), feature, commit=commit, truncate_history=truncate_history)

    def upgrade_protocol(
        self,
        reader_version: int,
        writer_version: int,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Increase the reader and writer versions of the protocol; they are never decreased."""
        self._do(
            alter.UpgradeProtocol(reader_version, writer_version),
            commit_properties,
            post_commithook_properties,
        )

    def upgrade_row_ids(
        self,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> None:
        """Convert row ids of a protocol draft to row tracking, without changing the ids.

        Other engines support row tracking, but not the draft's table feature `rowIds`. The draft
        has no row commit versions, so all rows get the version of this commit.

        Raises:
            InvalidInputError: the table does not have the feature `rowIds`, or has too many files
                for one commit.
        """
        self._do(alter.UpgradeRowIds(), commit_properties, post_commithook_properties)

    def backfill_row_ids(
        self,
        max_files: int = alter.BATCH_FILES,
        commit_properties: CommitProperties | None = None,
        post_commithook_properties: PostCommitHookProperties | None = None,
    ) -> int:
        """Assign row ids to files without row ids, in one commit; return the number of files.

        Setting `delta.enableRowTracking` does this for up to 100,000 files. For more files, add the
        feature `rowTracking`, call this method until it returns 0, and then set the property. Other
        writers can commit at the same time.

        Args:
            max_files: the maximum number of files in the commit.

        Raises:
            InvalidInputError: the table does not have the feature `rowTracking`.

        Cost: reads the file list from the log, and makes one commit that adds the files again. No
        data file is read.
        """
        options = CommitOptions(properties=commit_properties, hooks=post_commithook_properties)
        done = self._table.execute(alter.BackfillRowIds(max_files), options)
        return 0 if done.value is None else done.value.result()

    def _do(
        self,
        operation: Operation[Any],
        commit_properties: CommitProperties | None,
        hooks: PostCommitHookProperties | None,
    ) -> None:
        self._table.execute(operation, CommitOptions(properties=commit_properties, hooks=hooks))
