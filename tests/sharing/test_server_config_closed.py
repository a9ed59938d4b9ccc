"""A configuration that says less, or says it twice, never grants more."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path
from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.sharing.server import parse_config
from deltalog.sharing.server.application import make_app
from deltalog.sharing.server.config_file import ReloadingServer, load_config
from tests.support.sharing import Caller, small_config


def _table(**settings: Any) -> dict[str, Any]:
    table = {"name": "t", "location": "/x", **settings}
    return small_config(shares=[{"name": "s", "schemas": [{"name": "d", "tables": [table]}]}])


def _recipient(**settings: Any) -> dict[str, Any]:
    one = {"name": "alice", "token": "token-of-alice", "shares": "all", **settings}
    return small_config(recipients=[one])


def _with_expiry(moment: object) -> dict[str, Any]:
    return _recipient(tokens=[{"token": "another-token", "expires": moment}])


@pytest.mark.parametrize(
    ("values", "where"),
    [
        (_recipient(shares=None), r"recipients\[0\].shares"),
        (_recipient(ipRanges=None), r"recipients\[0\].ipRanges"),
        (_recipient(tokens=None), r"recipients\[0\].tokens"),
        (_with_expiry(None), r"recipients\[0\].tokens\[0\].expires"),
        (_table(rowFilter=None), r"tables\[0\].rowFilter"),
        (_table(columns=None), r"tables\[0\].columns"),
        (_table(startVersion=None, historyShared=True), r"tables\[0\].startVersion"),
        (_table(storageOptions={"anon": None}), r"tables\[0\].storageOptions.anon"),
        (small_config(ssl=None), "ssl"),
        (small_config(signingKey=None), "signingKey"),
        (small_config(limits=None), "limits"),
        (small_config(limits={"bodyBytes": None}), "limits.bodyBytes"),
        (small_config(shares=None), "shares"),
    ],
)
def test_null_is_never_no_limit(values: Any, where: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"{where}: is null"):
        parse_config(values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (_recipient(ipRanges=[]), "ipRanges: expected one range or more"),
        (_table(rowFilter=""), "rowFilter: "),
        (_with_expiry("2027-13-45"), r"expires: expected a time such as"),
        (_with_expiry(2027), r"expires: expected a time such as"),
        (_table(temporaryCredentials={"seconds": "soon"}), "seconds: expected a whole number"),
        (
            small_config(
                oauth={"issuer": "i", "audience": "a", "jwksUrl": "u", "algorithms": []},
            ),
            "algorithms: expected one algorithm or more",
        ),
        (
            small_config(
                oauth={"issuer": "i", "audience": "a", "jwksUrl": "u"},
                recipients=[
                    {"name": "a", "subjects": ["x"], "shares": []},
                    {"name": "b", "subjects": ["x"], "shares": "all"},
                ],
            ),
            "two of them have the same subject",
        ),
    ],
)
def test_what_limits_nothing_is_refused(values: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        parse_config(values)


def test_every_share_is_a_word_and_not_an_absence() -> None:
    without = small_config(recipients=[{"name": "alice", "token": "token-of-alice"}])
    with pytest.raises(InvalidInputError, match=r"recipients\[0\].shares: .* or the word all"):
        parse_config(without)
    assert parse_config(_recipient(shares="all")).recipients[0].shares is None
    assert parse_config(_recipient(shares=[])).recipients[0].shares == ()
    named_all = {**_recipient(shares="all"), "shares": [{"name": "All"}, {"name": "s"}]}
    with pytest.raises(InvalidInputError, match=r"a share is named 'All'; write \['All'\]"):
        parse_config(named_all)
    named_all["recipients"][0]["shares"] = ["all"]
    assert parse_config(named_all).recipients[0].shares == ("All",)


YAML = """\
shares:
- name: s
  schemas: [{name: d, tables: [{name: t, location: /x, rowFilter: "a = 1"}]}]
