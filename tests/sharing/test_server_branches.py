"""Sharing a branch of a table instead of main."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.sharing.server.config_settings import parse_config
from tests.support.sharing import (
    Caller,
    actions,
    changes,
    config_of,
    path_of,
    sharing,
    shown_rows,
)

BRANCH = "s.d.t"
MAIN = "s.d.main"
VERSION = "delta-table-version"


@pytest.fixture
def table(tmp_path: Path) -> DeltaTable:
    """Version 0 of main has the ids 0 to 3 in two files."""
    feed = {"delta.enableChangeDataFeed": "true"}
    write_deltalake(tmp_path / "t", {"id": [0, 1]}, configuration=feed)
    write_deltalake(tmp_path / "t", {"id": [2, 3]}, mode="append")
    return DeltaTable(tmp_path / "t")


@pytest.fixture
def caller(table: DeltaTable) -> Caller:
    """Someone who gets the branch `nightly`, with its history, and main."""
    branch = {"location": table.table_uri, "branch": "nightly", "historyShared": True}
    return sharing({BRANCH: branch, MAIN: table.table_uri})


def _ids(caller: Caller) -> list[int]:
    return [row["id"] for row in shown_rows(caller)]


def test_a_branch_is_shared_beside_main(table: DeltaTable, caller: Caller) -> None:
    assert caller.query(BRANCH).status == 404
    draft = table.branch("nightly")
    assert _ids(caller) == [0, 1, 2, 3]
    draft.delete("id = 2")
    write_deltalake(draft, {"id": [4]}, mode="append")
    write_deltalake(table, {"id": [9]}, mode="append")
    assert _ids(caller) == [0, 1, 3, 4]
    assert caller.get(f"{path_of(BRANCH)}/version").headers[VERSION] == "3"
    assert len(actions(caller.query(MAIN), "file")) == 3
    since = changes(caller, "startingVersion=2")
    assert [file["version"] for file in actions(since, "cdf")] == [2]
    assert [file["version"] for file in actions(since, "add")] == [3]


def test_a_published_branch_is_not_shared_and_the_next_one_is(
    table: DeltaTable, caller: Caller
) -> None:
    draft = table.branch("nightly")
    write_deltalake(draft, {"id": [4]}, mode="append")
    assert _ids(caller) == [0, 1, 2, 3, 4]
    draft.publish()
    assert caller.query(BRANCH).status == 404
    assert caller.get(f"{path_of(BRANCH)}/version").status == 404
    again = DeltaTable(table.table_uri).branch("nightly")
    again.delete("id < 3")
    assert _ids(caller) == [3, 4]


@pytest.mark.parametrize("columns", [None, ["id"]], ids=["table", "view"])
def test_tokens_belong_to_one_branch(table: DeltaTable, columns: list[str] | None) -> None:
    settings = {"location": table.table_uri, "branch": "nightly"}
    caller = sharing({BRANCH: {**settings, **({"columns": columns} if columns else {})}})
    first = table.branch("nightly")
    write_deltalake(first, {"id": [4]}, mode="append")
    reply = caller.query(BRANCH, {"maxFiles": 1, "includeRefreshToken": True})
    (end,) = actions(reply, "endStreamAction")
    assert caller.query(BRANCH, {"maxFiles": 1, "pageToken": end["nextPageToken"]}).status == 200
    first.discard()
    # The second branch has the same versions with other files.
    write_deltalake(table.branch("nightly"), {"id": [5]}, mode="append")
    for token in (
        {"maxFiles": 1, "pageToken": end["nextPageToken"]},
        {"refreshToken": end["refreshToken"]},
    ):
        refused = caller.query(BRANCH, token)
        assert refused.status == 400
        assert "the token belongs to another query" in refused.body.decode()
    assert _ids(caller) == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"branch": "a b"}, "branch: expected the name of a branch, found 'a b'"),
        ({"branch": "main"}, "branch: expected the name of a branch, found 'main'"),
        ({"branch": 5}, "branch"),
        (
            {"branch": "nightly", "temporaryCredentials": {"seconds": 900}},
            "temporaryCredentials: would give access to the whole table",
        ),
    ],
)
def test_settings_of_a_branch(settings: dict[str, object], message: str) -> None:
    config = config_of({BRANCH: {"location": "/x", **settings}})
    with pytest.raises(InvalidInputError, match=message):
        parse_config(config)
