"""Options of Google Cloud Storage, in every spelling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltalog._util.store_kinds import KINDS
from deltalog.errors import InvalidInputError
from deltalog.storage import open_store
from deltalog.storage.stores.filesystems import filesystem_options


def google(options: dict[str, Any]) -> dict[str, Any]:
    return filesystem_options(KINDS["gs"], options, "gs://b/t")


def test_google_in_the_native_spelling() -> None:
    assert google({"google_service_account_key": '{"type": "service_account"}'}) == {
        "token": {"type": "service_account"}
    }
    assert google({"google_skip_signature": "true"}) == {"token": "anon"}
    assert google({"token": "cloud", "project": "p"}) == {"token": "cloud", "project": "p"}


SERVICE = '{"type": "service_account", "client_email": "e", "private_key": "k", "token_uri": "u"}'


@pytest.mark.parametrize("name", ["google_service_account", "GOOGLE_APPLICATION_CREDENTIALS"])
def test_a_file_of_credentials_is_handed_on(name: str, tmp_path: Path) -> None:
    path = tmp_path / "key.json"
    path.write_text(SERVICE, "utf-8")
    assert google({name: str(path)}) == {"token": str(path)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, r"cannot read the credentials of Google in .*key\.json': No such file"),
        ("secret", "expected a JSON object$"),
        ("[1]", "expected a JSON object$"),
        ('{"type": "external_account"}', "expected the type service_account or authorized_user"),
        ('{"type": "service_account", "private_key": "secret"}', "lacks client_email, token_uri$"),
    ],
)
def test_a_file_of_credentials_is_checked_before_a_request(
    text: str | None, told: str, tmp_path: Path
) -> None:
    """gcsfs takes the path of a missing file for a token, and sends it to Google."""
    path = tmp_path / "key.json"
    if text is not None:
        path.write_text(text, "utf-8")
    with pytest.raises(InvalidInputError, match=told) as caught:
        open_store("gs://b/t", {"google_service_account": str(path)}).read("x")
    assert "secret" not in str(caught.value)


def test_a_file_that_the_environment_names_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/no/such.json")
    with pytest.raises(InvalidInputError, match=r"'/no/such.json': No such file"):
        google({})
    assert google({"google_skip_signature": "true"}) == {"token": "anon"}


def test_a_wrong_service_account_key_is_not_quoted() -> None:
    with pytest.raises(InvalidInputError) as caught:
        google({"google_service_account_key": "{SECRET123"})
    assert "SECRET123" not in str(caught.value)


def test_a_lent_token_is_no_path_of_a_file() -> None:
    token = google({"google_oauth_token": "lent"})["token"]
    assert (token.token, token.valid) == ("lent", True)
