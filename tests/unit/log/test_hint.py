"""The hint: its checksum, and everything that can be wrong with it."""

from __future__ import annotations

import hashlib

import pytest

from deltalog._util.json import loads
from deltalog._util.paths import FileInfo
from deltalog.errors import MalformedLogError, StorageError
from deltalog.log.listing import (
    LastCheckpointHint,
    canonical_form,
    checksum_of,
    encode_hint,
    parse_hint,
    read_hint,
)
from deltalog.log.names import LAST_CHECKPOINT_PATH
from tests.support.logs import DictStore

SAMPLE = (
    """{"k0":"'v 0'","checksum":"adsaskfljadfkjadfkj","k1":{"k2":2,"k3":["v3",[1,2],"""
    """{"k4":"v4","k5":["v5","v6","v7"]}]}}"""
)
TWELVE = (
    '{"version":3,"size":13,"f":["f0","f1","f2","f3","f4","f5","f6","f7","f8","f9","f10","f11"]}'
)


@pytest.mark.protocol("SUM-01", "SUM-05", "SUM-06", "SUM-07")
def test_the_protocols_sample() -> None:
    assert canonical_form(SAMPLE) == (
        '"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,'
        '"k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6",'
        '"k1"+"k3"+2+"k5"+2="v7"'
    )
    assert checksum_of(SAMPLE) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.protocol("SUM-02", "SUM-03", "SUM-04", "SUM-06", "SUM-07", "SUM-09")
@pytest.mark.parametrize(
    ("text", "form"),
    [
        (
            '{"b":{"y":null,"x":"https://delta.io"},"a":10}',
            '"a"=10,"b"+"x"="https%3A%2F%2Fdelta.io","b"+"y"=null',
        ),
        ('[null,"hi ho",2.71]', '0=null,1="hi%20ho",2=2.71'),
        ('{"k1":"v1","checksum":"x","k3":23}', '"k1"="v1","k3"=23'),
        ('{"a":1.0,"b":1e3,"c":true,"d":false}', '"a"=1.0,"b"=1e3,"c"=true,"d"=false'),
        ('{"x":"é~%+ /"}', '"x"="%C3%A9~%25%2B%20%2F"'),
        ('{">":"AZaz09-._~"}', '"%3E"="AZaz09-._~"'),
        ('{"nested":{"checksum":"stays"}}', '"nested"+"checksum"="stays"'),
        ('"alone"', '="alone"'),
    ],
)
def test_canonical_form(text: str, form: str) -> None:
    assert canonical_form(text) == form


@pytest.mark.protocol("SUM-07", "SUM-10")
@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ('{"k1":"v1","checksum":"x","k3":23}', "32e9265a46ef2d45a3a1e0099d1df146"),
        (
            '{"version":10,"size":13,"sizeInBytes":12345,"numOfAddFiles":11}',
            "916354f7da49ed3ffee11f8b7b1efdcf",
        ),
        ('{"version":10,"size":13}', "d43ce16196a30efd991362a9114c7531"),
    ],
)
def test_digests(text: str, digest: str) -> None:
    assert checksum_of(text) == digest


@pytest.mark.protocol("D-03", "B-20")
def test_both_orders_are_accepted_and_sparks_is_written() -> None:
    assert checksum_of(TWELVE) == "2595fe728179e209fff0e3f5d7155409"
    by_path = hashlib.md5(canonical_form(TWELVE).encode(), usedforsecurity=False).hexdigest()
    assert by_path == "7c03d266e5a50ccb32d41fb037ef1881"
    for digest in (checksum_of(TWELVE), by_path, by_path.upper()):
        signed = TWELVE.replace("{", f'{{"checksum":"{digest}",', 1)
        assert parse_hint(signed.encode()) is not None


@pytest.mark.protocol("LAST-01", "LAST-04")
def test_every_member_is_read() -> None:
    text = (
        b'{"version":10,"size":13,"parts":2,"sizeInBytes":5,"numOfAddFiles":11,"v2Checkpoint":{}}'
    )
    assert parse_hint(text) == LastCheckpointHint(
        version=10, size_actions=13, parts=2, size_bytes=5, num_add_files=11
    )
    assert parse_hint(b'{"version":10}') == LastCheckpointHint(version=10)


@pytest.mark.protocol("B-21")
@pytest.mark.parametrize("schema", ['{"type":"struct","fields":[]}', "null", '"no schema"', "[1]"])
def test_a_schema_in_the_hint_does_not_matter(schema: str) -> None:
    text = f'{{"version":10,"size":13,"checkpointSchema":{schema}}}'
    assert parse_hint(text.encode()) == LastCheckpointHint(version=10, size_actions=13)


@pytest.mark.protocol("LAST-05", "LAST-06", "SUM-08", "D-04", "D-21")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"version":3,"size":5,"sizeInBytes":18588,"numOfAddFiles":3,"checkpointSch',
        b"[]",
        b"3",
        b"{}",
        b'{"size":3}',
        b'{"version":null,"size":3}',
        b'{"version":"3","size":3}',
        b'{"version":-1,"size":3}',
        b'{"version":1.5,"size":3}',
        b'{"version":1,"version":2,"size":3}',
        b'{"version":1,"size":3,"checksum":"d43ce16196a30efd991362a9114c7531"}',
        b'{"version":1,"size":NaN}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_damaged_hint_is_no_hint(data: bytes) -> None:
    assert parse_hint(data) is None
    assert read_hint(DictStore({LAST_CHECKPOINT_PATH: data})) is None


class DeniedStore(DictStore):
    def read(self, path: str) -> bytes:
        raise StorageError(f"no {path}")


@pytest.mark.protocol("LAST-06")
def test_a_missing_hint_is_no_hint() -> None:
    assert read_hint(DictStore()) is None
    assert read_hint(DeniedStore()) is None


@pytest.mark.protocol("SUM-08")
def test_a_key_that_stands_twice_has_no_checksum() -> None:
    with pytest.raises(MalformedLogError):
        checksum_of('{"a":{"b":1,"b":2}}')


@pytest.mark.protocol("LAST-01", "LAST-04", "LAST-05", "B-20", "D-03")
def test_what_is_written_is_read_and_has_its_checksum() -> None:
    hint = LastCheckpointHint(
        version=10, size_actions=13, parts=3, size_bytes=12345, num_add_files=11
    )
    data = encode_hint(hint)
    assert parse_hint(data) == hint
    assert parse_hint(data.replace(b"12345", b"12346")) is None
    assert b'"checksum":"d43ce16196a30efd991362a9114c7531"' in encode_hint(
        LastCheckpointHint(version=10, size_actions=13)
    )


@pytest.mark.protocol("LAST-01", "B-15")
def test_the_file_of_a_v2_checkpoint_is_named() -> None:
    info = FileInfo("_delta_log/top.json", 5, 7)
    data = encode_hint(LastCheckpointHint(version=1, size_actions=3), v2_file=info)
    named = {"path": "top.json", "sizeInBytes": 5, "modificationTime": 7}
    assert loads(data)["v2Checkpoint"] == named
    assert parse_hint(data) is not None
