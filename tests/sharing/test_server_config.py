"""Configuration: its shape, its errors, secrets from the environment, reloading."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.sharing.__main__ import main
from deltalog.sharing.server import parse_config
from deltalog.sharing.server.application import make_app
from deltalog.sharing.server.config_file import ReloadingServer, load_config, resolve_references
from deltalog.sharing.server.tokens import token_digest
from tests.support.sharing import Caller

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
TOML = """
signingKey = "${KEY}"
[[shares]]
name = "share1"
[[shares.schemas]]
name = "schema1"
[[shares.schemas.tables]]
name = "table1"
location = "/data/t"
[shares.schemas.tables.storageOptions]
region = "eu"
[[recipients]]
name = "alice"
token = "${TOKEN}"
"""


def _write(path: Path, text: str = YAML, table: str = "/data/t") -> Path:
    path.write_text(text.format(table=table, digest=token_digest("alice-token")))
    return path


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


def test_a_file_in_toml(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(TOML)
    config = load_config(path, {"KEY": "k" * 16, "TOKEN": "token-of-alice"})
    (table,) = config.shares[0].schemas[0].tables
    assert table.storage_options == {"region": "eu"}
    assert config.signing_key == b"k" * 16


def _config(**more: Any) -> dict[str, Any]:
    return {
        "shares": [
            {
                "name": "s",
                "schemas": [{"name": "d", "tables": [{"name": "t", "location": "/x"}]}],
            }
        ],
        "recipients": [{"name": "alice", "token": "token-of-alice"}],
        **more,
    }


def _table(**settings: Any) -> dict[str, Any]:
    table = {"name": "t", "location": "/x", **settings}
    return _config(shares=[{"name": "s", "schemas": [{"name": "d", "tables": [table]}]}])


def _recipient(**settings: Any) -> dict[str, Any]:
    return _config(recipients=[{"name": "alice", **settings}])


@pytest.mark.protocol("SHARE-CFG-01")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (_config(prot=8080), r"prot: unknown setting; did you mean 'port'\?"),
        (_config(port="8080"), "port: expected a whole number"),
        ({"shares": [], "recipient": []}, r"recipient: unknown.*did you mean 'recipients'"),
        (_config(version=2), "version: expected 1, found 2"),
        (_config(recipients=[]), "recipients: none is configured"),
        (_config(shares={}), "shares: expected a list"),
        (_config(signingKey="short"), "signingKey: expected 16 characters"),
        (_config(limits={"bodyByte": 1}), r"limits.bodyByte: unknown.*did you mean 'bodyBytes'"),
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
        (_table(location=""), "location: a text is missing"),
        (_config(preSignedUrlTimeoutSeconds=604_801), "stores sign for 604800 seconds at most"),
        (_table(rowFilter="a = = 1"), r"tables\[0\].rowFilter: "),
        (_table(columns=[]), "columns: expected one column or more"),
        (_table(columns=["a"], temporaryCredentials={}), "would give access to the whole table"),
        (_table(name="a.b"), "cannot be a name"),
        (_table(name="a/b"), "cannot be a name"),
        (_table(name=".."), "cannot be a name"),
        (_table(name="x" * 256), "cannot be a name"),
        (
            _config(shares=[{"name": "a"}, {"name": "A"}]),
            "shares: the name 'A' is there twice",
        ),
        (_recipient(token="short"), "token: a token of less than 8"),  # noqa: S106
        (_recipient(shares=["S2"]), r"there is no share 'S2'; did you mean 's'\?|no share 'S2'"),
        (_recipient(tokens=[{"hash": "abc"}]), "hash: expected 'sha256:'"),
        (_recipient(tokens=[{}]), "expected either hash or token"),
        (_recipient(token="token-of-bob", ipRanges=["10.0.0.0/99"]), "is no address range"),  # noqa: S106
        (_recipient(subjects=["x"]), "subjects need an oauth section"),
        (
            _config(
                recipients=[
                    {"name": "a", "token": "token-of-alice"},
                    {"name": "b", "token": "token-of-alice"},
                ]
            ),
            "two of them have the same token",
        ),
        (
            _config(
                oauth={"issuer": "i", "audience": "a", "jwksUrl": "u", "algorithms": ["HS256"]}
            ),
            "'HS256' is no algorithm with a private key",
        ),
        (
            _config(shares=[{"name": "s", "schemas": [{"naame": "d"}]}]),
            r"schemas\[0\].name: a text is missing; did you mean it by 'naame'\?",
        ),
    ],
)
def test_faults_are_named(values: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        parse_config(values)
    assert "token-of-alice" not in str(caught.value)


def test_references_to_the_environment() -> None:
    values = {"a": ["${X}-${Y}", 1, None], "b": {"c": "$${X} $$"}}
    found = resolve_references(values, {"X": "x", "Y": "y"})
    assert found == {"a": ["x-y", 1, None], "b": {"c": "${X} $"}}
    with pytest.raises(InvalidInputError, match=r"a\[0\]: the environment has no variable Y"):
        resolve_references(values, {"X": "x"})
    with pytest.raises(InvalidInputError, match="b: expected"):
        resolve_references({"b": "${not a name}"}, {})


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.yaml", "shares: [", r"c.yaml, line 1"),
        ("c.yaml", "!!python/object/apply:os.system ['x']", r"c.yaml, line 1"),
        ("c.toml", "shares = [", "c.toml"),
        ("c.yaml", "", "configuration: expected a mapping"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        load_config(tmp_path / name, {})
    with pytest.raises(InvalidInputError, match="cannot read the configuration"):
        load_config(tmp_path / "nowhere.yaml")


RELOADED = """
shares:
- name: {share}
  schemas: [{{name: d, tables: [{{name: t, location: "{table}"}}]}}]
