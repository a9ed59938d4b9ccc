"""Every endpoint: the examples of the specification, and what an answer may leave out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltalog.errors import MalformedMessageError, ShareNotFoundError, SharingError
from deltalog.sharing.client import (
    AsyncRestClient,
    LineList,
    SharingClient,
    TablePage,
    read_profile,
)
from deltalog.sharing.wire.lines import (
    ParquetFileLine,
    ParquetMetadata,
    ParquetProtocol,
    Schema,
    Share,
    Table,
)
from deltalog.sharing.wire.requests import ChangesQuery, TableQuery
from deltalog.storage.http.client import run
from tests.support.shared_files import PROTOCOL, TABLE_ID, metadata
from tests.support.sharing_server import NDJSON, Answer, ScriptedServer, fault, lines, listed

PATIENTS = Table(share="vaccine_share", schema="acme_vaccine_data", name="vaccine_patients")
AT = "/shares/vaccine_share/schemas/acme_vaccine_data/tables/vaccine_patients"
METADATA = metadata(["date"], columns={"eventTime": "timestamp", "date": "date"})
BUCKET = "https://<s3-bucket-name>.s3.us-west-2.amazonaws.com/delta-exchange-test"
STATS = (
    '{"numRecords":1,"minValues":{"eventTime":"2021-04-28T23:33:57.955Z"},'
    '"maxValues":{"eventTime":"2021-04-28T23:33:57.955Z"},"nullCount":{"eventTime":0}}'
)


def _rest(server: ScriptedServer) -> AsyncRestClient:
    return AsyncRestClient(read_profile(server.profile()))


def _client(server: ScriptedServer) -> SharingClient:
    return SharingClient(server.profile())


@pytest.mark.protocol("SHARE-LS-01", "SHARE-GEN-01", "SHARE-GEN-12")
def test_shares_are_listed(scripted: ScriptedServer) -> None:
    items = [
        {"name": "vaccine_share", "id": "edacc4a7-6600-4fbb-85f3-a62a5ce6761f"},
        {"name": "sales_share", "id": "3e979c79-6399-4dac-bcf8-54e268f48515"},
    ]
    scripted.on("GET /shares", listed(items, "..."))
    page = run(_rest(scripted).list_shares, max_results=10, page_token="a b/c")  # noqa: S106  # no secret
    assert page.items == (
        Share(name="vaccine_share", id="edacc4a7-6600-4fbb-85f3-a62a5ce6761f"),
        Share(name="sales_share", id="3e979c79-6399-4dac-bcf8-54e268f48515"),
    )
    assert page.next_page_token == "..."  # noqa: S105  # no secret
    assert scripted.asked[0].query == {"maxResults": "10", "pageToken": "a b/c"}
    assert scripted.asked[0].headers["authorization"] == "Bearer token-1"


@pytest.mark.protocol("SHARE-LS-02")
def test_a_share_is_found(scripted: ScriptedServer) -> None:
    body = {"share": {"name": "vaccine_share", "id": "edacc4a7-6600-4fbb-85f3-a62a5ce6761f"}}
    scripted.on("GET /shares/vaccine_share", Answer(200, json.dumps(body).encode()))
    found = _client(scripted).get_share("vaccine_share")
    assert found == Share(name="vaccine_share", id="edacc4a7-6600-4fbb-85f3-a62a5ce6761f")
    with pytest.raises(ShareNotFoundError):
        _client(scripted).get_share("other")


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [
        (401, "", "ask the provider of the share for a new profile"),
        (403, "", "ask the provider of the share for access"),
        (404, "", "check the endpoint in the profile: it is the URL of the server with its path"),
        (404, "there is no such endpoint", "usually https://<host>/delta-sharing/"),
    ],
)
def test_a_refusal_says_what_to_do(
    status: int, message: str, advice: str, scripted: ScriptedServer
) -> None:
    body = json.dumps({"errorCode": "X", "message": message}).encode() if message else b"<html>"
    scripted.on("GET /shares/a", Answer(status, body))
    with pytest.raises(SharingError) as caught:
        _client(scripted).get_share("a")
    assert str(caught.value).endswith(advice) or f"{advice}, " in str(caught.value)
    assert caught.value.status == status


@pytest.mark.protocol("SHARE-LS-03")
def test_schemas_are_listed(scripted: ScriptedServer) -> None:
    items = [{"name": "acme_vaccine_data", "share": "vaccine_share"}]
    scripted.on("GET /shares/vaccine_share/schemas", listed(items, ""))
    (schema,) = _client(scripted).list_schemas(Share(name="vaccine_share"))
    assert schema == Schema(name="acme_vaccine_data", share="vaccine_share")


@pytest.mark.protocol("SHARE-LS-04", "SHARE-LS-05", "SHARE-LS-06")
@pytest.mark.parametrize("endpoint", ["schemas/acme_vaccine_data/tables", "all-tables"])
def test_tables_are_listed(scripted: ScriptedServer, endpoint: str) -> None:
    item = {
        "share": "vaccine_share",
        "schema": "acme_vaccine_data",
        "name": "vaccine_ingredients",
        "shareId": "edacc4a7-6600-4fbb-85f3-a62a5ce6761f",
        "id": "dcb1e680-7da4-4041-9be8-88aff508d001",
        "somethingNew": 7,
    }
    scripted.on(f"GET /shares/vaccine_share/{endpoint}", listed([item]))
    client = _client(scripted)
    if endpoint == "all-tables":
        (table,) = client.list_all_tables("vaccine_share")
    else:
        (table,) = client.list_tables(Schema(name="acme_vaccine_data", share="vaccine_share"))
    assert (table.name, table.schema, table.share) == (
        "vaccine_ingredients",
        "acme_vaccine_data",
        "vaccine_share",
    )
    assert table.id == "dcb1e680-7da4-4041-9be8-88aff508d001"


@pytest.mark.protocol("SHARE-PG-02", "SHARE-PG-03", "SHARE-PG-05")
@pytest.mark.parametrize("end", [None, ""])
def test_a_listing_goes_on_while_there_is_a_token(
    scripted: ScriptedServer, end: str | None
) -> None:
    pages = [listed([{"name": f"s{n}"} for n in range(5)], "t-1"), listed(None, "t-2")]
    scripted.on("GET /shares", *pages, listed([], "t-3"), listed([{"name": "last"}], end))
    found = [share.name for share in _client(scripted).list_shares()]
    assert found == ["s0", "s1", "s2", "s3", "s4", "last"]
    assert [one.query.get("pageToken") for one in scripted.asked] == [None, "t-1", "t-2", "t-3"]


@pytest.mark.protocol("SHARE-PG-02")
def test_a_listing_that_goes_in_circles_is_refused(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", listed([], "t-1"))
    with pytest.raises(MalformedMessageError, match="same page token"):
        _client(scripted).list_shares()


@pytest.mark.protocol("SHARE-CLI-02")
def test_old_servers_list_tables_schema_by_schema(scripted: ScriptedServer) -> None:
    scripted.on("GET /shares", listed([{"name": "a"}, {"name": "b"}]))
    for share in "ab":
        scripted.on(f"GET /shares/{share}/schemas", listed([{"name": "x", "share": share}]))
        item = {"name": f"t{share}", "schema": "x", "share": share}
        scripted.on(f"GET /shares/{share}/schemas/x/tables", listed([item]))
    assert [table.name for table in _client(scripted).list_all_tables()] == ["ta", "tb"]


@pytest.mark.protocol("SHARE-GEN-03")
def test_names_are_percent_encoded(scripted: ScriptedServer) -> None:
    path = "/shares/a%20b/schemas/%C3%A9%2F..%2Fx/tables/a%25b%3F%23/version"
    scripted.on(f"GET {path}", Answer(headers={"Delta-Table-Version": "1"}))
    table = Table(share="a b", schema="é/../x", name="a%b?#")
    assert run(_rest(scripted).table_version, table) == 1
    assert scripted.asked[0].path == f"/delta-sharing{path}"


@pytest.mark.protocol("SHARE-GEN-01", "SHARE-GEN-03")
def test_any_prefix_will_do(scripted: ScriptedServer) -> None:
    scripted.at("/x/y/shares", listed([]))
    client = SharingClient(scripted.profile(endpoint=f"{scripted.url}/x/y/"))
    assert client.list_shares() == []


@pytest.mark.protocol("SHARE-VER-01", "SHARE-GEN-13")
@pytest.mark.parametrize("header", ["Delta-Table-Version", "delta-table-version"])
def test_a_version_is_told_by_its_header(scripted: ScriptedServer, header: str) -> None:
    scripted.on(f"GET {AT}/version", Answer(headers={header: "123"}))
    assert run(_rest(scripted).table_version, PATIENTS) == 123
    assert scripted.asked[0].query == {}


@pytest.mark.protocol("SHARE-VER-03", "SHARE-TS-01")
def test_a_version_is_asked_for_by_a_moment(scripted: ScriptedServer) -> None:
    scripted.on(f"GET {AT}/version", Answer(headers={"Delta-Table-Version": "5"}))
    assert run(_rest(scripted).table_version, PATIENTS, 1640995200000) == 5
    assert scripted.asked[0].query == {"startingTimestamp": "2022-01-01T00:00:00Z"}


@pytest.mark.protocol("SHARE-VER-05")
@pytest.mark.parametrize("header", [None, "", "x3", "-1", "٣", "9" * 30])
def test_a_version_that_is_none_is_refused(scripted: ScriptedServer, header: str | None) -> None:
    told = {} if header is None else {"Delta-Table-Version": header.encode().decode("latin-1")}
    scripted.on(f"GET {AT}/version", Answer(headers=told))
    with pytest.raises(MalformedMessageError, match="Delta-Table-Version"):
        run(_rest(scripted).table_version, PATIENTS)


@pytest.mark.protocol("SHARE-META-01", "SHARE-META-03", "SHARE-META-05", "SHARE-CAP-08")
def test_metadata_is_two_lines_and_a_header(scripted: ScriptedServer) -> None:
    scripted.on(f"GET {AT}/metadata", lines(PROTOCOL, METADATA, version=123))
    head = run(_rest(scripted).table_metadata, PATIENTS)
    assert head.version == 123
    assert head.protocol == ParquetProtocol(min_reader_version=1)
    assert isinstance(head.metadata, ParquetMetadata)
    assert head.metadata.id == TABLE_ID
    assert head.metadata.partition_columns == ("date",)
    assert head.metadata.schema_string == METADATA["metaData"]["schemaString"]
    capabilities = scripted.asked[0].headers["delta-sharing-capabilities"]
    assert "responseformat=delta,parquet" in capabilities
    assert "includeendstreamaction=true" in capabilities
    assert {"deletionvectors", "columnmapping", "timestampntz"} <= set(
        capabilities.split("readerfeatures=")[1].split(";")[0].split(",")
    )


@pytest.mark.protocol("SHARE-META-02", "B-91")
def test_metadata_of_another_version_is_asked_for(scripted: ScriptedServer) -> None:
    scripted.on(f"GET {AT}/metadata", lines(PROTOCOL, METADATA, version=3))
    run(_rest(scripted).table_metadata, PATIENTS, version=3)
    run(_rest(scripted).table_metadata, PATIENTS, timestamp_ms=1640995200123)
    assert [one.query for one in scripted.asked] == [
        {"version": "3"},
        {"timestamp": "2022-01-01T00:00:00.123Z"},
    ]


def _file(number: str, expires: int, **more: Any) -> dict[str, Any]:
    signature = "X-Amz-Date=20210501T010516Z&X-Amz-Signature=97b6762c"
    return {
        "url": f"{BUCKET}/table2/date%3D2021-04-28/part-00000-{number}.parquet?"
        f"X-Amz-Expires={expires}&{signature}",
        "id": number,
        "partitionValues": {"date": "2021-04-28"},
        "size": 573,
        **more,
    }


@pytest.mark.protocol("SHARE-QT-01", "SHARE-QT-02", "SHARE-QT-03", "SHARE-QT-16", "SHARE-CAP-01")
def test_the_specifications_query_is_asked_and_understood(scripted: ScriptedServer) -> None:
    files = [
        {"file": _file("8b0086f2-7b27-4935-ac5a-8ed6215a6640", 900, stats=STATS)},
        {"file": _file("591723a8-6a27-4240-a90e-57426f4736d2", 899, stats=STATS)},
    ]
    scripted.on(f"POST {AT}/query", lines(PROTOCOL, METADATA, *files, version=123))
    query = TableQuery(
        predicate_hints=("date >= '2021-01-01'", "date <= '2021-01-31'"),
        limit_hint=1000,
        version=123,
    )
    page = run(_rest(scripted).query_table, PATIENTS, query, LineList)
    assert isinstance(page, TablePage)
    asked = scripted.asked[0]
    assert asked.json == {
        "predicateHints": ["date >= '2021-01-01'", "date <= '2021-01-31'"],
        "limitHint": 1000,
        "version": 123,
    }
    assert asked.headers["content-type"] == "application/json; charset=utf-8"
    assert page.head.version == 123
    first, second = page.files.lines
    assert isinstance(first, ParquetFileLine)
    assert first.url == files[0]["file"]["url"]
    assert (first.id, first.size_bytes, first.stats) == (files[0]["file"]["id"], 573, STATS)
    assert isinstance(second, ParquetFileLine)
    assert second.partition_values == {"date": "2021-04-28"}


@pytest.mark.protocol("SHARE-QT-01")
def test_an_empty_query_is_an_empty_object(scripted: ScriptedServer) -> None:
    scripted.on(f"POST {AT}/query", lines(PROTOCOL, METADATA))
    run(_rest(scripted).query_table, PATIENTS, TableQuery(), LineList)
    assert scripted.asked[0].body == b"{}"


@pytest.mark.protocol("SHARE-CDF-01", "SHARE-CDF-02", "SHARE-CDF-04", "SHARE-QT-18", "D-75")
def test_the_specifications_changes_are_understood(scripted: ScriptedServer) -> None:
    files = [
        {"add": _file("8b0086f2", 900, stats=STATS, timestamp=1652140000000, version=0)},
        {"cdf": _file("591723a8", 899, timestamp=1652141000000, version=1)},
        {"remove": _file("8b0086f2", 900, timestamp=1652142000000, version=2)},
    ]
    answer = lines(PROTOCOL, METADATA, *files, version=None)  # the example has no such header
    scripted.on(f"GET {AT}/changes", answer)
    query = ChangesQuery(starting_version=0, ending_timestamp_ms=1640995200000)
    page = run(_rest(scripted).query_changes, PATIENTS, query, LineList)
    assert scripted.asked[0].query == {
        "startingVersion": "0",
        "endingTimestamp": "2022-01-01T00:00:00Z",
    }
    assert page.head.version is None
    found = [line for line in page.files.lines if isinstance(line, ParquetFileLine)]
    assert [(line.kind, line.version, line.timestamp_ms) for line in found] == [
        ("add", 0, 1652140000000),
        ("cdf", 1, 1652141000000),
        ("remove", 2, 1652142000000),
    ]


@pytest.mark.protocol("SHARE-TMP-01", "B-94")
def test_temporary_credentials_are_understood(scripted: ScriptedServer) -> None:
    body = {
        "credentials": {
            "location": "s3://bucket/table",
            "awsTempCredentials": {"accessKeyId": "a", "secretAccessKey": "geheim"},
            "expirationTime": 1640995200000,
        }
    }
    scripted.on(f"POST {AT}/temporary-table-credentials", Answer(200, json.dumps(body).encode()))
    found = run(_rest(scripted).temporary_credentials, PATIENTS, "s3://bucket/table")
    assert scripted.asked[0].json == {"location": "s3://bucket/table"}
    assert (found.location, found.kind) == ("s3://bucket/table", "awsTempCredentials")
    assert found.values == {"accessKeyId": "a", "secretAccessKey": "geheim"}
    assert found.expiration_ms == 1640995200000
    assert "geheim" not in repr(found)


@pytest.mark.protocol("SHARE-TMP-01")
@pytest.mark.parametrize("body", [b"{}", b'{"credentials": {"location": "x"}}', b"7"])
def test_credentials_that_are_none_are_refused(scripted: ScriptedServer, body: bytes) -> None:
    scripted.on(f"POST {AT}/temporary-table-credentials", Answer(200, body))
    with pytest.raises(MalformedMessageError):
        run(_rest(scripted).temporary_credentials, PATIENTS)


@pytest.mark.protocol("SHARE-GEN-07")
def test_a_servers_words_are_handed_on(scripted: ScriptedServer) -> None:
    scripted.on(f"GET {AT}/metadata", fault(400, "UNSUPPORTED_OPERATION", "not this table"))
    with pytest.raises(SharingError, match=r"\(UNSUPPORTED_OPERATION\): not this table"):
        run(_rest(scripted).table_metadata, PATIENTS)


def test_answers_are_told_apart_by_their_lines_alone(scripted: ScriptedServer) -> None:
    body = lines(PROTOCOL, METADATA).body.replace(b"\n", b"\r\n") + b"\r\n  \n"
    answer = Answer(200, body, {"Content-Type": NDJSON, "Delta-Table-Version": "0"})
    scripted.on(f"GET {AT}/metadata", answer)
    assert run(_rest(scripted).table_metadata, PATIENTS).version == 0
