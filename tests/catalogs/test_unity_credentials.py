"""Credentials that a catalog lends: used for their place, renewed in time, and never shown."""

from __future__ import annotations

import base64
import logging
import pickle
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import DeltaTable, Field, PrimitiveType, StructType, write_deltalake
from deltalog.catalogs.unity import UnityCatalog
from deltalog.errors import (
    AccessDeniedError,
    CatalogAccessError,
    CatalogError,
    DeltaError,
    InvalidInputError,
    UnsafePathError,
)
from deltalog.storage.http import AnswerLimits, HttpOptions, Retry
from tests.support.catalogs import create
from tests.support.emulators import AZURITE_KEY, Emulator
from tests.support.gcs_server import GcsServer
from tests.support.lent_keys import Issuer
from tests.support.openapi import specification
from tests.support.unity_server import Mishap, UnityServer

SCHEMA = StructType((Field("id", PrimitiveType("long")),))
ORDERS = ("sales", "orders")
ROWS = pa.table({"id": [1, 2]})
QUICK = HttpOptions(retry=Retry(attempts=2, first_delay_ms=1))


@pytest.fixture
def issuer(s3: Emulator) -> Iterator[Issuer]:
    issuer = Issuer(s3)
    yield issuer
    issuer.close()


class Time:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.ms = 1_000_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def sleep(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def lending(s3: Emulator, issuer: Issuer, clock: Time) -> Iterator[UnityServer]:
    server = UnityServer(specification(), s3.url)
    server.lend = issuer.lend
    server.now_ms = clock.now_ms
    yield server
    server.close()
    assert server.violations == []


def _catalog(server: UnityServer, s3: Emulator, clock: Time, **more: Any) -> UnityCatalog:
    options = {
        name: text for name, text in s3.options.items() if "KEY" not in name and name != "s3"
    }
    given: dict[str, Any] = {
        "token": server.token,
        "catalog": "main",
        "storage_options": options,
        "http_options": QUICK,
        "clock": clock,
        **more,
    }
    return UnityCatalog(server.url, **given)


@pytest.mark.parametrize("client", ["s3fs", "obstore"])
def test_tables_are_reached_with_what_is_lent(
    lending: UnityServer, s3: Emulator, issuer: Issuer, clock: Time, client: str
) -> None:
    emulator = Emulator(s3.url, {**s3.options, "s3_client": client}, s3.endpoint)
    catalog = _catalog(lending, emulator, clock)
    create(catalog, ORDERS, SCHEMA)
    table = DeltaTable.from_context(catalog.open(ORDERS))
    write_deltalake(table, ROWS, mode="append")
    create(catalog, ("sales", "mine"), SCHEMA, location=f"{s3.url}/mine")
    assert DeltaTable.from_context(catalog.open(ORDERS)).to_pyarrow_table().num_rows == 2
    assert set(issuer.seen) <= {f"LENTKEY{number:04}" for number in range(1, issuer.number + 1)}
    # What comes with the staged table serves to write it.
    assert "getStagingTableCredentials" not in lending.asked
    assert "getTemporaryPathCredentials" in lending.asked


def test_they_are_renewed_before_they_end(
    lending: UnityServer, s3: Emulator, issuer: Issuer, clock: Time
) -> None:
    catalog = _catalog(lending, s3, clock)
    create(catalog, ORDERS, SCHEMA)
    table = DeltaTable.from_context(catalog.open(ORDERS))
    write_deltalake(table, ROWS, mode="append")
    asked = lending.asked.count("getTableCredentials")
    clock.ms += 54 * 60_000
    write_deltalake(table, ROWS, mode="append")
    assert lending.asked.count("getTableCredentials") == asked
    clock.ms += 2 * 60_000  # four minutes are left of the hour
    write_deltalake(table, ROWS, mode="append")
    assert lending.asked.count("getTableCredentials") == asked + 1
    issuer.seen.clear()
    table.to_pyarrow_table()
    assert set(issuer.seen) == {issuer.key}


def test_refused_ones_are_renewed_once(
    lending: UnityServer, s3: Emulator, issuer: Issuer, clock: Time
) -> None:
    catalog = _catalog(lending, s3, clock)
    create(catalog, ORDERS, SCHEMA)
    table = DeltaTable.from_context(catalog.open(ORDERS))
    write_deltalake(table, ROWS, mode="append")
    issuer.refused.add(issuer.key)
    write_deltalake(table, ROWS, mode="append")
    assert table.to_pyarrow_table().num_rows == 4
    issuer.refused.update(f"LENTKEY{number:04}" for number in range(100))
    with pytest.raises(AccessDeniedError) as caught:
        table.update_incremental()
    _check_hidden("".join(traceback.format_exception(caught.value)))


def test_those_for_another_place_are_not_used(
    lending: UnityServer, s3: Emulator, issuer: Issuer, clock: Time
) -> None:
    catalog = _catalog(lending, s3, clock)
    create(catalog, ORDERS, SCHEMA)
    entry = lending.tables["main", "sales", "orders"]
    for prefix in ("s3://another-bucket/", f"{entry.location}x", f"{entry.location}/below"):
        lending.lend = lambda _, at=prefix: [(at, issuer.lend(at)[0][1])]  # type: ignore[misc]
        issuer.seen.clear()
        with pytest.raises(CatalogError, match="another location"):
            DeltaTable.from_context(catalog.open(ORDERS))
        assert issuer.seen == []


def test_the_longest_prefix_is_chosen(
    lending: UnityServer, s3: Emulator, issuer: Issuer, clock: Time
) -> None:
    catalog = _catalog(lending, s3, clock)
    create(catalog, ORDERS, SCHEMA)

    def lend(location: str) -> list[tuple[str, dict[str, str]]]:
        bucket = "/".join(location.split("/")[:3])
        return [
            (f"{bucket}/", {"s3.access-key-id": "WIDE", "s3.secret-access-key": "wide-secret"}),
            (location.replace("s3:", "s3a:"), issuer.lend(location)[0][1]),
        ]

    lending.lend = lend
    issuer.seen.clear()
    DeltaTable.from_context(catalog.open(ORDERS))
    assert set(issuer.seen) == {issuer.key}


def test_without_any_the_callers_own_are_used(
    lending: UnityServer, s3: Emulator, clock: Time
) -> None:
    lending.lend = lambda _: []
    own = _catalog(lending, s3, clock, storage_options=s3.options)
    create(own, ORDERS, SCHEMA)
    write_deltalake(DeltaTable.from_context(own.open(ORDERS)), ROWS, mode="append")
    without = _catalog(lending, s3, clock, storage_options=None)
    with pytest.raises(CatalogAccessError, match="lends no credentials"):
        DeltaTable.from_context(without.open(ORDERS))


@pytest.mark.parametrize(
    "location",
    [
        "file:///etc",
        "/etc",
        "C:\\data",
        "memory://x",
        "http://169.254.169.254/latest",
        "https://host/x",
        "s3://",
        "s3://bucket/a/../../b",
        "s3://bucket/a\nb",
        "github://x/y",
        "",
        "relative/path",
        "ftp://host/x",
        "s3://key:secret@bucket/x",
    ],
)
def test_a_catalog_leads_to_object_stores_alone(
    lending: UnityServer, s3: Emulator, clock: Time, location: str
) -> None:
    catalog = _catalog(lending, s3, clock)
    create(catalog, ORDERS, SCHEMA)
    lending.tables["main", "sales", "orders"].location = location
    with pytest.raises(UnsafePathError) as caught:
        catalog.open(ORDERS)
    assert "key:secret" not in str(caught.value)


def test_secrets_are_in_no_text_and_no_pickle(
    lending: UnityServer,
    s3: Emulator,
    issuer: Issuer,
    clock: Time,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        catalog = _catalog(lending, s3, clock)
        create(catalog, ORDERS, SCHEMA)
        context = catalog.open(ORDERS)
        table = DeltaTable.from_context(context)
        write_deltalake(table, ROWS, mode="append")
        texts = [repr(catalog), repr(context), repr(table), str(table.history()), repr(table)]
        for status in (400, 401, 403, 404, 409, 500):
            lending.mishaps["loadTable"].extend([Mishap(status=status)] * 2)
            with pytest.raises(DeltaError) as caught:
                catalog.open(ORDERS)
            texts.append("".join(traceback.format_exception(caught.value)))
            lending.mishaps["loadTable"].clear()
    assert issuer.number > 0
    _check_hidden(*texts, caplog.text)
    for kept in (catalog, context, table):
        data = pickle.dumps(kept)
        assert lending.token.encode() not in data
        assert b"was-lent" not in data
        assert b"LENTKEY" not in data
    for file in table.snapshot.store.list_all("_delta_log"):
        assert b"was-lent" not in table.snapshot.store.read(file.path)


def _check_hidden(*texts: str) -> None:
    for text in texts:
        assert "a-token-of" not in text
        assert "was-lent" not in text


def test_another_process_has_a_token_of_its_own(
    lending: UnityServer, s3: Emulator, clock: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = _catalog(lending, s3, clock)
    create(catalog, ORDERS, SCHEMA)
    table = DeltaTable.from_context(catalog.open(ORDERS))
    write_deltalake(table, ROWS, mode="append")
    data = pickle.dumps(table)
    with pytest.raises(InvalidInputError, match="pickles_secrets=True"):
        pickle.loads(data)
    monkeypatch.setenv("UNITY_CATALOG_URL", lending.url)
    monkeypatch.setenv("UNITY_CATALOG_TOKEN", lending.token)
    there = pickle.loads(data)
    write_deltalake(there, ROWS, mode="append")
    assert there.to_pyarrow_table().num_rows == 4


def test_pickles_hold_secrets_where_they_are_told_to(
    lending: UnityServer, s3: Emulator, clock: Time
) -> None:
    catalog = _catalog(lending, s3, clock, pickles_secrets=True)
    create(catalog, ORDERS, SCHEMA)
    there = pickle.loads(pickle.dumps(DeltaTable.from_context(catalog.open(ORDERS))))
    write_deltalake(there, ROWS, mode="append")
    assert there.to_pyarrow_table().num_rows == 2


def test_a_service_signs_in(unity: UnityServer) -> None:
    login = f"Basic {base64.b64encode(b'service:its-secret').decode()}"
    unity.oauth[login] = unity.token
    catalog = UnityCatalog(
        unity.url,
        client_id="service",
        client_secret="its-secret",  # noqa: S106
        catalog="main",
        allows_local_files=True,
        http_options=QUICK,
    )
    create(catalog, ORDERS, SCHEMA)
    assert unity.asked.count("token") == 1
    # The server takes another token from now on: one more is fetched.
    unity.token = unity.oauth[login] = "another-token"  # noqa: S105
    assert catalog.find(ORDERS) is not None
    assert unity.asked.count("token") == 2
    unity.oauth.clear()
    unity.token = "yet-another"  # noqa: S105
    with pytest.raises(CatalogAccessError, match=r"401 \(invalid_client\)") as caught:
        catalog.find(ORDERS)
    assert "its-secret" not in str(caught.value)
    assert "its-secret" not in repr(catalog)


def test_a_wrong_token_is_refused(unity: UnityServer, tmp_path: Path) -> None:
    del tmp_path
    catalog = UnityCatalog(unity.url, token="wrong", catalog="main", http_options=QUICK)  # noqa: S106
    with pytest.raises(CatalogAccessError, match="401"):
        catalog.find(ORDERS)
    with pytest.raises(InvalidInputError, match="printable"):
        UnityCatalog(unity.url, token="two\r\nlines")  # noqa: S106


def test_those_of_google_are_used(gcs: Emulator, clock: Time) -> None:
    _check_place(gcs, clock, {"gcs.oauth-token": "lent-by-the-catalog"}, gcs.options)
    assert GcsServer.running[gcs.endpoint].tokens == {"Bearer lent-by-the-catalog"}


@pytest.mark.emulator
def test_those_of_azure_are_used(azure: Emulator, clock: Time) -> None:
    from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

    signature = generate_account_sas(
        "devstoreaccount1",
        AZURITE_KEY,
        resource_types=ResourceTypes(service=True, container=True, object=True),
        permission=AccountSasPermissions(read=True, write=True, delete=True, list=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
        start=datetime.now(UTC) - timedelta(hours=1),
    )
    _check_place(azure, clock, {"azure.sas-token": signature}, azure.options)


def _check_place(
    place: Emulator, clock: Time, config: dict[str, str], options: dict[str, str]
) -> None:
    """A table there is written and read with what is lent, and with nothing of the caller's."""
    server = UnityServer(specification(), place.url)
    server.now_ms = clock.now_ms
    server.lend = lambda location: [(location, config)]
    own = {
        name: text
        for name, text in options.items()
        if "key" not in name.lower() and "signature" not in name
    }
    catalog = _catalog(server, place, clock, storage_options=own)
    create(catalog, ORDERS, SCHEMA)
    table = DeltaTable.from_context(catalog.open(ORDERS))
    write_deltalake(table, ROWS, mode="append")
    assert table.to_pyarrow_table().num_rows == 2
    server.close()
    assert server.violations == []


NONSENSE = [b"", b"no JSON", b"\xff\xfe", b"[]", b"null", b"{}", b"[" * 5000]


@pytest.mark.parametrize(
    ("operation", "raw"),
    [
        *(
            ("getConfig", raw)
            for raw in (*NONSENSE, b'{"endpoints": "GET"}', b'{"endpoints": [1]}')
        ),
        *(
            ("loadTable", raw)
            for raw in (
                *NONSENSE,
                b'{"metadata": []}',
                b'{"metadata": {"table-uuid": 1}}',
                b'{"metadata": {"table-type": "VIEW", "table-uuid": "x"}}',
            )
        ),
    ],
)
def test_nonsense_is_an_error_with_a_name(unity: UnityServer, operation: str, raw: bytes) -> None:
    catalog = UnityCatalog(unity.url, token=unity.token, catalog="main", http_options=QUICK)
    unity.mishaps[operation].append(Mishap(raw=raw))
    with pytest.raises(CatalogError, match="malformed answer"):
        catalog.find(ORDERS)


@pytest.mark.parametrize(
    "raw",
    [
        *NONSENSE,
        b'{"storage-credentials": 7}',
        b'{"storage-credentials": ["a-secret"]}',
        b'{"storage-credentials": [{"prefix": ["a-secret"]}]}',
        b'{"storage-credentials": [{"prefix": "s3://b", "config": ["a-secret"]}]}',
        b'{"storage-credentials": [{"prefix": "", "config": {"gcs.oauth-token": ["a-secret"]}}]}',
        b'{"storage-credentials": [{"prefix": "s3://b", "expiration-time-ms": "a-secret"}]}',
    ],
)
def test_damaged_credentials_are_not_quoted(
    lending: UnityServer, s3: Emulator, clock: Time, raw: bytes
) -> None:
    catalog = _catalog(lending, s3, clock)
    create(catalog, ORDERS, SCHEMA)
    # What only saves work, as the hint of a checkpoint, may fail: hence more than one.
    lending.mishaps["getTableCredentials"].extend([Mishap(raw=raw)] * 20)
    with pytest.raises(CatalogError, match="malformed answer") as caught:
        DeltaTable.from_context(catalog.open(ORDERS))
    assert "a-secret" not in "".join(traceback.format_exception(caught.value))


def test_an_answer_without_end_is_not_taken(unity: UnityServer) -> None:
    options = HttpOptions(retry=Retry(attempts=1), limits=AnswerLimits(message_bytes=1000))
    catalog = UnityCatalog(unity.url, token=unity.token, catalog="main", http_options=options)
    unity.mishaps["getConfig"].append(Mishap(raw=b" " * 2000))
    with pytest.raises(CatalogError, match="longer than 1000 bytes"):
        catalog.find(ORDERS)


def test_a_redirect_does_not_take_the_token_elsewhere(unity: UnityServer, tmp_path: Path) -> None:
    other = UnityServer(specification(), f"file://{tmp_path}")
    unity.mishaps["getConfig"].append(Mishap(raw=b"", status=307, headers={"Location": other.url}))
    catalog = UnityCatalog(unity.url, token=unity.token, catalog="main", http_options=QUICK)
    with pytest.raises(CatalogError, match="credentials are not sent"):
        catalog.find(ORDERS)
    assert other.asked == []
    other.close()
