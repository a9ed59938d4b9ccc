"""The kinds of stores, by their schemes and their options."""

from __future__ import annotations

import pickle

import pytest

from deltalog._util.paths import store_kind
from deltalog._util.store_kinds import LOCAL, PutIfAbsent, StoreKind, kind_named, split_option


def test_schemes_of_one_service_are_one() -> None:
    assert kind_named("S3A") is kind_named("s3") is store_kind("s3n://b/t")
    assert kind_named("abfss").name == kind_named("wasbs").name == "az"
    assert kind_named("") is kind_named("c") is store_kind("/x") is LOCAL


def test_a_scheme_that_nobody_knows_can_do_nothing() -> None:
    kind = kind_named("Nosuch")
    assert kind.name == "nosuch"
    assert (kind.put_if_absent, kind.is_native, kind.is_hadoop, kind.can_sign) == (
        None, False, False, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("file", PutIfAbsent.LINK),
        ("memory", PutIfAbsent.LOCK),
        ("s3", PutIfAbsent.REQUEST),
        ("az", PutIfAbsent.REQUEST),
        ("gs", PutIfAbsent.REQUEST),
        ("hdfs", None),
        ("https", None),
    ],
)
def test_what_a_commit_rests_on(scheme: str, expected: PutIfAbsent | None) -> None:
    assert kind_named(scheme).put_if_absent is expected


@pytest.mark.parametrize(
    ("option", "kind", "rest"),
    [
        ("AWS_Region", "s3", "region"),
        ("azure_storage_account_name", "az", "account_name"),  # the longer prefix counts
        ("AZURE_tenant_id", "az", "tenant_id"),
        ("google_service_account", "gs", "service_account"),
        ("Timeout", None, "timeout"),
        ("", None, ""),
    ],
)
def test_options_say_whose_they_are(option: str, kind: str | None, rest: str) -> None:
    found, name = split_option(option)
    assert (found and found.name, name) == (kind, rest)


def test_a_kind_is_its_name() -> None:
    assert StoreKind("x", extra="a") == StoreKind("x", extra="b")
    assert len({StoreKind("x"), StoreKind("x", extra="b"), StoreKind("y")}) == 2
    assert StoreKind("x") != "x"
    assert pickle.loads(pickle.dumps(LOCAL)) == LOCAL
