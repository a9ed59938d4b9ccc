"""Options of Google Cloud Storage, in every spelling."""

from __future__ import annotations

from typing import Any

import pytest

from deltalog.errors import InvalidInputError
from deltalog.storage.filesystems import filesystem_options
from deltalog.store_kinds import KINDS


def google(options: dict[str, Any]) -> dict[str, Any]:
    return filesystem_options(KINDS["gs"], options, "gs://b/t")


def test_google_in_the_native_spelling() -> None:
    assert google({"google_service_account": "/key.json"}) == {"token": "/key.json"}
    assert google({"GOOGLE_APPLICATION_CREDENTIALS": "/key.json"}) == {"token": "/key.json"}
    assert google({"google_service_account_key": '{"type": "service_account"}'}) == {
        "token": {"type": "service_account"}
    }
    assert google({"google_skip_signature": "true"}) == {"token": "anon"}
    assert google({"token": "cloud", "project": "p"}) == {"token": "cloud", "project": "p"}


def test_a_wrong_service_account_key_is_not_quoted() -> None:
    with pytest.raises(InvalidInputError) as caught:
        google({"google_service_account_key": "{SECRET123"})
    assert "SECRET123" not in str(caught.value)


def test_a_lent_token_is_no_path_of_a_file() -> None:
    token = google({"google_oauth_token": "lent"})["token"]
    assert (token.token, token.valid) == ("lent", True)
