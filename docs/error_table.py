"""The index of errors: meaning from the classes and docstrings, cause and action from here."""

from __future__ import annotations

import inspect
from typing import Final

from deltalog import errors
from deltalog.errors import DeltaError

# Class → (usual cause, what to do). Classes without an entry of their own have that of their base.
ADVICE: Final[dict[str, tuple[str, str]]] = {
    "TableNotFoundError": (
        "The location is wrong, the log was never written, or the credentials reach another place.",
        "Compare the location in the message. A write creates the table; `DeltaTable.is_deltatable` asks.",
    ),
    "TableExistsError": (
        "`mode` is `error`, its default, and there is a table.",
        'Pass `mode="append"`, `"overwrite"` or `"ignore"`.',
    ),
    "InvalidInputError": (
        "A misspelt column, option or argument, or a predicate that is not SQL.",
        "Read the end of the message: it names what was probably meant. It is a `ValueError`, too.",
    ),
    "AppendOnlyError": (
        "A delete, update, merge or overwrite of a table with `delta.appendOnly = true`.",
        "Append only, or set the property to `false` first. It is an `InvalidInputError`, too.",
    ),
    "AmbiguousMergeError": (
        "The source of a merge has several rows of one key.",
        "Keep one row of each key first ([deduplicate](cookbook/deduplication.md)), or make the condition narrower.",
    ),
    "DeltaProtocolError": (
        "The table or one of its features forbids the request.",
        "Follow the message; the subclasses below say more.",
    ),
    "MalformedLogError": (
        "A writer has a bug, or somebody edited, copied or deleted log files.",
        "Run `deltalog doctor TABLE`. [Restore](how-to/restoring.md) a version that is whole, or copy the missing files back.",
    ),
    "MalformedMessageError": (
        "A sharing server or a catalog answered with something else than its protocol says, often a login page of a proxy.",
        "Check the endpoint of the profile or the URL of the catalog.",
    ),
    "LogGapError": (
        "A commit file was deleted, or a copy of the table is incomplete.",
        "Copy the missing version back. Versions before the gap can be opened by number.",
    ),
    "CheckpointMissingError": (
        "Old commits were deleted by hand, or a copy lacks the checkpoint.",
        "Copy `_delta_log` whole. Only `cleanup_metadata()` may delete log files.",
    ),
    "CheckpointUnreadableError": (
        "A checkpoint is cut or damaged, and the commits before it are gone.",
        "Copy the checkpoint back from a backup or another version of the object.",
    ),
    "InvalidPartitionValueError": (
        "A writer recorded a partition value in another form than the column's type.",
        "Find the file with `doctor()`, and write its rows again.",
    ),
    "UnsafePathError": (
        "The log names files outside of the table, as that of a shallow clone does.",
        "If you trust them, list their place in the option [`trusted_locations`](how-to/stores.md#files-in-other-stores).",
    ),
    "UnsupportedFeatureError": (
        "Another engine turned on a feature that deltalog lacks, or a preview is off.",
        "Look it up in [features](features.md). Use a newer deltalog, or drop the feature with the engine that has it.",
    ),
    "CatalogManagedError": (
        "A catalog decides on the commits of this table, and it was opened by its path.",
        "Open it by its name in the [catalog](how-to/catalogs.md).",
    ),
    "UnsupportedProtocolError": (
        "The table was written by a newer Delta than this deltalog knows.",
        "Use a newer deltalog.",
    ),
    "UnsupportedTypeError": (
        "A column has a type that is newer, or a preview that is off.",
        "Select other columns, or use a newer deltalog.",
    ),
    "VersionNotFoundError": (
        "The version was never made, or the log was cleaned up (`delta.logRetentionDuration`).",
        "The message has the bounds. Raise the retention if you need older versions.",
    ),
    "DataFileMissingError": (
        "`vacuum` deleted the file and you read an old version; or somebody deleted it by hand.",
        "Read a newer version. If the latest one lacks files: [repair](how-to/repairing.md). Keep old versions with `keep_versions` or a longer retention.",
    ),
    "DataFileUnreadableError": (
        "The file is damaged, or another program put it there.",
        "Find all such files with `doctor(samples=…)`. Restore them from a backup, or delete their rows.",
    ),
    "DeletionVectorError": (
        "The vector's file is damaged or incomplete.",
        "Restore the file. Reading on without it would bring deleted rows back, so it is refused.",
    ),
    "ChangeDataFeedNotEnabledError": (
        "`delta.enableChangeDataFeed` was off when one of the versions was written.",
        "Begin at a later version; the message names it. Or compare with [`diff`](how-to/diff.md), which needs no feed.",
    ),
    "IncompatibleChangesError": (
        "Columns changed within the range, or while a follower ran.",
        'Read up to the change and from it on, or follow with `on_schema_change="evolve"`.',
    ),
    "RowsChangedError": (
        "A commit deleted or rewrote rows of a table that is followed for new rows.",
        "Follow with `changes=True`, or say what such commits mean: [follow](how-to/follow.md#when-rows-are-deleted-or-rewritten).",
    ),
    "SchemaMismatchError": (
        "The data has a column that the table lacks, or a value that does not fit its type.",
        'Correct the data, or allow it: `schema_mode="merge"` ([schema evolution](cookbook/schema-evolution.md)).',
    ),
    "ConstraintViolationError": (
        "Rows break NOT NULL, a CHECK constraint, or a generated column.",
        "Look at `error.examples`. Nothing was written; correct the rows, or drop the constraint.",
    ),
    "CommitFailedError": (
        "The commit could not be made.",
        "See the subclass. Except after `CommitOutcomeUnknownError` the table is unchanged.",
    ),
    "CommitOutcomeUnknownError": (
        "The connection broke while the commit was sent, and the store cannot be asked.",
        "Look for `error.txn_id` in `history()` before you try again. With an [application transaction](how-to/transactions.md#once-whatever-happens), just try again.",
    ),
    "CommitRetriesExhaustedError": (
        "Many writers commit to the table without a pause.",
        "Put rows together: an [appender](how-to/writing.md#append-from-many-threads-or-tasks), or larger batches.",
    ),
    "TransactionIncompleteError": (
        "A transaction over several tables ended between two commits.",
        "Call `CatalogTransactions.recover()`; it completes the transaction or says why not.",
    ),
    "CommitConflictError": (
        "Another writer committed first, and this result could be wrong after it.",
        "Run the operation again on the newest version. [Concurrency](concurrency.md) says how to avoid it.",
    ),
    "ProtocolChangedError": (
        "Another writer added or dropped a table feature.",
        "Open the table again, and repeat.",
    ),
    "MetadataChangedError": (
        "Another writer changed the schema, a property or a constraint.",
        "Open the table again, check that your data still fits, and repeat.",
    ),
    "ConcurrentAppendError": (
        "Another writer added rows that your predicate might match.",
        "Repeat. Make the predicate narrower, so that it names the partition or cluster that you change.",
    ),
    "ConcurrentDeleteReadError": (
        "Another writer rewrote or removed a file that you read.",
        "Repeat. Do not compact while the same files are changed.",
    ),
    "ConcurrentDeleteDeleteError": (
        "Another writer changed rows in the same file.",
        "Repeat. `delta.enableRowLevelConcurrency` lets changes of different rows pass each other.",
    ),
    "ConcurrentTransactionError": (
        "Two processes run the same job, under the same application id.",
        "End one of them, or give each one an id of its own.",
    ),
    "DomainMetadataConflictError": (
        "Two writers set the same metadata domain, such as clustering columns.",
        "Open the table again, and repeat.",
    ),
    "StorageError": (
        "The network, the disk or the service failed, or an extra is not installed.",
        "Try again; deltalog has already retried. Check endpoint and region ([stores by name](how-to/stores-by-name.md)).",
    ),
    "AlreadyExistsError": (
        "An object is there that must be new.",
        "In your own code for a `Store`: another writer was faster.",
    ),
    "ObjectNotFoundError": (
        "The bucket, container or object does not exist.",
        "Check the name, and the account or endpoint that it is in.",
    ),
    "AccessDeniedError": (
        "No credentials, expired ones, or without the right for this call.",
        "Compare with [stores by name](how-to/stores-by-name.md). Pass a [callable](how-to/stores.md#credentials-that-expire) if they expire.",
    ),
    "CatalogError": (
        "The catalog refused the request; the message has its answer.",
        "Check the name of the table and `error.error_code`.",
    ),
    "CatalogAccessError": (
        "The token is wrong or expired, or its owner lacks the permission.",
        "Get a new token, or ask for the permission that the message names.",
    ),
    "CatalogUnavailableError": (
        "The catalog cannot be reached, or is overloaded.",
        "Check the URL, and try again later.",
    ),
    "SharingError": (
        "The sharing server refused or failed; `error.status` is its HTTP status.",
        "Ask the provider, with the text of the message.",
    ),
    "SharingAccessError": (
        "The profile has expired, or does not give access to this table.",
        "Ask the provider for a new profile.",
    ),
    "ShareNotFoundError": (
        "A name is misspelt, or the table is not shared with you.",
        "`SharingClient(profile).list_all_tables()` lists what is.",
    ),
    "SharingUnavailableError": (
        "The server cannot be reached, or is overloaded.",
        "Check the endpoint in the profile, and try again later.",
    ),
    "InternalError": (
        "A bug in deltalog.",
        "Report it, with the traceback and the output of `deltalog doctor`.",
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
    """A section for each public error: code, meaning, cause, action."""
    return "\n".join(map(_section, public_errors()))


def advice_of(error: type[DeltaError]) -> tuple[str, str]:
    """The usual cause and what to do; of the nearest class that has an entry."""
    return next(ADVICE[cls.__name__] for cls in error.__mro__ if cls.__name__ in ADVICE)


def _section(error: type[DeltaError]) -> str:
    name = error.__name__
    meaning = (inspect.getdoc(error) or "").partition("\n")[0]
    cause, action = advice_of(error)
    bases = [f"`{base.__name__}`" for base in error.__bases__ if base is not DeltaError]
    kind = f" · a kind of {' and '.join(bases)}" if bases else ""
    return (
        f"## {name}\n\n"
        f"{{py:class}}`~deltalog.errors.{name}` · code `{error.code}`{kind}\n\n"
        f"| | |\n|---|---|\n| Meaning | {meaning} |\n| Cause | {cause} |\n| Action | {action} |\n"
    )
