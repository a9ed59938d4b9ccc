"""Sealed tokens."""

from __future__ import annotations

import pytest

from deltalog.sharing.server.tokens import (
    InvalidTokenError,
    Sealer,
    decode_base64,
    encode_base64,
    token_digest,
)
from tests.support.sharing import KEY


@pytest.mark.protocol("SHARE-SEC-05")
def test_seals_hold() -> None:
    sealer = Sealer(KEY.encode())
    token = sealer.seal("page", {"o": 5}, 1000)
    assert sealer.open("page", token, 999) == {"o": 5}
    others = [
        token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        for place in range(len(token))
    ]
    for wrong in (*others, token + "A", token[:-1], "", "é", "A" * 10_000, token + "="):
        with pytest.raises(InvalidTokenError):
            sealer.open("page", wrong, 0)
    for kind, time_ms in (("refresh", 0), ("page", 1000)):
        with pytest.raises(InvalidTokenError):
            sealer.open(kind, token, time_ms)
    with pytest.raises(InvalidTokenError):
        Sealer(b"another key of sixteen").open("page", token, 0)


def test_hashes_are_sha256() -> None:
    """The digest of `abc` is the example of FIPS 180-2."""
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert token_digest("abc") == expected
    one, other = Sealer(b"a key of sixteen bytes"), Sealer(b"another key of sixteen")
    parts = (b"ab", b"c")
    names = {one.keyed_hash(*parts), one.keyed_hash(b"a", b"bc"), other.keyed_hash(*parts)}
    assert len(names) == 3
    assert {len(name) for name in names} == {64}


def test_base64_has_one_spelling() -> None:
    assert encode_base64(b"\xff\xfe\xfd~") == "__79fg"
    assert decode_base64("__79fg") == b"\xff\xfe\xfd~"
    for wrong in ("__79fg==", "//79fg", "__79fh", "é", "_", "A" * 10_000):
        assert decode_base64(wrong) is None
