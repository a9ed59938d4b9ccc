"""URLs that stores sign: what a plain HTTP client can do with them, and what nobody can."""

from __future__ import annotations

import io
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import write_deltalake
from deltalog.sharing.server import app
from tests.support.asgi import serving
from tests.support.emulators import Emulator
from tests.support.sharing import Caller, actions, config_of, sharing, write_profile
from tests.support.signatures import is_signed_by_amazon

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),  # the official client's
]

T = "s.d.t"
ROWS = pa.table({"id": [1, 2], "day": ["a b%:c", "é"]})
STORES = ["s3", "azure", "signing_gcs"]
# Which parameter holds the signature, and which when the URL ends. moto checks neither.
PARAMETERS = {"azure": ("sig", "se"), "signing_gcs": ("X-Goog-Signature", "X-Goog-Expires")}


def _shared(store: Emulator, **more: object) -> Caller:
    write_deltalake(store.url, ROWS, partition_by=["day"], storage_options=store.options)
    return sharing({T: {"location": store.url, "storageOptions": store.options}}, **more)


def _fetch(url: str, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  # our own URLs
    try:
        with urllib.request.urlopen(request) as answer:  # noqa: S310
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""


@pytest.mark.protocol("SHARE-SEC-01", "D-76")
@pytest.mark.parametrize("store", STORES)
def test_urls_lead_to_the_store_and_give_ranges(store: str, request: pytest.FixtureRequest) -> None:
    emulator: Emulator = request.getfixturevalue(store)
    found: list[Any] = []
    for file in actions(_shared(emulator).query(T), "file"):
        url = file["url"]
        assert url.startswith(emulator.endpoint)
        status, data = _fetch(url)
        assert (status, len(data)) == (200, file["size"])
        found += pq.read_table(io.BytesIO(data))["id"].to_pylist()
        assert _fetch(url, Range="bytes=0-3") == (206, b"PAR1")
        assert _fetch(url, Range=f"bytes={len(data) - 8}-{len(data) - 5}") == (206, data[-8:-4])
    assert sorted(found) == [1, 2]


@pytest.mark.protocol("SHARE-SEC-01")
@pytest.mark.parametrize("store", PARAMETERS)
def test_urls_that_were_changed_open_nothing(store: str, request: pytest.FixtureRequest) -> None:
    one, other = actions(_shared(request.getfixturevalue(store)).query(T), "file")
    url = one["url"]
    query = parse_qs(urlsplit(url).query)
    for name in PARAMETERS[store]:
        (value,) = query[name]
        old = url.partition(f"{name}=")[2].partition("&")[0]
        new = {"se": "2099-01-01T00%3A00%3A00Z", "X-Goog-Expires": "604800"}.get(name)
        changed = new or old[:-6] + ("A" * 6 if value[-6:] != "A" * 6 else "B" * 6)
        assert _fetch(url.replace(f"{name}={old}", f"{name}={changed}"))[0] == 403
    path, of_other = urlsplit(url).path, urlsplit(other["url"]).path
    assert _fetch(url.replace(path, of_other))[0] == 403
    assert _fetch(url.partition("?")[0])[0] in {403, 404, 409}


@pytest.mark.protocol("SHARE-SEC-01")
def test_what_s3_signs_is_one_get_of_one_object(s3: Emulator) -> None:
    caller = _shared(s3, preSignedUrlTimeoutSeconds=900)
    one, other = actions(caller.query(T), "file")
    parts = urlsplit(one["url"])
    target, secret = f"{parts.path}?{parts.query}", s3.options["AWS_SECRET_ACCESS_KEY"]
    assert is_signed_by_amazon(secret, parts.netloc, target)
    assert parse_qs(parts.query)["X-Amz-Expires"] == ["900"]
    for changed in (
        target.replace("X-Amz-Expires=900", "X-Amz-Expires=901"),
        target.replace(parts.path, urlsplit(other["url"]).path),
    ):
        assert not is_signed_by_amazon(secret, parts.netloc, changed)
    assert not is_signed_by_amazon("another secret", parts.netloc, target)


@pytest.mark.parametrize("use_delta_format", [False, True])
@pytest.mark.parametrize("store", STORES)
def test_the_official_client_reads_through_them(
    store: str, use_delta_format: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    delta_sharing = pytest.importorskip("delta_sharing", reason="delta-sharing is not installed")
    emulator: Emulator = request.getfixturevalue(store)
    write_deltalake(emulator.url, ROWS, partition_by=["day"], storage_options=emulator.options)
    config = config_of({T: {"location": emulator.url, "storageOptions": emulator.options}})
    with serving(app(config)) as url:
        profile = write_profile(tmp_path / "profile.share", f"{url}/delta-sharing/")
        frame = delta_sharing.load_as_pandas(f"{profile}#{T}", use_delta_format=use_delta_format)
    assert sorted(zip(frame["id"], frame["day"], strict=True)) == [(1, "a b%:c"), (2, "é")]


def test_credentials_that_cannot_sign_let_the_server_do_it(gcs: Emulator) -> None:
    caller = _shared(gcs)
    (one, _) = actions(caller.query(T), "file")
    assert urlsplit(one["url"]).path.startswith("/delta-sharing/_files/")
    assert len(caller.download(one["url"]).body) == one["size"]


@pytest.mark.protocol("D-76")
def test_a_store_that_signs_is_not_read_through_us(s3: Emulator) -> None:
    rows = pa.table({"id": [1], "p": ["a b%:c"]})
    write_deltalake(s3.url, rows, partition_by=["p"], storage_options=s3.options)
    config = {"location": s3.url, "storageOptions": s3.options}
    caller = sharing({T: config})
    (file,) = actions(caller.query(T), "file")
    assert file["url"].startswith(s3.endpoint)
    with urllib.request.urlopen(file["url"]) as answer:  # noqa: S310
        assert len(answer.read()) == file["size"]
    through_us = sharing({T: config}, ownUrls=True)
    (file,) = actions(through_us.query(T), "file")
    assert "_files" in file["url"]
    assert len(through_us.download(file["url"]).body) == file["size"]
