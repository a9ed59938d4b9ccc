"""Profiles, wherever they are kept, and URLs of tables."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fsspec
import pytest

from deltalog.errors import InvalidInputError, MalformedMessageError
from deltalog.sharing.client import (
    HttpOptions,
    Retry,
    SharedTable,
    SharingClient,
    load_as_pandas,
    parse_table_url,
    read_profile,
)
from deltalog.sharing.wire.lines import Table
from deltalog.sharing.wire.profile import BearerToken

EXAMPLE: dict[str, Any] = {
    "shareCredentialsVersion": 1,
    "endpoint": "https://sharing.delta.io/delta-sharing/",
    "bearerToken": "<token>",
    "expirationTime": "2021-11-12T00:12:29.0Z",
}


def _file(directory: Path, **more: Any) -> Path:
    path = directory / "open-datasets.share"
    path.write_text(json.dumps({**EXAMPLE, **more}), "utf-8")
    return path


@pytest.mark.parametrize("without", ["shareCredentialsVersion", "endpoint", "bearerToken"])
def test_the_error_of_an_incomplete_profile_names_it_once(tmp_path: Path, without: str) -> None:
    values = {name: value for name, value in EXAMPLE.items() if name != without}
    path = tmp_path / "p.share"
    path.write_text(json.dumps(values), "utf-8")
    for source in (path, values, io.BytesIO(path.read_bytes())):
        name = f" {str(path)!r}" if source == path else ""
        with pytest.raises(MalformedMessageError) as found:
            read_profile(source)
        assert str(found.value).startswith(f"cannot read the profile{name}: profile.{without}")


@pytest.mark.protocol("SHARE-PRO-01", "SHARE-GEN-01", "B-97")
def test_a_profile_is_read_wherever_it_is_kept(tmp_path: Path) -> None:
    path = _file(tmp_path)
    with fsspec.open("memory://profiles/p.share", "wb") as file:
        file.write(path.read_bytes())
    found = [
        read_profile(source)
        for source in (
            str(path),
            path,
            path.as_uri(),
            "memory://profiles/p.share",
            io.BytesIO(path.read_bytes()),
            io.StringIO(path.read_text("utf-8")),
            EXAMPLE,
        )
    ]
    assert all(one == found[0] for one in found)
    assert found[0].endpoint == "https://sharing.delta.io/delta-sharing"
    assert found[0].credentials == BearerToken(token=EXAMPLE["bearerToken"])
    assert found[0].expiration_ms == 1636675949000
    assert read_profile(found[0]) is found[0]


@pytest.mark.protocol("SHARE-PRO-03")
def test_a_profile_without_an_end_never_ends() -> None:
    assert read_profile({**EXAMPLE, "expirationTime": None}).expiration_ms is None


@pytest.mark.protocol("SHARE-PRO-02")
@pytest.mark.parametrize("version", [0, 3, 999])
def test_a_later_version_asks_for_an_upgrade(version: int) -> None:
    words = (
        "is .* which is too new" if version else "cannot use"
    )  # the official client's, where new
    with pytest.raises(InvalidInputError, match=f"{words}.*upgrade"):
        SharingClient({**EXAMPLE, "shareCredentialsVersion": version})


@pytest.mark.protocol("SHARE-PRO-04")
def test_an_unknown_type_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="'carrier_pigeon'"):
        SharingClient({**EXAMPLE, "shareCredentialsVersion": 2, "type": "carrier_pigeon"})


@pytest.mark.parametrize(
    "profile",
    [{}, {"shareCredentialsVersion": 1}, {**EXAMPLE, "bearerToken": 7}, {**EXAMPLE, "endpoint": 1}],
)
def test_what_is_no_profile_is_refused(profile: dict[str, Any]) -> None:
    with pytest.raises(MalformedMessageError):
        SharingClient(profile)


def test_a_file_that_is_not_there_is_named_without_its_secrets() -> None:
    with pytest.raises(InvalidInputError, match=r"absent\.share") as caught:
        read_profile("memory://profiles/absent.share?sig=geheim&X-Amz-Signature=geheim")
    assert "geheim" not in str(caught.value)


def test_a_huge_file_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b" " * (1 << 21))
    with pytest.raises(InvalidInputError, match="small JSON file"):
        read_profile(path)


@pytest.mark.parametrize("source", [7, None, ["x"]])
def test_other_things_are_no_profiles(source: Any) -> None:
    with pytest.raises(InvalidInputError, match="a profile from"):
        read_profile(source)


@pytest.mark.protocol("SHARE-PRO-05")
def test_secrets_are_not_shown() -> None:
    profile = read_profile({**EXAMPLE, "bearerToken": "geheim"})
    client = SharingClient(profile)
    shown = [repr(profile), repr(client), repr(client.rest.profile), repr(client.table("a.b.c"))]
    assert not [text for text in shown if "geheim" in text]


@pytest.mark.protocol("SHARE-PRO-05")
@pytest.mark.parametrize(("mode", "hints"), [(0o600, 0), (0o640, 1), (0o604, 1)])
def test_a_profile_that_others_can_read_is_hinted_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, hints: int
) -> None:
    path = _file(tmp_path)
    path.chmod(mode)
    read_profile(path)
    read_profile(path)
    assert [record.getMessage().count("chmod 600") for record in caplog.records] == [1] * hints


@pytest.mark.protocol("SHARE-CLI-01")
def test_the_last_hash_parts_profile_and_table() -> None:
    location, table = parse_table_url("C:\\my #1\\p.share#sales.default.orders")
    assert location == "C:\\my #1\\p.share"
    assert table == Table(share="sales", schema="default", name="orders")


@pytest.mark.protocol("SHARE-CLI-01")
@pytest.mark.parametrize(
    "url", ["p.share", "p.share#a.b", "p.share#a.b.c.d", "C:#x", "#a.b.c", "p.share#a..c"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match=r"<share>\.<schema>\.<table>"):
        SharedTable(url)


def test_a_table_object_needs_a_server() -> None:
    with pytest.raises(InvalidInputError, match="expected also a profile"):
        SharedTable(Table(share="a", schema="b", name="c"))


def test_a_missing_profile_is_described(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"none\.share': there is no such file; .*provider"):
        read_profile(tmp_path / "none.share")
    with pytest.raises(InvalidInputError, match="it is a directory; expected a JSON file"):
        read_profile(tmp_path)


@pytest.mark.parametrize("value", [5, None, Path("p.share#a.b.c")])
def test_what_names_no_table_is_told_the_forms(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected also a profile or a client, or the"):
        SharedTable(value)


def test_an_error_shows_no_token() -> None:
    profile: Any = {
        "shareCredentialsVersion": 1,
        "endpoint": "https://x.example",
        "bearerToken": "secret-token",
    }
    for arguments in ((profile,), (profile, "a.b.c"), (profile, profile)):
        with pytest.raises(InvalidInputError) as caught:
            SharedTable(*arguments)
        assert "secret-token" not in str(caught.value)


def test_an_unknown_scheme_of_a_profile_is_described() -> None:
    with pytest.raises(InvalidInputError, match="neither a file nor the URL of one") as caught:
        SharedTable("delta-sharing://p.share#a.b.c")
    assert "ValueError" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("p.share#a.b", "found 'a.b', which has no table; SharingClient"),
        ("p.share#a", "found 'a', which has no schema"),
        ("a.b.c", "found no '#'"),
    ],
)
def test_a_url_without_a_part_says_which(url: str, found: str) -> None:
    with pytest.raises(InvalidInputError, match=f"<share>.<schema>.<table>', {found}"):
        parse_table_url(url)


def test_an_endpoint_without_a_scheme_is_refused() -> None:
    with pytest.raises(MalformedMessageError, match="begins with https:// or http://"):
        SharingClient({**EXAMPLE, "endpoint": "sharing.delta.io/delta-sharing"})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Retry(attempts=0), r"Retry\(attempts=0\): expected 1 or more"),
        (lambda: HttpOptions(timeout=5), "use connect_timeout_s=… and read_timeout_s=…"),  # type: ignore[call-arg]
        (lambda: HttpOptions(retries=5), r"use retry=Retry\(attempts=…\)"),  # type: ignore[call-arg]
        (lambda: SharedTable("a.b.c", client=5), r"such as SharingClient\(profile\)\.rest"),  # type: ignore[arg-type]
        (lambda: SharingClient(EXAMPLE).get_table("a.b.c"), r"use table\('share.schema.table'\)"),  # type: ignore[attr-defined]
        (lambda: load_as_pandas("p#a.b.c", limitt=5), "did you mean 'limit'"),  # type: ignore[call-arg]
        (lambda: load_as_pandas("p#a.b.c", columns=["a"]), r"use SharedTable\(url\)\.scan"),  # type: ignore[call-arg]
    ],
)
def test_wrong_calls_say_what_to_write(call: Any, words: str) -> None:
    with pytest.raises((InvalidInputError, TypeError, AttributeError), match=words):
        call()


def test_the_names_in_a_profile_are_shown_without_values() -> None:
    """A profile of another program may call the token otherwise."""
    other = {name: value for name, value in EXAMPLE.items() if name != "bearerToken"}
    with pytest.raises(
        MalformedMessageError, match=r"bearerToken.*; the profile has .*token"
    ) as no:
        read_profile({**other, "token": "geheim"})
    assert "geheim" not in str(no.value)
