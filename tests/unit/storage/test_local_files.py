"""Local files by the operating system's own calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from deltalog.storage import FsspecStore, open_store


def test_local_files_have_native_paths(tmp_path: Path) -> None:
    store = open_store(tmp_path / "t")
    assert isinstance(store, FsspecStore)
    assert store.native_path("a b") == f"{tmp_path}/t/a b"
    assert store.native_path("file:///x") == "/x"
    assert open_store("memory:///t").native_path("x") is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", ["relative", "file://", "home", "trailing"])
def test_forms_of_local_locations(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    location = {
        "relative": "d/../t",
        "file://": f"file://{tmp_path}/t",
        "home": "~/t",
        "trailing": f"{tmp_path}//t/",
    }[form]
    assert open_store(location).root == f"{tmp_path}/t"
