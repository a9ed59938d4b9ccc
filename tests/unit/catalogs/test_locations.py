"""Places that a catalog names, and the credentials that it lends for them."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from deltalog._util.clock import SystemClock
from deltalog.catalogs.locations import (
    LentCredential,
    LentOptions,
    check_location,
    check_staged_name,
)
from deltalog.errors import (
    CatalogAccessError,
    CatalogError,
    CatalogUnavailableError,
    UnsafePathError,
)
from deltalog.storage.options import ExpiringOptions, sent_to_tasks

PLACE = "s3://bucket/tables/one"
NAME = "00000000000000000007.123e4567-e89b-12d3-a456-426614174000.json"


class Time(SystemClock):
    """A clock that is moved by hand."""

    ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms


@dataclass
class Bank:
    """Lends numbered credentials for a while."""

    clock: Time = field(default_factory=Time)
    pickles_secrets: bool = False
    prefix: str = PLACE
    lasts_ms: int | None = 3_600_000
    given: int = 0
    is_closed: bool = False

    def lend(self) -> Sequence[LentCredential]:
        if self.is_closed:
            raise CatalogUnavailableError("cannot lend: the bank is closed")
        self.given += 1
        if not self.prefix:
            return ()
        ends = None if self.lasts_ms is None else self.clock.ms + self.lasts_ms
        options = {"aws_access_key_id": f"key {self.given}"}
        return (LentCredential(prefix=self.prefix, options=options, expires_ms=ends),)


@pytest.mark.parametrize(
    "location",
    [
        PLACE,
        "s3a://bucket/x",
        "gs://bucket/x",
        "abfss://container@account.dfs.core.windows.net/x",
        "hdfs://name:8020/x",
        "s3://bucket/a b/ü",
    ],
)
def test_object_stores_are_allowed(location: str) -> None:
    check_location(location, allows_local=False)


@pytest.mark.parametrize("location", ["file:///a/b", "/a/b", "file:/a"])
def test_local_files_need_a_word(location: str) -> None:
    check_location(location, allows_local=True)
    with pytest.raises(UnsafePathError, match="allows_local_files"):
        check_location(location, allows_local=False)


@pytest.mark.parametrize(
    "location", ["relative", "file:///a/../b", "memory://a", "https://h/x", ""]
)
def test_some_places_are_never_allowed(location: str) -> None:
    with pytest.raises(UnsafePathError):
        check_location(location, allows_local=True)


def test_names_of_staged_commits() -> None:
    assert check_staged_name(NAME, 7) == NAME
    for name, version in ((NAME, 8), (f"../{NAME}", 7), (NAME + "x", 7), (NAME[1:], 7)):
        with pytest.raises(UnsafePathError):
            check_staged_name(name, version)


def test_they_are_asked_for_when_they_are_needed_and_renewed_in_time() -> None:
    bank = Bank()
    options = LentOptions(bank, PLACE, {"region": "here"})
    assert isinstance(options, ExpiringOptions)
    assert (bank.given, options.is_due()) == (0, False)
    assert options() == {"region": "here", "aws_access_key_id": "key 1"}
    assert options() == {"region": "here", "aws_access_key_id": "key 1"}
    bank.clock.ms += 3_300_000
    assert options.is_due()
    assert options()["aws_access_key_id"] == "key 2"
    options.refuse()
    assert options()["aws_access_key_id"] == "key 3"


def test_those_that_last_for_minutes_are_used_for_most_of_them() -> None:
    bank = Bank(lasts_ms=60_000)
    options = LentOptions(bank, PLACE, None)
    options()
    bank.clock.ms += 47_000
    assert not options.is_due()
    bank.clock.ms += 1_000
    assert options.is_due()


def test_those_without_an_end_stay() -> None:
    bank = Bank(lasts_ms=None)
    options = LentOptions(bank, PLACE, None)
    options()
    bank.clock.ms += 10**12
    assert not options.is_due()


@pytest.mark.parametrize(
    ("prefix", "fits"),
    [
        ("s3://bucket/tables/one/", True),
        ("s3a://bucket/tables", True),
        ("s3://bucket", True),
        ("s3://bucket/tables/on", False),
        ("s3://bucket/tables/one/two", False),
        ("s3://other/tables/one", False),
        ("gs://bucket/tables/one", False),
    ],
)
def test_they_are_for_their_place_alone(prefix: str, fits: bool) -> None:
    options = LentOptions(Bank(prefix=prefix), PLACE, {})
    if fits:
        assert options() == {"aws_access_key_id": "key 1"}
    else:
        with pytest.raises(CatalogError, match="another location"):
            options()


def test_without_any_the_callers_are_used_or_none() -> None:
    assert LentOptions(Bank(prefix=""), PLACE, {"mine": "1"})() == {"mine": "1"}
    assert LentOptions(Bank(prefix=""), "file:///a", None)() == {}
    with pytest.raises(CatalogAccessError, match="storage_options"):
        LentOptions(Bank(prefix=""), PLACE, None)()


def test_what_came_with_another_answer_is_used_first() -> None:
    bank = Bank()
    options = LentOptions(bank, PLACE, None)
    options.take(bank.lend())
    assert (options()["aws_access_key_id"], bank.given) == ("key 1", 1)


@pytest.mark.parametrize("pickles_secrets", [False, True])
def test_pickles_hold_them_only_when_told_to(pickles_secrets: bool) -> None:
    options = LentOptions(Bank(pickles_secrets=pickles_secrets), PLACE, None)
    options()
    data = pickle.dumps(options)
    assert (b"key 1" in data) == pickles_secrets
    there = pickle.loads(data)
    assert there()["aws_access_key_id"] == ("key 1" if pickles_secrets else "key 2")
    assert "key" not in repr(options)


def _sent(options: LentOptions) -> LentOptions:
    with sent_to_tasks():
        data = pickle.dumps(options)
    found: LentOptions = pickle.loads(data)
    return found


def test_tasks_get_them_and_renew_them() -> None:
    bank = Bank()
    options = LentOptions(bank, PLACE, None)
    assert _sent(options)()["aws_access_key_id"] == "key 1"  # asked for to be sent
    there = _sent(options)
    assert (there()["aws_access_key_id"], bank.given) == ("key 1", 1)
    bank.clock.ms += 3_400_000
    assert _sent(options)()["aws_access_key_id"] == "key 2"  # those that end soon are not sent
    there._lender.clock.ms = bank.clock.ms  # type: ignore[attr-defined]  # a clock of the test
    assert there()["aws_access_key_id"] == "key 2"  # of its own lender


def test_what_cannot_be_asked_for_is_asked_for_by_the_task() -> None:
    bank = Bank(is_closed=True)
    there = _sent(LentOptions(bank, PLACE, None))
    with pytest.raises(CatalogUnavailableError):
        there()


def test_those_at_hand_serve_to_their_end_where_none_are_lent() -> None:
    bank = Bank(lasts_ms=100_000)
    options = LentOptions(bank, PLACE, None)
    options()
    bank.is_closed = True
    bank.clock.ms += 80_000
    assert options.is_due()
    assert options()["aws_access_key_id"] == "key 1"
    assert not options.is_due()  # not for each request
    bank.clock.ms += 11_000
    assert options.is_due()
    assert options()["aws_access_key_id"] == "key 1"
    bank.clock.ms += 9_000
    with pytest.raises(CatalogUnavailableError):
        options()
    bank.is_closed = False
    assert options()["aws_access_key_id"] == "key 2"


def test_refused_ones_do_not_serve() -> None:
    bank = Bank()
    options = LentOptions(bank, PLACE, None)
    options()
    bank.is_closed = True
    options.refuse()
    with pytest.raises(CatalogUnavailableError):
        options()


def test_threads_share_them() -> None:
    bank = Bank()
    options = LentOptions(bank, PLACE, None)
    threads = [threading.Thread(target=options) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bank.given == 1
