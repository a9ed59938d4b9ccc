"""Profiles of both versions."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from deltalog.errors import InvalidInputError, MalformedMessageError
from deltalog.sharing.wire.profile import BearerToken, PrivateKeyJwt, encode_profile, parse_profile

PROFILE = {
    "shareCredentialsVersion": 1,
    "endpoint": "https://sharing.delta.io/delta-sharing/",
    "bearerToken": "<token>",
    "expirationTime": "2021-11-12T00:12:29.0Z",
}


@pytest.mark.protocol("SHARE-PRO-01", "SHARE-PRO-03", "SHARE-PRO-05")
def test_a_profile_of_version_1() -> None:
    profile = parse_profile(orjson.dumps(PROFILE))
    assert profile.endpoint == "https://sharing.delta.io/delta-sharing"
    assert profile.credentials == BearerToken(token="<token>")  # noqa: S106
    assert profile.expiration_ms == 1636675949000
    assert "<token>" not in repr(profile)
    assert parse_profile(encode_profile(profile)) == profile
    bare = {key: value for key, value in PROFILE.items() if key != "expirationTime"}
    assert parse_profile(orjson.dumps(bare)).expiration_ms is None


def test_a_file_that_is_no_json_says_where_profiles_come_from() -> None:
    with pytest.raises(MalformedMessageError, match="ask the provider of the share for the file"):
        parse_profile(b"<html>sign in</html>")


@pytest.mark.protocol("SHARE-PRO-02", "SHARE-PRO-04")
def test_profiles_of_version_2() -> None:
    start = {"shareCredentialsVersion": 2, "endpoint": "https://x"}
    bodies: list[dict[str, Any]] = [
        {"type": "bearer_token", "bearerToken": "t"},
        {"type": "basic", "username": "u", "password": "secret"},
        {
            "type": "oauth_client_credentials",
            "tokenEndpoint": "https://y/",
            "clientId": "c",
            "clientSecret": "secret",
            "scope": "s",
        },
        {
            "type": "oauth_jwt_bearer_private_key_jwt",
            "auth": {
                "tokenEndpoint": "https://y",
                "issuer": "i",
                "clientId": "c",
                "audience": "a",
                "privateKey": {"privateKeyFile": "/k.pem", "keyId": "k", "algorithm": "ES256"},
            },
        },
    ]
    for body in bodies:
        profile = parse_profile(orjson.dumps({**start, **body}))
        assert "secret" not in repr(profile)
        assert parse_profile(encode_profile(profile)) == profile
    assert isinstance(profile.credentials, PrivateKeyJwt)
    for wrong in ({"type": "later"}, {"shareCredentialsVersion": 999}):
        with pytest.raises(InvalidInputError, match="upgrade"):
            parse_profile(orjson.dumps({**start, **wrong}))
