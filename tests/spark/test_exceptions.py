"""Errors under the names of `delta.exceptions`."""

from __future__ import annotations

import pytest

from deltalog import errors
from deltalog.spark import exceptions


@pytest.mark.parametrize("name", exceptions.__all__)
def test_what_deltas_users_catch_is_what_is_raised(name: str) -> None:
    assert issubclass(getattr(exceptions, name), errors.CommitFailedError)


def test_one_name_catches_every_conflict() -> None:
    with pytest.raises(exceptions.DeltaConcurrentModificationException):
        raise exceptions.ConcurrentAppendException("another writer added rows")
