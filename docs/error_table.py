"""The index of errors: meaning from the classes and docstrings, cause and action from here."""

from __future__ import annotations

import inspect
from typing import Final

from deltalog import errors
from deltalog.errors import DeltaError

# Class → (usual cause, what to do). Classes without an entry of their own have that of their base.
ADVICE: Final[dict[str, tuple[str, str]]] = {
    "TableNotFoundError": (
        "The location is wrong, the log was never written, or the credentials belong to another store.",
        "Check the location in the message. A write creates the table; `DeltaTable.is_deltatable` checks whether it exists.",
    ),
    "TableExistsError": (
        "`mode` is `error`, its default, and a table exists.",
        'Pass `mode="append"`, `"overwrite"` or `"ignore"`.',
    ),
    "InvalidInputError": (
        "A misspelt column, option or argument, or a predicate that is not SQL.",
        "Read the end of the message: it suggests what you probably meant. The error is a `ValueError`, too.",
    ),
    "AppendOnlyError": (
        "A delete, update, merge or overwrite of a table with `delta.appendOnly = true`.",
        "Append only, or set the property to `false` first. It is an `InvalidInputError`, too.",
    ),
    "AmbiguousMergeError": (
        "The source of a merge has several rows with the same key.",
        "First keep one row of each key ([deduplicate](cookbook/deduplication.md)), or make the condition narrower.",
    ),
    "DeltaProtocolError": (
        "The table or one of its features does not allow the request.",
        "Follow the message; see also the subclasses below.",
    ),
    "MalformedLogError": (
        "A writer has a bug, or log files were edited, copied or deleted.",
        "Run `deltalog doctor TABLE`. [Restore](how-to/restoring.md) a complete version, or copy the missing files back.",
    ),
    "MalformedMessageError": (
        "The response of a sharing server or a catalog does not follow its protocol; often, it is the login page of a proxy.",
        "Check the endpoint of the profile or the URL of the catalog.",
    ),
    "LogGapError": (
        "A commit file was deleted, or a copy of the table is incomplete.",
        "Copy the missing version back. Versions before the gap can be opened by number.",
    ),
    "CheckpointMissingError": (
        "Old commits were deleted manually, or a copy does not contain the checkpoint.",
        "Copy the complete `_delta_log`. Only `cleanup_metadata()` may delete log files.",
    ),
    "CheckpointUnreadableError": (
        "A checkpoint is truncated or damaged. Usually, a copy of the table was interrupted, or a disk failed.",
        "Copy the checkpoint back from a backup or another version of the object.",
    ),
    "InvalidPartitionValueError": (
        "A writer recorded a partition value in another form than the column's type.",
        "Find the file with `doctor()`, and write its rows again.",
    ),
    "UnsafePathError": (
        "The log names files outside of the table, for example in a shallow clone.",
        "If you trust them, list their location in the option [`trusted_locations`](how-to/stores.md#files-in-other-stores).",
    ),
    "UnsupportedFeatureError": (
        "Another engine enabled a feature that deltalog does not support, or a preview is disabled.",
        "See [features](features.md). Use a newer deltalog, or drop the feature with an engine that supports it.",
    ),
    "CatalogManagedError": (
        "A catalog manages the commits of this table, but the table was opened by its path.",
        "Open it by its name in the [catalog](how-to/catalogs.md).",
    ),
    "UnsupportedProtocolError": (
        "The table was written with a newer version of the protocol.",
        "Use a newer deltalog.",
    ),
    "UnsupportedTypeError": (
        "A column has a newer type, or a type of a preview that is disabled.",
        "Select other columns, or use a newer deltalog.",
    ),
    "VersionNotFoundError": (
        "The version was never created, or the log was cleaned up (`delta.logRetentionDuration`).",
        "The message states the bounds. Increase the retention if you need older versions.",
    ),
    "DataFileMissingError": (
        "`vacuum` deleted the file and you read an old version, or the file was deleted manually.",
        "Read a newer version. If files of the latest version are missing, [repair](how-to/repairing.md) the table. To keep old versions, use `keep_versions` or a longer retention.",
    ),
    "DataFileUnreadableError": (
        "The file is damaged, or another program wrote it.",
        "Find all such files with `doctor(samples=…)`. Restore them from a backup, or delete their rows.",
    ),
    "DeletionVectorError": (
        "The vector's file is damaged or incomplete.",
        "Restore the file. deltalog does not read without it, because deleted rows would be returned.",
    ),
    "ChangeDataFeedNotEnabledError": (
        "`delta.enableChangeDataFeed` was not enabled when one of the versions was written.",
        "Start at a later version; the message names it. Or compare versions with [`diff`](how-to/diff.md), which needs no feed.",
    ),
    "IncompatibleChangesError": (
        "Columns changed within the range, or while a follower ran.",
        'Read the versions before and after the change separately, or follow with `on_schema_change="evolve"`.',
    ),
    "RowsChangedError": (
        "A commit deleted or rewrote rows of a table that is followed for new rows.",
        "Follow with `changes=True`, or choose [how to treat such commits](how-to/follow.md#when-rows-are-deleted-or-rewritten).",
    ),
    "SchemaMismatchError": (
        "The data has a column that the table does not have, or a value that does not fit the column's type.",
        'Correct the data, or allow it: `schema_mode="merge"` ([schema evolution](cookbook/schema-evolution.md)).',
    ),
    "ConstraintViolationError": (
        "Rows violate NOT NULL, a CHECK constraint, or the expression of a generated column.",
        "See `error.examples`. Nothing was written; correct the rows, or drop the constraint.",
    ),
    "CommitFailedError": (
        "The commit could not be made.",
        "See the subclass. Except after `CommitOutcomeUnknownError`, the table is unchanged.",
    ),
    "CommitOutcomeUnknownError": (
        "The connection was lost while the commit was sent, and the store cannot be reached.",
        "Look for `error.txn_id` in `history()` before you try again. With an [application transaction](how-to/transactions.md#write-exactly-once), you can try again at once.",
    ),
    "CommitRetriesExhaustedError": (
        "Many writers commit to the table without a pause.",
        "Put rows together: an [appender](how-to/writing.md#append-from-many-threads-or-tasks), or larger batches.",
    ),
    "BranchClosedError": (
        "A publish of the branch runs, or was interrupted.",
        "If it was interrupted, run `publish()` again, or `discard()`; [branches](how-to/branches.md).",
    ),
    "BranchNotFoundError": (
        "The name is misspelt, or the branch was published, discarded, or has expired and was vacuumed.",
        "`branches()` lists those that exist. Rows of a published branch are in the table.",
    ),
    "BranchExistsError": (
        "Another run has created the branch, perhaps one that was interrupted.",
        "Open it with `branch(name, exist_ok=True)`, or discard it first.",
    ),
    "AuditFailedError": (
        "Rows of the branch break a check of its publish.",
        "Look at `error.failures`. Nothing was published; correct the rows in the branch, or discard it.",
    ),
    "TransactionIncompleteError": (
        "The process was killed, or a store failed, between two commits.",
        "Call `CatalogTransactions.recover()`; it completes the transaction or says why not.",
    ),
    "CommitConflictError": (
        "Another writer committed first, and the result of this operation may no longer be right.",
        "Run the operation again on the newest version. [Concurrency](concurrency.md) describes how to avoid conflicts.",
    ),
    "ProtocolChangedError": (
        "Another writer added or dropped a table feature.",
        "Open the table again, and repeat the operation.",
    ),
    "MetadataChangedError": (
        "Another writer changed the schema, a property or a constraint.",
        "Open the table again, check that your data still fits, and repeat the operation.",
    ),
    "ConcurrentAppendError": (
        "Another writer added rows that your predicate might match.",
        "Repeat the operation. Use a narrower predicate, with the partition or cluster that you change.",
    ),
    "ConcurrentDeleteReadError": (
        "Another writer rewrote or removed a file that you read.",
        "Repeat the operation. Do not compact files while they are changed.",
    ),
    "ConcurrentDeleteDeleteError": (
        "Another writer changed rows in the same file.",
        "Repeat the operation. With `delta.enableRowLevelConcurrency`, changes of different rows do not conflict.",
    ),
    "ConcurrentTransactionError": (
        "Two processes run the same job, with the same application id.",
        "End one of them, or use different ids.",
    ),
    "DomainMetadataConflictError": (
        "Two writers set the same metadata domain, such as clustering columns.",
        "Open the table again, and repeat the operation.",
    ),
    "StorageError": (
        "The network, the disk or the service failed, or an extra is not installed.",
        "deltalog has already retried; try again later. Check endpoint and region ([store options](how-to/stores-by-name.md)).",
    ),
    "AlreadyExistsError": (
        "A new object was to be created, but it already exists.",
        "Only raised to callers of a `Store`: another writer was faster.",
    ),
    "ObjectNotFoundError": (
        "The bucket, container or object does not exist.",
        "Check its name, and the account or endpoint.",
    ),
    "AccessDeniedError": (
        "There are no credentials, or they have expired, or they do not permit this request.",
        "See [store options](how-to/stores-by-name.md). If credentials expire, pass a [callable](how-to/stores.md#credentials-that-expire).",
    ),
    "CatalogError": (
        "The catalog refused the request; the message contains its response.",
        "Check the name of the table and `error.error_code`.",
    ),
    "CatalogAccessError": (
        "The token is wrong or expired, or its owner does not have the permission.",
        "Create a new token, or request the permission that the message names.",
    ),
    "CatalogUnavailableError": (
        "The catalog cannot be reached, or is overloaded.",
        "Check the URL, and try again later.",
    ),
    "SharingError": (
        "The sharing server refused the request or failed; `error.status` is the HTTP status.",
        "Contact the provider, and send the message.",
    ),
    "SharingAccessError": (
        "The profile has expired, or does not give access to this table.",
        "Ask the provider for a new profile.",
    ),
    "ShareNotFoundError": (
        "A name is misspelt, or the table is not shared with you.",
        "`SharingClient(profile).list_all_tables()` lists the shared tables.",
    ),
    "SharingUnavailableError": (
        "The server cannot be reached, or is overloaded.",
        "Check the endpoint in the profile, and try again later.",
    ),
    "InternalError": (
        "The code of deltalog has reached a state that it does not expect.",
        "Report it, with the traceback and the output of `deltalog doctor`.",
    ),
}