recipients:
- {{name: alice, token: {token}}}
"""


def test_a_changed_file_is_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    path = tmp_path / "c.yaml"

    def write(share: str, token: str, more: str = "") -> None:
        path.write_text(RELOADED.format(share=share, token=token, table=tmp_path / "t") + more)

    write("one", "token-of-alice")
    server = ReloadingServer(path, seconds=0)
    caller = Caller(make_app(server.current))

    def shares(token: str = "token-of-alice") -> list[str] | int:  # noqa: S107
        reply = Caller(caller.app, token).get("/shares")
        return [one["name"] for one in reply.json()["items"]] if reply.status == 200 else 401

    assert shares() == ["one"]
    url = caller.query("one.d.t").lines()[2]["file"]["url"]
    write("two", "token-of-alice")
    assert shares() == ["two"]
    assert caller.download(url).status == 404
    write("two", "another-token")
    assert shares() == 401
    assert shares("another-token") == ["two"]
    with caplog.at_level(logging.ERROR):
        write("three", "another-token", "prot: 1")
        assert shares("another-token") == ["two"]
    assert "did you mean 'port'" in caplog.text
    write("three", "another-token")
    assert shares("another-token") == ["three"]
    with caplog.at_level(logging.WARNING):
        write("three", "another-token", "port: 9000")
        assert shares("another-token") == ["three"]
    assert "port has changed, which needs a restart" in caplog.text
    path.unlink()
    assert shares("another-token") == ["three"]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.toml"
    path.write_text(TOML.replace("${KEY}", "k" * 16).replace("${TOKEN}", "token-of-alice"))
    assert main(["check", str(path)]) == 0
    assert main(["check", str(tmp_path / "nowhere.toml")]) == 2
    assert "cannot read the configuration" in capsys.readouterr().err
    assert main(["token"]) == 0
    token, digest = (line.partition(": ")[2] for line in capsys.readouterr().out.splitlines())
    assert digest == f"sha256:{token_digest(token)}"


def test_tables_are_looked_at_before_anybody_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    tables = [
        {"name": "right", "location": str(tmp_path / "t"), "rowFilter": "a > 0"},
        {"name": "odd", "location": str(tmp_path / "t"), "columns": ["b"]},
        {"name": "gone", "location": str(tmp_path / "nowhere")},
    ]
    shares = [{"name": "s", "schemas": [{"name": "d", "tables": tables}]}]
    path = tmp_path / "c.json"
    path.write_text(json.dumps(_config(shares=shares)))
    assert main(["check", str(path)]) == 0
    assert main(["check", "--tables", str(path)]) == 2
    *_, counts, right, odd, gone = capsys.readouterr().out.splitlines()
    assert counts.endswith("shares: 1, tables: 3, recipients: 1")
    assert right == "s.d.right: can be shared"
    assert odd.startswith("s.d.odd: ")
    assert "'b'" in odd
    assert "nowhere" in gone


def test_the_server_runs_from_its_file(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"a": [1]}))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = tmp_path / "c.yaml"
    reference = '"${TOKEN}"'
    text = RELOADED.format(share="s", token=reference, table=tmp_path / "t")
    path.write_text(f"{text}port: {port}\nhost: 127.0.0.1\n")
    command = [sys.executable, "-m", "deltalog.sharing", "serve", str(path)]
    environment = {**os.environ, "TOKEN": "token-of-alice"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as server:
        try:
            _wait(port, server)
            found = _get(port, "/delta-sharing/shares/s/schemas/d/tables/t/version")
        finally:
            server.terminate()
            assert server.stderr is not None
            logged = server.stderr.read().decode()
    assert found["delta-table-version"] == "0"
    assert "server" not in found
    lines = [json.loads(line) for line in logged.splitlines() if line.startswith("{")]
    assert lines[-1]["action"] == "get_version"
    assert "token-of-alice" not in logged


def _get(port: int, target: str) -> dict[str, str]:
    """The headers of an answer that is a success."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", target, headers={"Authorization": "Bearer token-of-alice"})
        answer = connection.getresponse()
        assert answer.status == 200
        return {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError):
            _get(port, "/health")
            return
        assert server.poll() is None, "the server ended"
        time.sleep(0.05)
    raise AssertionError("the server did not start")


def test_the_command_of_the_whole_library(tmp_path: Path) -> None:
    testing = pytest.importorskip("typer.testing", reason="typer is not installed")
    from deltalog.cli import app as commands

    runner = testing.CliRunner()
    assert "hash: sha256:" in runner.invoke(commands, ["share", "token"]).output
    wrong = tmp_path / "c.yaml"
    wrong.write_text("prot: 1")
    for command in (["share", "check", str(wrong)], ["share", "serve", str(wrong), "--port", "1"]):
        assert runner.invoke(commands, command).exit_code == 2


def test_the_guide_s_configuration_is_one() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    page = Path(__file__).parents[2] / "docs" / "how-to" / "sharing-server.md"
    blocks = re.findall(r"^```yaml\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    whole, oauth = (
        yaml.safe_load(block.replace("sha256:5c2a…", f"sha256:{token_digest('x')}"))
        for block in blocks[:2]
    )
    values = resolve_references(whole, {"SHARING_KEY": "k" * 16})
    assert parse_config(values).shares[0].schemas[0].tables[0].history_shared
    found = parse_config({**values, **oauth})
    assert found.recipients[0].subjects == ("4c1f2a66-client-id",)
    table = {"name": "t", "location": "/x"}
    for block in blocks[2:]:
        part = yaml.safe_load(f"x:\n{block}" if block.startswith(" ") else block)["x"]
        rows = part.get("tables", [{**table, **part}])
        parse_config(_config(shares=[{"name": "s", "schemas": [{"name": "d", "tables": rows}]}]))
