"""The configuration file: YAML and TOML, the environment, reloading."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.errors import InvalidInputError
from deltalog.sharing.server import parse_config
from deltalog.sharing.server.application import make_app
from deltalog.sharing.server.config_file import (
    ReloadingServer,
    load_config,
    resolve_references,
    settled_server,
)
from deltalog.sharing.server.tokens import token_digest
from tests.support.sharing import Caller, small_config

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
shares = "all"
"""


def test_a_file_in_toml(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(TOML)
    config = load_config(path, {"KEY": "k" * 16, "TOKEN": "token-of-alice"})
    (table,) = config.shares[0].schemas[0].tables
    assert table.storage_options == {"region": "eu"}
    assert config.signing_keys == (b"k" * 16,)


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
        ("c.yaml", "shares: [", r"c.yaml, line 1, column 10: it is not valid YAML: expected a va"),
        (
            "c.yaml",
            'a: "x\n',
            r"line 2, column 1: .*: found the end of the file, in what begins in line 1",
        ),
        ("c.yaml", "a: {b: 1\nc: 2", r"line 2, column 2: .*: expected ',' or '}', found ':'"),
        (
            "c.yaml",
            "a: b: c",
            r"line 1, column 5: it is not valid YAML: found ':' in a value; check",
        ),
        ("c.yaml", "a:\n\tb: 1", r"line 2, column 1: .*: found a tab instead of spaces"),
        ("c.yaml", "a: 1\nb: \x01", r"line 2, column 4: .*: found a control character"),
        ("c.yaml", "- a\nb: 1", r"expected the end of the block, found a key"),
        (
            "c.yaml",
            "a: *x",
            r"c.yaml, line 1, column 4: the alias \*x is not defined; put the value",
        ),
        ("c.yaml", "a: !x 1", r"c.yaml, line 1, column 4: the type !x is not supported"),
        ("c.yaml", "!!python/object/apply:os.system ['x']", r"c.yaml, line 1"),
        ("c.toml", "shares = [", r"c.toml: it is not valid TOML: invalid value \(at end of doc"),
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
- {{name: alice, token: {token}, shares: all}}
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


def test_a_file_that_is_being_written_is_read_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.yaml"
    whole = RELOADED.format_map({"share": "one", "token": "token-of-alice", "table": tmp_path})
    pieces = [whole[: len(whole) // 2], whole, whole + "port: 9000\n"]

    def write_more(seconds: float) -> None:
        assert seconds > 0
        if pieces:
            path.write_text(pieces.pop(0))

    write_more(1)
    monkeypatch.setattr(time, "sleep", write_more)
    assert settled_server(path).config.port == 9000
    assert not pieces


def test_a_file_to_which_nobody_wrote_for_two_seconds_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.yaml"
    values = {"share": "one", "token": "token-of-alice", "table": tmp_path}
    path.write_text(RELOADED.format_map(values))
    written_ms = path.stat().st_ctime_ns // 1_000_000
    monkeypatch.setattr("deltalog.sharing.server.config_file.now_ms", lambda: written_ms + 2000)
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it waits"))
    assert settled_server(path).config.shares[0].name == "one"


def test_the_guide_s_configuration_is_one() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    guides = Path(__file__).parents[2] / "docs" / "how-to"
    text = "\n".join(
        (guides / f"sharing-{name}.md").read_text("utf-8") for name in ("server", "operations")
    )
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
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
        if not block.startswith(" "):
            parse_config({**values, **yaml.safe_load(block)})
            continue
        part = yaml.safe_load(f"x:\n{block}")["x"]
        rows = part.get("tables", [{**table, **part}])
        parse_config(
            small_config(shares=[{"name": "s", "schemas": [{"name": "d", "tables": rows}]}])
        )


def test_secrets_from_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "secrets").mkdir()
    secret = tmp_path / "secrets" / "key"
    secret.write_bytes(b"a key of sixteen bytes\n")
    secret.chmod(0o400)
    path = tmp_path / "c.yaml"
    path.write_text(
        'signingKey: ["${file:secrets/key}", "${file:${PLACE}/key}"]\n'
        "shares: []\n"
        "recipients: [{name: alice, token: '${TOKEN}', shares: all}]\n"
    )
    path.chmod(0o600)
    with caplog.at_level(logging.WARNING, "deltalog.sharing"):
        environment = {"PLACE": str(tmp_path / "secrets"), "TOKEN": "token-of-alice"}
        config = load_config(path, environment)
        assert caplog.text == ""
        secret.chmod(0o444)
        load_config(path, environment)
    assert config.signing_keys == (b"a key of sixteen bytes",) * 2
    assert f"every user of this machine can read {secret}" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${file:gone}", "b: cannot read .*gone: FileNotFoundError"),
        ("${file:.}", "b: cannot read .*: IsADirectoryError"),
        ("${file:bytes}", "b: cannot read .*bytes: UnicodeDecodeError"),
        ("${file:long}", "b: .*long has more than 65536 bytes"),
        ("${file:${NOT_THERE}/x}", "b: the environment has no variable NOT_THERE"),
        ("${file:}", "b: expected"),
        ("${file:a$b}", "b: expected"),
    ],
)
def test_files_that_hold_no_secret(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "long").write_bytes(b"a" * 70_000)
    with pytest.raises(InvalidInputError, match=message):
        resolve_references({"b": text}, {}, directory=tmp_path)


def test_what_a_file_holds_is_no_reference(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("${TOKEN} $$")
    found = resolve_references(["${file:key}", "${X}"], {"X": "${file:key}"}, directory=tmp_path)
    assert found == ["${TOKEN} $$", "${file:key}"]
