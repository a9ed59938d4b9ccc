"""What a catalog hands in."""

from __future__ import annotations

import pytest

from deltalog._util.paths import FileInfo
from deltalog.errors import InvalidInputError
from deltalog.log.context import LogTail, RatifiedCommit


def ratified(*versions: int) -> tuple[RatifiedCommit, ...]:
    return tuple(
        RatifiedCommit(
            version=version, file=FileInfo(f"_delta_log/_staged_commits/{version}", 1, 1)
        )
        for version in versions
    )


def test_the_last_version_is_the_catalogs() -> None:
    assert LogTail().last_version is None
    assert LogTail(latest_version=3).last_version == 3
    assert LogTail(commits=ratified(4, 5)).last_version == 5
    assert LogTail(commits=ratified(4, 5), latest_version=5).last_version == 5


@pytest.mark.parametrize("versions", [(1, 3), (2, 1), (1, 1)])
def test_a_tail_with_holes_is_refused(versions: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInputError):
        LogTail(commits=ratified(*versions))


def test_a_tail_that_ends_elsewhere_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        LogTail(commits=ratified(1, 2), latest_version=3)
