"""Answers about a table: the order of their lines, how they end, and pages of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from deltalog.errors import MalformedMessageError, SharingError
from deltalog.sharing.client import SharedTable, load_as_pandas
from deltalog.sharing.client.pages import READER_FEATURES
from tests.support.shared_files import (
    PROTOCOL,
    QUICK,
    delta_metadata,
    delta_protocol,
    end_line,
    id_files,
    ids_of,
    metadata,
)
from tests.support.sharing_server import Answer, ScriptedServer, lines

METADATA = metadata(columns={"id": "long"})


ENDS = {"delta-sharing-capabilities": "responseformat=parquet;includeendstreamaction=true"}


def _table(server: ScriptedServer) -> SharedTable:
    return SharedTable("s.d.t", profile=server.profile(), options=QUICK)


@pytest.mark.protocol("SHARE-QT-02", "SHARE-GEN-08")
def test_files_come_in_any_order_with_lines_that_nobody_knows(scripted: ScriptedServer) -> None:
    one, two = id_files(scripted, 2)
    one["file"]["somethingNew"] = {"a": 1}
    scripted.on_table("POST query", lines(PROTOCOL, METADATA, two, {"news": {}}, one))
    assert ids_of(_table(scripted)) == [0, 1]


@pytest.mark.protocol("SHARE-QT-02")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"protocol":{"minReaderVersion":1}}\n',
        b'{"protocol":{"minReaderVersion":1},"metaData":{}}\n',
        b"no json\n",
        b"[]\n",
        b'{"protocol":{}}\n',
        b'{"metaData":{"id":"x"}}\n',
        b'{"file":{"url":"u","id":"i","size":1,"partitionValues":{}}}\n',
    ],
)
def test_an_answer_that_breaks_the_protocol_is_refused(
    scripted: ScriptedServer, body: bytes
) -> None:
    scripted.on_table("POST query", Answer(200, body, {"Delta-Table-Version": "0"}))
    with pytest.raises(MalformedMessageError, match=r"line|protocol"):
        _table(scripted).scan()


@pytest.mark.protocol("SHARE-QT-22")
def test_a_line_that_is_cut_is_an_error(scripted: ScriptedServer) -> None:
    whole = lines(PROTOCOL, METADATA, *id_files(scripted, 2)).body
    scripted.on_table("POST query", Answer(200, whole[:-20], {"Delta-Table-Version": "0"}))
    with pytest.raises(MalformedMessageError, match="line 4"):
        _table(scripted).scan()


@pytest.mark.protocol("SHARE-QT-22", "SHARE-GEN-10")
def test_a_page_that_breaks_off_is_read_anew(scripted: ScriptedServer) -> None:
    answer = lines(PROTOCOL, METADATA, *id_files(scripted, 2))
    cut = Answer(200, answer.body, answer.headers, cut=len(answer.body) - 40)
    scripted.on_table("POST query", cut, answer)
    assert ids_of(_table(scripted)) == [0, 1]  # nothing of the first answer is there twice


@pytest.mark.protocol("SHARE-META-04")
def test_a_later_response_format_asks_for_an_upgrade(scripted: ScriptedServer) -> None:
    later = {"protocol": {"minReaderVersion": 2}}
    scripted.on_table("GET metadata", lines(later, METADATA))
    with pytest.raises(SharingError, match="upgrade deltalog"):
        _table(scripted).schema()


@pytest.mark.protocol("SHARE-CAP-05", "SHARE-CAP-07")
def test_parquet_is_taken_where_delta_was_asked_for(scripted: ScriptedServer) -> None:
    scripted.on_table("POST query", lines(PROTOCOL, METADATA, *id_files(scripted, 1)))
    assert ids_of(_table(scripted)) == [0]
    assert "delta-sharing-capabilities" in scripted.asked[0].headers


@pytest.mark.protocol("SHARE-CAP-06")
def test_delta_is_refused_where_it_was_not_asked_for(
    scripted: ScriptedServer, tmp_path: Any
) -> None:
    answer = lines(delta_protocol(), delta_metadata(columns={"id": "long"}))
    scripted.on_table("POST query", answer)
    profile = tmp_path / "p.share"
    profile.write_text(json.dumps(scripted.profile()), "utf-8")
    with pytest.raises(MalformedMessageError, match="not requested"):
        load_as_pandas(f"{profile}#s.d.t", use_delta_format=False)
    assert "responseformat=parquet;" in scripted.asked[0].headers["delta-sharing-capabilities"]


@pytest.mark.protocol("SHARE-CAP-01", "B-95")
def test_every_reader_feature_that_scans_honour_is_told() -> None:
    told = {"deletionvectors", "columnmapping", "timestampntz", "typewidening", "varianttype"}
    assert told <= READER_FEATURES
    assert {name for name in READER_FEATURES if name != name.lower()} == set()
    assert "adaptivemetadata-preview" not in READER_FEATURES


@pytest.mark.protocol("SHARE-CAP-10", "B-92")
def test_a_promised_last_line_must_come(scripted: ScriptedServer) -> None:
    files = id_files(scripted, 1)
    scripted.on_table("POST query", lines(PROTOCOL, METADATA, *files, headers=ENDS))
    with pytest.raises(MalformedMessageError, match="incomplete"):
        _table(scripted).scan()
    scripted.on_table("POST query", lines(PROTOCOL, METADATA, *files, end_line(), headers=ENDS))
    assert ids_of(_table(scripted)) == [0]
    scripted.on_table("GET metadata", lines(PROTOCOL, METADATA, headers=ENDS))
    assert _table(scripted).version() == 0  # metadata has no such line


@pytest.mark.protocol("SHARE-CAP-10")
def test_a_last_line_may_tell_an_error(scripted: ScriptedServer) -> None:
    end = end_line(errorMessage="the log is gone")
    scripted.on_table("POST query", lines(PROTOCOL, METADATA, end, headers=ENDS))
    with pytest.raises(SharingError, match="the log is gone"):
        _table(scripted).scan()


@pytest.mark.protocol("SHARE-CAP-10")
def test_nothing_follows_the_last_line(scripted: ScriptedServer) -> None:
    scripted.on_table("POST query", lines(PROTOCOL, METADATA, end_line(), *id_files(scripted, 1)))
    with pytest.raises(MalformedMessageError, match="follows the end"):
        _table(scripted).scan()
