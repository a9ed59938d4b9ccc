"""Configuration: its shape, its errors, secrets from the environment, reloading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.sharing.server import parse_config
from deltalog.sharing.server.config_file import load_config
from deltalog.sharing.server.tokens import token_digest
from tests.support.sharing import small_config

YAML = """
# The format version of this config file
version: 1
shares:
- name: "share1"
  schemas:
  - name: "schema1"
    tables:
    - name: "table1"
      location: "s3a://bucket/table"
      id: "00000000-0000-0000-0000-000000000000"
    - name: "table3"
      location: "{table}"
      historyShared: true
      startVersion: 1
host: "localhost"
port: 9999
endpoint: "/delta-sharing"
authorization:
  bearerToken: "${{TOKEN_OF_ALL}}"
recipients:
- name: alice
  shares: [SHARE1]
  tokens:
  - hash: "sha256:{digest}"
    expires: 2999-01-01T00:00:00Z
  ipRanges: ["127.0.0.0/8"]
preSignedUrlTimeoutSeconds: 900
deltaTableCacheSize: 5
stalenessAcceptable: false
evaluatePredicateHints: false
evaluateJsonPredicateHints: true
evaluateJsonPredicateHintsV2: true
requestTimeoutSeconds: 20
queryTablePageSizeLimit: 100
queryTablePageTokenTtlMs: 1000
refreshTokenTtlMs: 2000
"""


def _write(path: Path, text: str = YAML, table: str = "/data/t") -> Path:
    path.write_text(text.format(table=table, digest=token_digest("alice-token")))
    return path


def test_tokens_of_an_issuer_are_signed_as_the_file_says() -> None:
    oauth = {"issuer": "i", "audience": "a", "jwksUrl": "u"}
    for more, expected in (({}, ("RS256", "ES256")), ({"algorithms": ["PS512"]}, ("PS512",))):
        config = parse_config(small_config(oauth={**oauth, **more}))
        assert config.oauth is not None
        assert config.oauth.algorithms == expected


def test_a_certificate_has_its_own_key() -> None:
    files = {"certificateFile": "c.pem", "certificateKeyFile": "k.pem"}
    config = parse_config(small_config(ssl=files))
    assert (config.certificate_file, config.certificate_key_file) == ("c.pem", "k.pem")


@pytest.mark.protocol("SHARE-CFG-01")
def test_a_file_of_the_reference_server(tmp_path: Path) -> None:
    config = load_config(_write(tmp_path / "c.yaml"), {"TOKEN_OF_ALL": "token-of-all"})
    (share,) = config.shares
    first, second = share.schemas[0].tables
    assert (first.location, first.history_shared) == ("s3a://bucket/table", False)
    assert (second.history_shared, second.start_version) == (True, 1)
    assert (config.host, config.port, config.endpoint) == ("localhost", 9999, "/delta-sharing")
    assert (config.url_seconds, config.limits.cached_tables) == (900, 5)
    assert (config.page_token_seconds, config.refresh_token_seconds) == (1, 2)
    assert not config.evaluate_predicate_hints
    assert config.limits.page_files == 100
    alice, everybody = config.recipients
    assert alice.shares == ("share1",)
    assert everybody.shares is None
    assert everybody.tokens[0].digest == token_digest("token-of-all")
    shown = repr(config)
    assert "token-of-all" not in shown
    assert token_digest("token-of-all") not in shown
    assert "bucket" not in shown


def _table(**settings: Any) -> dict[str, Any]:
    table = {"name": "t", "location": "/x", **settings}
    return small_config(shares=[{"name": "s", "schemas": [{"name": "d", "tables": [table]}]}])


def _recipient(**settings: Any) -> dict[str, Any]:
    return small_config(recipients=[{"name": "alice", "shares": "all", **settings}])


@pytest.mark.protocol("SHARE-CFG-01")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (small_config(prot=8080), r"prot: unknown setting; did you mean 'port'\?"),
        (small_config(port="8080"), "port: expected a whole number, found a string; leave out the"),
        (small_config(port="abc"), "port: expected a whole number, found a string$"),
        ({"shareCredentialsVersion": 1, "endpoint": "x"}, "this is the profile of a recipient"),
        ({"share": []}, "shares: is missing; did you mean it instead of 'share'"),
        ("text", "a mapping of settings, such as shares and recipients; found a string"),
        (None, "a mapping of settings, such as shares and recipients; found nothing"),
        ({"shares": [], "recipient": []}, r"recipient: unknown.*did you mean 'recipients'"),
        (small_config(version=2), "version: expected 1, found 2"),
        (small_config(recipients=[]), "recipients: none is configured"),
        (small_config(shares={}), "shares: expected a list"),
        (small_config(signingKey="short"), "signingKey: expected 16 characters"),
        (
            small_config(limits={"bodyByte": 1}),
            r"limits.bodyByte: unknown.*did you mean 'bodyBytes'",
        ),
        ([], "configuration: expected a mapping"),
        (
            _table(historyshared=True),
            (
                r"shares\[0\].schemas\[0\].tables\[0\].historyshared: unknown setting; "
                r"did you mean 'historyShared'\?"
            ),
        ),
        (_table(startVersion=1), "startVersion: needs historyShared: true"),
        (_table(startVersion=-1, historyShared=True), "startVersion: expected 0 or more"),
        (_table(location=""), "location: a string is missing"),
        (
            small_config(preSignedUrlTimeoutSeconds=604_801),
            "stores sign URLs for 604800 seconds at most",
        ),
        (_table(rowFilter="a = = 1"), r"tables\[0\].rowFilter: "),
        (_table(columns=[]), "columns: expected one column or more"),
        (_table(columns=["a"], temporaryCredentials={}), "would give access to the whole table"),
        (_table(name="a.b"), "cannot be a name"),
        (_table(name="a/b"), "cannot be a name"),
        (_table(name=".."), "cannot be a name"),
        (_table(name="x" * 256), "cannot be a name"),
        (
            small_config(shares=[{"name": "a"}, {"name": "A"}]),
            "shares: the name 'A' occurs twice",
        ),
        (_recipient(token="short"), "token: a token of less than 8"),  # noqa: S106
        (_recipient(shares=["S2"]), r"there is no share 'S2'; did you mean 's'\?|no share 'S2'"),
        (_recipient(tokens=[{"hash": "abc"}]), "hash: expected 'sha256:'"),
        (_recipient(tokens=[{}]), "expected either hash or token"),
        (_recipient(token="token-of-bob", ipRanges=["10.0.0.0/99"]), "is not an address range"),  # noqa: S106
        (_recipient(subjects=["x"]), "subjects need an oauth section"),
        (
            small_config(
                recipients=[
                    {"name": "a", "token": "token-of-alice", "shares": []},
                    {"name": "b", "token": "token-of-alice", "shares": []},
                ]
            ),
            "two of them have the same token",
        ),
        (
            small_config(
                oauth={"issuer": "i", "audience": "a", "jwksUrl": "u", "algorithms": ["HS256"]}
            ),
            "'HS256' is not an algorithm with a private key",
        ),
        (
            small_config(shares=[{"name": "s", "schemas": [{"naame": "d"}]}]),
            r"schemas\[0\].name: a string is missing; did you mean it instead of 'naame'\?",
        ),
    ],
)
def test_faults_are_named(values: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        parse_config(values)
    assert "token-of-alice" not in str(caught.value)
