"""Listings, names, errors: what holds for every request."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.sharing.server import app
from tests.support.asgi import ask
from tests.support.sharing import KEY, PREFIX, TOKEN, Caller, config_of, path_of, sharing

SHARE_ID = "edacc4a7-6600-4fbb-85f3-a62a5ce6761f"


@pytest.fixture
def caller() -> Caller:
    """The example of the specification, and a share of somebody else."""
    return Caller(
        app(
            {
                "shares": [
                    {
                        "name": "vaccine_share",
                        "id": SHARE_ID,
                        "displayName": "Vaccines",
                        "comment": "about them",
                        "properties": {"owner": "acme"},
                        "schemas": [
                            {
                                "name": "acme_vaccine_data",
                                "tables": [
                                    {"name": "vaccine_ingredients", "location": "/x", "id": "1"},
                                    {"name": "vaccine_patients", "location": "/y"},
                                ],
                            },
                            {"name": "empty"},
                            {"name": "more", "tables": [{"name": "t", "location": "/z"}]},
                        ],
                    },
                    {"name": "sales_share", "schemas": []},
                    {"name": "foreign", "schemas": [{"name": "s"}]},
                ],
                "recipients": [
                    {"name": "alice", "token": TOKEN, "shares": ["vaccine_share", "sales_share"]},
                    {"name": "bob", "token": "token-of-bob", "shares": ["foreign"]},
                ],
                "signingKey": KEY,
            }
        )
    )


@pytest.mark.protocol("SHARE-LS-01", "SHARE-LS-06", "SHARE-LS-T", "SHARE-GEN-12")
def test_shares(caller: Caller) -> None:
    reply = caller.get("/shares")
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
    bob = replace(caller, token="token-of-bob")  # noqa: S106
    assert [share["name"] for share in bob.get("/shares").json()["items"]] == ["foreign"]


@pytest.mark.protocol("SHARE-LS-02", "SHARE-GEN-02")
def test_one_share(caller: Caller) -> None:
    share = caller.get("/shares/VACCINE_Share").json()["share"]
    assert (share["name"], share["id"]) == ("vaccine_share", SHARE_ID)


@pytest.mark.protocol("SHARE-LS-03", "SHARE-LS-04", "SHARE-LS-05")
def test_schemas_and_tables(caller: Caller) -> None:
    schemas = caller.get("/shares/Vaccine_share/schemas").json()["items"]
    assert schemas[0] == {"name": "acme_vaccine_data", "share": "vaccine_share"}
    start = {"schema": "acme_vaccine_data", "share": "vaccine_share", "shareId": SHARE_ID}
    expected = [
        {"name": "vaccine_ingredients", **start, "id": "1"},
        {"name": "vaccine_patients", **start},
    ]
    tables = caller.get("/shares/vaccine_share/schemas/ACME_vaccine_data/tables").json()["items"]
    assert tables == expected
    everything = caller.get("/shares/vaccine_share/all-tables").json()["items"]
    assert [table["name"] for table in everything] == [
        "vaccine_ingredients",
        "vaccine_patients",
        "t",
    ]
    assert caller.get("/shares/vaccine_share/schemas/empty/tables").json() == {"items": []}


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
def test_what_is_not_his_is_not_there(caller: Caller, foreign: str, absent: str) -> None:
    one, other = caller.get(foreign), caller.get(absent)
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
def test_page_tokens_belong_to_their_listing(caller: Caller) -> None:
    token = caller.get("/shares?maxResults=1").json()["nextPageToken"]
    assert caller.get(f"/shares?maxResults=1&pageToken={token}").json() == {
        "items": [{"name": "sales_share"}]
    }
    schemas = caller.get("/shares/vaccine_share/schemas?maxResults=1").json()["nextPageToken"]
    crossed = caller.get(f"/shares/VACCINE_SHARE/schemas?maxResults=1&pageToken={schemas}")
    assert crossed.json()["items"] == [{"name": "empty", "share": "vaccine_share"}]
    bob = replace(caller, token="token-of-bob")  # noqa: S106
    wrong = [
        caller.get(f"/shares/vaccine_share/schemas?pageToken={token}"),
        caller.get(f"/shares/sales_share/schemas?pageToken={schemas}"),
        bob.get(f"/shares?pageToken={token}"),
        caller.get("/shares?pageToken=abc"),
        caller.get(f"/shares?pageToken={token}x"),
        caller.get(f"/shares?pageToken={'A' if token[0] != 'A' else 'B'}{token[1:]}"),
        caller.get(f"/shares?pageToken={token[:-1]}{'A' if token[-1] != 'A' else 'B'}"),
    ]
    assert [reply.status for reply in wrong] == [400] * len(wrong)


@pytest.mark.protocol("SHARE-GEN-01", "SHARE-CFG-01")
@pytest.mark.parametrize("prefix", ["/delta-sharing", "/x/y", ""])
def test_the_prefix_is_configurable(prefix: str) -> None:
    caller = sharing({"s.d.t": "/x"}, endpoint=f"{prefix}/")
    assert replace(caller, prefix=prefix).get("/shares").status == 200
    assert replace(caller, prefix="/elsewhere").get("/shares").status == 404


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


@pytest.mark.protocol("SHARE-GEN-05", "SHARE-GEN-06", "SHARE-GEN-04", "SHARE-SEC-04")
@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Basic x",
        "Bearer",
        "Bearer ",
        "Bearer wrong-token",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        TOKEN,
        "Bearer a.b.c",
    ],
)
def test_without_a_valid_token(caller: Caller, header: str | None) -> None:
    for method, target in (
        ("GET", "/shares"),
        ("GET", "/shares/vaccine_share"),
        ("POST", f"{path_of('vaccine_share.more.t')}/query"),
        ("GET", "/shares/nowhere/schemas"),
    ):
        fields = {} if header is None else {"Authorization": header}
        reply = ask(caller.app, method, PREFIX + target, headers=fields)
        assert reply.status == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        assert reply.headers["content-type"] == "application/json"
        assert reply.json() == {
            "errorCode": "UNAUTHENTICATED",
            "message": "a valid bearer token is required",
        }


@pytest.mark.protocol("SHARE-GEN-13")
def test_the_scheme_of_the_token_is_in_any_case(caller: Caller) -> None:
    reply = ask(caller.app, "GET", f"{PREFIX}/shares", headers={"AUTHORIZATION": f"bEaReR {TOKEN}"})
    assert reply.status == 200


@pytest.mark.protocol("SHARE-GEN-08")
def test_unknown_parameters_are_ignored(caller: Caller) -> None:
    assert caller.get("/shares?foo=1&maxresults=x").status == 200


@pytest.mark.protocol("SHARE-GEN-09")
@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("PUT", "/shares", 405),
        ("POST", "/shares", 405),
        ("DELETE", "/shares/vaccine_share", 405),
        ("GET", "/shares/s/schemas/d/tables/t/query", 405),
        ("GET", "/shares/s/schemas/d/tables/t", 405),
        ("GET", "/nothing", 404),
        ("GET", "/shares/", 404),
        ("GET", "", 404),
        ("PATCH", "/shares/s/x/y/z", 404),
    ],
)
def test_unknown_methods_and_routes(caller: Caller, method: str, target: str, status: int) -> None:
    reply = caller.ask(method, target)
    assert reply.status == status
    assert set(reply.json()) == {"errorCode", "message"}
    assert reply.headers["content-type"] == "application/json"


def test_answers_have_an_id_and_are_not_kept(caller: Caller) -> None:
    reply = caller.get("/shares", x_request_id="my-id.1")
    assert reply.headers["x-request-id"] == "my-id.1"
    assert reply.headers["cache-control"] == "no-store"
    forged = caller.get("/shares", x_request_id="my id\n")
    assert forged.headers["x-request-id"] != "my id\n"
    assert caller.get("/nothing").headers["x-request-id"]


def test_health_and_metrics(caller: Caller) -> None:
    caller.get("/shares")
    caller.get("/shares/nowhere")
    assert ask(caller.app, "GET", "/health").json() == {"status": "ok"}
    text = ask(caller.app, "GET", "/metrics").body.decode()
    assert 'deltalog_sharing_requests_total{action="list_shares",status="200"} 1' in text
    assert 'deltalog_sharing_requests_total{action="get_share",status="404"} 1' in text
    assert "vaccine" not in text
    assert "alice" not in text


def test_metrics_can_be_switched_off() -> None:
    silent = app(config_of({"s.d.t": "/x"}, metrics=False))
    assert ask(silent, "GET", "/metrics").status == 404
