"""Listings, names, errors: what holds for every request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from tests.support.sharing import Caller, sharing

SHARE_ID = "edacc4a7-6600-4fbb-85f3-a62a5ce6761f"


@pytest.mark.protocol("SHARE-LS-01", "SHARE-LS-06", "SHARE-LS-T", "SHARE-GEN-12")
def test_shares(vaccine: Caller) -> None:
    reply = vaccine.get("/shares")
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert reply.json() == {
        "items": [
            {
                "name": "vaccine_share",
                "id": SHARE_ID,
                "displayName": "Vaccines",
                "comment": "about them",
                "properties": {"owner": "acme"},
            },
            {"name": "sales_share"},
        ]
    }
    bob = replace(vaccine, token="token-of-bob")  # noqa: S106
    assert [share["name"] for share in bob.get("/shares").json()["items"]] == ["foreign"]


@pytest.mark.protocol("SHARE-LS-02", "SHARE-GEN-02")
def test_one_share(vaccine: Caller) -> None:
    share = vaccine.get("/shares/VACCINE_Share").json()["share"]
    assert (share["name"], share["id"]) == ("vaccine_share", SHARE_ID)


@pytest.mark.protocol("SHARE-LS-03", "SHARE-LS-04", "SHARE-LS-05")
def test_schemas_and_tables(vaccine: Caller) -> None:
    schemas = vaccine.get("/shares/Vaccine_share/schemas").json()["items"]
    assert schemas[0] == {"name": "acme_vaccine_data", "share": "vaccine_share"}
    start = {"schema": "acme_vaccine_data", "share": "vaccine_share", "shareId": SHARE_ID}
    expected = [
        {"name": "vaccine_ingredients", **start, "id": "1"},
        {"name": "vaccine_patients", **start},
    ]
    tables = vaccine.get("/shares/vaccine_share/schemas/ACME_vaccine_data/tables").json()["items"]
    assert tables == expected
    everything = vaccine.get("/shares/vaccine_share/all-tables").json()["items"]
    assert [table["name"] for table in everything] == [
        "vaccine_ingredients",
        "vaccine_patients",
        "t",
    ]
    assert vaccine.get("/shares/vaccine_share/schemas/empty/tables").json() == {"items": []}


@pytest.mark.protocol("SHARE-LS-02", "SHARE-LS-04", "SHARE-LS-06", "SHARE-SEC-03")
@pytest.mark.parametrize(
    ("foreign", "absent"),
    [
        ("/shares/foreign", "/shares/nowhere"),
        ("/shares/foreign/schemas", "/shares/nowhere/schemas"),
        ("/shares/foreign/all-tables", "/shares/nowhere/all-tables"),
        ("/shares/foreign/schemas/s/tables", "/shares/nowhere/schemas/s/tables"),
        ("/shares/foreign/schemas/s/tables/t/version", "/shares/no/schemas/s/tables/t/version"),
    ],
)
def test_what_is_not_his_is_not_there(vaccine: Caller, foreign: str, absent: str) -> None:
    one, other = vaccine.get(foreign), vaccine.get(absent)
    assert (one.status, one.body) == (other.status, other.body)
    assert one.status == 404
    assert one.json()["errorCode"] == "RESOURCE_DOES_NOT_EXIST"


def _many(count: int) -> Caller:
    return sharing({f"s.d.t{number:04d}": "/x" for number in range(count)})


@pytest.mark.protocol("SHARE-PG-05", "SHARE-PG-03", "SHARE-LS-05")
@pytest.mark.parametrize("listing", ["/shares/s/all-tables", "/shares/S/schemas/D/tables"])
def test_pages_join_to_the_whole(listing: str) -> None:
    caller, names, token = _many(1201), [], ""
    while True:
        page = caller.get(f"{listing}?maxResults=97&pageToken={token}").json()
        names += [table["name"] for table in page["items"]]
        assert len(page["items"]) <= 97
        token = page.get("nextPageToken", "")
        if not token:
            break
    assert names == [f"t{number:04d}" for number in range(1201)]


@pytest.mark.protocol("SHARE-PG-01")
def test_page_sizes() -> None:
    caller = _many(501)
    page = caller.get("/shares/s/all-tables").json()
    assert len(page["items"]) == 500
    assert page["nextPageToken"]
    none = caller.get("/shares/s/all-tables?maxResults=0").json()
    assert none["items"] == []
    assert none["nextPageToken"]
    for wrong in ("-1", "abc", "501", "1.5", "99999999999999999999"):
        reply = caller.get(f"/shares/s/all-tables?maxResults={wrong}")
        assert reply.status == 400, wrong


@pytest.mark.protocol("SHARE-PG-04", "D-73", "SHARE-SEC-05", "SHARE-SEC-03")
def test_page_tokens_belong_to_their_listing(vaccine: Caller) -> None:
    token = vaccine.get("/shares?maxResults=1").json()["nextPageToken"]
    assert vaccine.get(f"/shares?maxResults=1&pageToken={token}").json() == {
        "items": [{"name": "sales_share"}]
    }
    schemas = vaccine.get("/shares/vaccine_share/schemas?maxResults=1").json()["nextPageToken"]
    crossed = vaccine.get(f"/shares/VACCINE_SHARE/schemas?maxResults=1&pageToken={schemas}")
    assert crossed.json()["items"] == [{"name": "empty", "share": "vaccine_share"}]
    bob = replace(vaccine, token="token-of-bob")  # noqa: S106
    wrong = [
        vaccine.get(f"/shares/vaccine_share/schemas?pageToken={token}"),
        vaccine.get(f"/shares/sales_share/schemas?pageToken={schemas}"),
        bob.get(f"/shares?pageToken={token}"),
        vaccine.get("/shares?pageToken=abc"),
        vaccine.get(f"/shares?pageToken={token}x"),
        vaccine.get(f"/shares?pageToken={'A' if token[0] != 'A' else 'B'}{token[1:]}"),
        vaccine.get(f"/shares?pageToken={token[:-1]}{'A' if token[-1] != 'A' else 'B'}"),
    ]
    assert [reply.status for reply in wrong] == [400] * len(wrong)


@pytest.mark.protocol("SHARE-GEN-03")
@pytest.mark.parametrize("name", ["a b", "é", "a%b", "a+b", "a#?b", "ß%2F"])
def test_names_are_percent_encoded(tmp_path: Path, name: str) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    caller = sharing({f"{name}.{name}.{name}": tmp_path / "t"})
    quoted = quote(name, safe="")
    path = f"/shares/{quoted}/schemas/{quoted}/tables/{quoted}"
    assert caller.get(f"{path}/version").headers["delta-table-version"] == "0"
    (table,) = caller.get(f"/shares/{quoted}/all-tables").json()["items"]
    assert table["name"] == name
    file = caller.ask("POST", f"{path}/query").lines()[2]["file"]
    assert caller.download(file["url"]).status == 200
