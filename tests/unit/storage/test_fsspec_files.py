"""Calls over fsspec: credentials that expire are asked for again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from deltalog.errors import AccessDeniedError, ObjectNotFoundError
from deltalog.storage import FsspecStore
from deltalog.storage.stores.fsspec_files import _file_info
from tests.support.filesystems import ExpiringFileSystem


class Fresh:
    """Hands out credentials, each good for a few requests, and counts how often."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> dict[str, Any]:
        self.asked += 1
        return {"ticket": self.asked, "password": f"SECRET{self.asked}"}


@pytest.fixture
def fresh() -> Fresh:
    ExpiringFileSystem.register()
    ExpiringFileSystem.valid_from = 1
    return Fresh()


def test_expired_credentials_are_asked_for_again(fresh: Fresh) -> None:
    store = FsspecStore("expiring://t", fresh)
    assert store.read("x") == b"t/x 1"
    assert store.read("x") == b"t/x 1"
    assert fresh.asked == 1
    ExpiringFileSystem.valid_from = 2
    assert store.read("x") == b"t/x 2"
    assert fresh.asked == 2


def test_credentials_are_asked_for_once_per_failure(fresh: Fresh) -> None:
    ExpiringFileSystem.valid_from = 99
    store = FsspecStore("expiring://t", fresh)
    with pytest.raises(AccessDeniedError) as caught:
        store.read("x")
    assert fresh.asked == 2
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None  # it would show the secret in a traceback


def test_other_errors_do_not_renew_credentials(fresh: Fresh) -> None:
    store = FsspecStore("expiring://t", fresh)
    with pytest.raises(ObjectNotFoundError):
        store.read("missing")
    assert fresh.asked == 1


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"size": 3, "mtime": 1.5}, (3, 1500)),
        ({"size": None, "created": 2}, (0, 2000)),
        ({"LastModified": datetime(2024, 1, 1, tzinfo=UTC)}, (0, 1_704_067_200_000)),
        ({"updated": "2024-01-01T00:00:00Z", "created": 2}, (0, 1_704_067_200_000)),
        ({}, (0, 0)),
    ],
)
def test_what_a_listing_says_of_a_file(entry: dict[str, Any], expected: tuple[int, int]) -> None:
    found = _file_info("a", entry)
    assert (found.path, found.size_bytes, found.modified_ms) == ("a", *expected)
