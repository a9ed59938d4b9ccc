"""fsspec file systems for tests: poor ones and odd ones."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import fsspec


class OneByOneFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Local files by the base class's means alone: nothing asynchronous, nothing atomic."""

    protocol = "onebyone"

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        place = Path(self._strip_protocol(path))
        if not place.exists():
            raise FileNotFoundError(path)
        entries = [self.info(str(entry)) for entry in place.iterdir()] if place.is_dir() else []
        return entries if detail else [entry["name"] for entry in entries]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        place = Path(self._strip_protocol(path))
        found = place.stat()
        kind = "directory" if place.is_dir() else "file"
        return {
            "name": str(place),
            "size": found.st_size,
            "type": kind,
            "mtime": found.st_mtime_ns // 1_000_000 / 1000,
        }

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        place = Path(self._strip_protocol(path))
        if mode == "rb":
            return io.BytesIO(place.read_bytes())
        place.parent.mkdir(parents=True, exist_ok=True)
        return place.open(mode)

    def rm_file(self, path: str) -> None:
        Path(self._strip_protocol(path)).unlink()

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix("onebyone://")


class ShuffledFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A directory whose entries come in no order, with a marker of itself among them."""

    protocol = "shuffled"

    def __init__(self, names: list[str], **options: Any) -> None:
        super().__init__(**options)
        self.names = names

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        assert detail
        entries = [{"name": f"{path}/{name}", "size": 1, "type": "file"} for name in self.names]
        entries.append({"name": path, "size": 0, "type": "file"})
        entries.append({"name": f"{path}/", "size": 0, "type": "file"})
        entries.append({"name": f"{path}/zz", "size": 0, "type": "directory"})
        random.Random(7).shuffle(entries)
        return entries

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix("shuffled://")


class ExpiringFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Refuses tickets that are older than `valid_from`; its files tell which ticket was used."""

    protocol = "expiring"
    valid_from = 1

    def __init__(self, ticket: int, password: str, **options: Any) -> None:
        super().__init__(**options)
        self.ticket = ticket
        self.password = password

    def cat_file(self, path: str, start: int | None = None, end: int | None = None) -> bytes:
        if self.ticket < self.valid_from:
            raise PermissionError(f"ticket {self.ticket} expired; password={self.password}")
        if path.endswith("missing"):
            raise FileNotFoundError(path)
        return f"{path} {self.ticket}".encode()[start:end]

    @classmethod
    def register(cls) -> None:
        fsspec.register_implementation("expiring", cls, clobber=True)