# Class → messages as a user sees them; "…" stands for what differs. tests/architecture/
# test_error_examples.py makes each of them.
EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "TableNotFoundError": (
        "cannot open /data/order: expected a Delta table, found nothing there; check the location; …",
    ),
    "TableExistsError": (
        "cannot create a table at /data/orders: a table already exists, at version 0; …",
    ),
    "InvalidInputError": (
        "cannot scan /data/orders: there is no column 'stat': did you mean 'state'?",
        "cannot run DELETE on /data/orders: cannot read the SQL 'id == ' at character 7: …",
        "there is no storage option 'AWS_REGIO': did you mean 'AWS_REGION'?",
    ),
    "AmbiguousMergeError": (
        "cannot merge into /data/orders: 1 row(s) of the table would be changed by several rows of the source each: …",
    ),
    "SchemaMismatchError": (
        "cannot write the data to /data/orders: the data has column(s) 'colour' that the table lacks; …",
        "cannot write the data to /data/orders: cannot store string values of column 'id' as long: …",
    ),
    "ConstraintViolationError": (
        "cannot write the data to /data/orders: CHECK constraint 'positive' (id > 0) is violated by 1 of 1 checked row: …",
    ),
    "VersionNotFoundError": (
        "cannot read version 9 of /data/orders: the latest version is 0",
        "cannot read /data/orders as of 2001-01-01T00:00:00.000Z: the earliest version that can be read is 0, …",
    ),
    "AppendOnlyError": ("cannot DELETE /data/orders: it is append-only; …",),
    "ChangeDataFeedNotEnabledError": (
        "cannot read changes 0 to 0 of /data/orders: version 0 was written without a change data feed; …",
    ),
    "DataFileMissingError": ("cannot read '/data/orders/part-…': there is no such file; …",),
    "RowsChangedError": ("cannot follow /data/orders beyond version 0: version 1 rewrote rows; …",),
    "MetadataChangedError": (
        "cannot commit WRITE to /data/orders: ADD COLUMNS won version 1, and it changed the metadata; …",
    ),
}


