"""URLs that a store signs, fetched by somebody who has no credentials."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from deltalog.errors import StorageError
from deltalog.storage import FsspecStore, SigningStore
from tests.support.emulators import Emulator

pytestmark = pytest.mark.emulator

NAMES = ["a b.parquet", "é.parquet", "p=x%3Ay/100%25.parquet", "plus+&.parquet", "h#x.parquet"]


@pytest.fixture(params=["s3fs", "obstore", "azure", "signing_gcs"])
def store(request: pytest.FixtureRequest) -> FsspecStore:
    emulator: Emulator = request.getfixturevalue(request.param)
    return FsspecStore(emulator.url, emulator.options)


@pytest.mark.protocol("D-76")
@pytest.mark.parametrize("name", NAMES)
def test_a_signed_url_leads_to_the_decoded_name(store: FsspecStore, name: str) -> None:
    store.put(name, name.encode())
    assert isinstance(store, SigningStore)
    assert store.can_sign
    with urllib.request.urlopen(store.signed_url(name, 60)) as answer:  # noqa: S310
        assert answer.read() == name.encode()


def test_s3_signs_as_official_clients_want_it(s3: Emulator) -> None:
    store = FsspecStore(s3.url, s3.options)
    assert "X-Amz-Signature=" in store.signed_url("a.parquet", 60)


def test_local_files_have_no_urls() -> None:
    local = FsspecStore("/tmp/table")  # noqa: S108
    assert not local.can_sign
    with pytest.raises(StorageError, match="cannot sign"):
        local.signed_url("a.parquet", 60)