recipients:
- name: alice
  shares: [s]
  ipRanges: [127.0.0.0/8]
  tokens: [{token: token-of-alice, expires: 2999-01-01T00:00:00Z}]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("shares: [s]", "shares: [s]\n  shares: all", "line 7.*'shares' occurs twice"),
        ('rowFilter: "a = 1"', 'rowFilter: "a = 1", rowFilter: "true"', "'rowFilter' occurs twi"),
        ("2999-01-01T00:00:00Z", "2027-13-45", "expires: expected a time such as|line 8"),
        ("2999-01-01T00:00:00Z", "2027-13-45T00:00:00Z", "expected a time|line 8"),
        ("shares: [s]", "shares:", "shares: is null"),
        ("shares: [s]", "shares: ~", "shares: is null"),
        ("name: s\n", "name: s\n  properties: &a [*a]\n", "c.yaml"),
        ("name: s\n", f"name: s\n  comment: {'[' * 5000}\n", "c.yaml"),
        ("name: s\n", f"name: s\n  comment: {'9' * 5000}\n", "c.yaml"),
        ("name: s\n", "? [x]\n  : 1\n  name: s\n", "c.yaml"),
    ],
)
def test_a_file_that_says_it_wrongly_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(YAML)
    load_config(path, {})
    path.write_text(YAML.replace(old, new))
    with pytest.raises(InvalidInputError, match=message) as caught:
        load_config(path, {})
    assert "token-of-alice" not in str(caught.value)


def test_merged_keys_of_yaml_are_not_duplicates(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        YAML.replace("- name: alice", "- &a\n  name: alice")
        + "- {<<: *a, name: bob, tokens: [{token: token-of-bob}]}\n"
    )
    alice, bob = load_config(path, {}).recipients
    assert bob.networks == alice.networks != ()


def test_any_damage_is_a_refusal(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    randomness = random.Random(7)
    for _ in range(400):
        text = bytearray(YAML.encode())
        for _ in range(randomness.choice([1, 2, 5])):
            at = randomness.randrange(len(text))
            text[at : at + randomness.choice([0, 1, 9])] = randomness.choice(
                [
                    b"",
                    b":",
                    b"\n",
                    b"[",
                    b"&a ",
                    b"*a ",
                    b"99-99-99",
                    b"!!int ",
                    b"\xff",
                    b"~",
                    b"{",
                ]
            )
        path.write_bytes(bytes(text))
        with contextlib.suppress(InvalidInputError):
            load_config(path, {})


def _shares(caller: Caller) -> list[str]:
    return [one["name"] for one in caller.get("/shares").json()["items"]]


def test_a_file_is_followed_when_it_has_settled(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    narrow = YAML.replace("- name: s\n", "- name: s\n- name: u\n")
    path.write_text(narrow)
    _age(path)
    server = ReloadingServer(path, seconds=1000)
    caller = Caller(make_app(server.current))
    assert _shares(caller) == ["s"]
    # A writer that is at work: shares are written, the recipient's limits are not yet.
    half = narrow.replace("shares: [s]", "shares: [s, u]").partition("  ipRanges")[0]
    path.write_text(half + "  token: token-of-alice\n")
    server.reload()
    assert _shares(caller) == ["s"]
    path.write_text(narrow.replace("shares: [s]", "shares: [u]"))
    server.reload()
    assert _shares(caller) == ["s"]
    server.reload()
    assert _shares(caller) == ["u"]


def test_a_file_that_was_settled_long_ago_is_followed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(YAML)
    server = ReloadingServer(path, seconds=0)
    path.write_text(YAML.replace("name: s\n", "name: other\n").replace("[s]", "[other]"))
    caller = Caller(make_app(server.current))
    assert _shares(caller) == ["other"]


def test_an_unexpected_error_while_loading_keeps_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(YAML)
    server = ReloadingServer(path, seconds=0)
    caller = Caller(make_app(server.current))
    path.write_text(YAML.replace("2999-01-01T00:00:00Z", "2027-13-45"))
    assert _shares(caller) == ["s"]
    path.unlink()
    path.mkdir()
    assert _shares(caller) == ["s"]


def _age(path: Path) -> None:
    os.utime(path, (1_600_000_000, 1_600_000_000))