def public_errors() -> list[type[DeltaError]]:
    """The classes of `deltalog.errors`, a base before its subclasses."""
    return [
        one
        for one in vars(errors).values()
        if inspect.isclass(one) and issubclass(one, DeltaError) and one is not DeltaError
    ]


def error_index() -> str:
    """A table of all public errors, and a section for each: code, meaning, cause, action."""
    return "\n".join([_overview(), *map(_section, public_errors())])


def _overview() -> str:
    families: dict[type[DeltaError], list[str]] = {}
    for error in public_errors():
        root = next(cls for cls in error.__mro__ if DeltaError in cls.__bases__)
        families.setdefault(root, []).extend([_link(error)] * (error is not root))
    rows = [f"| {_link(root)} | {', '.join(names)} |\n" for root, names in families.items()]
    return f"| error | more specific errors |\n|---|---|\n{''.join(rows)}"


def _link(error: type[DeltaError]) -> str:
    return f"[`{error.__name__}`](#{error.__name__.lower()})"


def advice_of(error: type[DeltaError]) -> tuple[str, str]:
    """The usual cause and what to do; of the nearest class that has an entry."""
    return next(ADVICE[cls.__name__] for cls in error.__mro__ if cls.__name__ in ADVICE)


def _section(error: type[DeltaError]) -> str:
    name = error.__name__
    meaning = (inspect.getdoc(error) or "").partition("\n")[0]
    cause, action = advice_of(error)
    bases = [f"`{base.__name__}`" for base in error.__bases__ if base is not DeltaError]
    kind = f" · a kind of {' and '.join(bases)}" if bases else ""
    messages = "<br>".join(f"`{one}`" for one in EXAMPLES.get(name, ()))
    message = f"| Message | {messages} |\n" if messages else ""
    return (
        f"## {name}\n\n"
        f"[`{name}`](#deltalog.errors.{name}) · code `{error.code}`{kind}\n\n"
        f"| | |\n|---|---|\n{message}| Meaning | {meaning} |\n| Cause | {cause} |\n| Action | {action} |\n"
    )
