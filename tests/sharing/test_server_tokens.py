"""Sealed tokens."""

from __future__ import annotations

import pytest

from deltalog.sharing.server.tokens import InvalidTokenError, Sealer
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
