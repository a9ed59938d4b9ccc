"""Local files by the operating system's own calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from deltalog.storage import FsspecStore, open_store
from deltalog.storage.stores import local_files
from deltalog.storage.stores.local_files import LocalFiles


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


@pytest.mark.parametrize("has_pread", [True, False])
def test_a_range_is_whole_if_the_system_returns_less_than_requested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_pread: bool
) -> None:
    """Linux returns at most 2 GiB at once."""
    path = tmp_path / "file"
    path.write_bytes(bytes(range(100)))
    read_once = local_files._read_once

    def read_little(file: Any, start: int, num_bytes: int) -> bytes:
        return read_once(file, start, min(num_bytes, 7))

    monkeypatch.setattr(local_files, "_read_once", read_little)
    if not has_pread:
        monkeypatch.setattr(local_files, "_PREAD", None)
    ranges = [(0, 100), (10, 30), (95, 120), (5, 5), (200, 210)]
    found = LocalFiles().read_ranges(str(path), ranges)
    assert found == [bytes(range(100))[start:end] for start, end in ranges]
