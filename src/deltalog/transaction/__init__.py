"""One commit: content, conflicts, retry, and maintenance after it.

`pending` collects the content. `conflicts` checks it against commits that won the race. `assemble`
makes the bytes, `commit_loop` retries, and `commit` is the entry point.

Protocol: Delta Log Entries, Actions
"""

from __future__ import annotations

from deltalog.log.context import Committer
from deltalog.transaction.commit import Committed, Ran, commit, stage_and_commit
from deltalog.transaction.committer import Backoff, CatalogCommitter, FileSystemCommitter
from deltalog.transaction.pending import AddAction, PendingTransaction, RemoveAction
from deltalog.transaction.properties import (
    AppTransaction,
    CommitOptions,
    CommitProperties,
    PostCommitHookProperties,
    ReadSet,
    Transaction,
)

__all__ = [
    "AddAction",
    "AppTransaction",
    "Backoff",
    "CatalogCommitter",
    "CommitOptions",
    "CommitProperties",
    "Committed",
    "Committer",
    "FileSystemCommitter",
    "PendingTransaction",
    "PostCommitHookProperties",
    "Ran",
    "ReadSet",
    "RemoveAction",
    "Transaction",
    "commit",
    "stage_and_commit",
]
