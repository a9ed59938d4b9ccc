"""Transactions: turn the content of a commit into a new version of the table.

`pending` collects the content, `conflicts` checks it against commits that won the race, `assemble`
makes the bytes, `commit_loop` retries, and `commit` is the entry point.

Protocol: Delta Log Entries, Actions
"""

from __future__ import annotations

from deltalog.catalog import Committer
from deltalog.transaction.backoff import Backoff
from deltalog.transaction.commit import Committed, Ran, commit, stage_and_commit
from deltalog.transaction.committer import CatalogCommitter, FileSystemCommitter
from deltalog.transaction.file_actions import AddAction, RemoveAction
from deltalog.transaction.pending import PendingTransaction
from deltalog.transaction.properties import (
    AppTransaction,
    CommitOptions,
    CommitProperties,
    PostCommitHookProperties,
    Transaction,
)
from deltalog.transaction.read_set import ReadSet

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
