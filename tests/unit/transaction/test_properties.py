"""What a caller may say about a commit, and what is refused before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.transaction.properties import (
    USUAL,
    AppTransaction,
    CommitOptions,
    CommitProperties,
    PostCommitHookProperties,
    Transaction,
)


def test_deltalakes_name_is_the_same_class() -> None:
    assert Transaction is AppTransaction
    assert Transaction("app", 1) == AppTransaction("app", 1, None)


def test_what_is_left_out_is_the_tables_to_decide() -> None:
    assert CommitOptions() == USUAL
    assert (USUAL.properties, USUAL.hooks, USUAL.on_conflict) == (None, None, "retry")
    hooks = PostCommitHookProperties()
    assert (hooks.create_checkpoint, hooks.write_checksum) == (True, True)
    assert (hooks.cleanup_expired_logs, hooks.auto_compact) == (None, None)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"custom_metadata": {}, "app_transactions": []},
        {"custom_metadata": {"a": "b"}, "max_commit_retries": 0},
        {"app_transactions": [AppTransaction("a", 1), AppTransaction("b", 1)]},
        {"max_retries": 0},
    ],
)
def test_what_may_be_said(given: dict[str, Any]) -> None:
    properties = CommitProperties(**given)
    assert CommitOptions(properties=properties).properties is properties


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"custom_metadata": [("a", "b")]}, "custom_metadata: expected a dictionary"),
        ({"custom_metadata": "a"}, "custom_metadata"),
        ({"app_transactions": AppTransaction("a", 1)}, "app_transactions: expected a list"),
        ({"app_transactions": [("a", 1)]}, "app_transactions"),
        ({"app_transactions": [AppTransaction("a", 1), None]}, "app_transactions"),
        ({"max_retries": -1}, "max_retries: expected a number from 0, found -1"),
        ({"max_retries": "2"}, "max_retries"),
    ],
)
def test_what_would_fail_in_the_middle_of_a_commit(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CommitProperties(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"properties": {"a": "b"}},
            r"a dict; write CommitProperties\(custom_metadata={'a': 'b'}\)$",
        ),
        ({"properties": {"max_retries": 1}}, r"a dict; write CommitProperties\(max_retries=1\)$"),
        (
            {"hooks": {"create_checkpoint": False}},
            r"write PostCommitHookProperties\(create_checkpoint=False\)$",
        ),
        ({"hooks": {}}, "post_commithook_properties: expected PostCommitHookProperties"),
        ({"properties": PostCommitHookProperties()}, "found a PostCommitHookProperties"),
        ({"on_conflict": "ignore"}, "'retry' or 'raise', found 'ignore'"),
        ({"on_conflict": None}, "found None"),
    ],
)
def test_options_are_of_their_class(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        CommitOptions(**given)
