"""Store kinds are one table: nobody else names a kind, and a new kind is one row."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from deltalog import DeltaTable, write_deltalake
from deltalog._util.paths import split_location
from deltalog._util.store_kinds import KINDS, Address, PutIfAbsent, StoreKind
from deltalog.errors import AccessDeniedError, AlreadyExistsError, StorageError
from deltalog.storage import open_store
from deltalog.storage.stores.filesystems import class_named, files_class, own_path
from deltalog.storage.stores.fsspec_files import FsspecFiles
from tests.support.source import Source

ROWS = tuple(dict.fromkeys(KINDS.values()))
NAMES = KINDS.keys() - {"data"}  # a scheme, and an everyday word
NAMED = re.compile(rf"(?:{'|'.join(sorted(NAMES))})(?::(?://.*)?)?", re.DOTALL)

A_FILE_ACTION = "Delta Sharing's name of an action, or of what is not there"
A_LOCAL_URL = "Hadoop's spelling of a local path in a log or a manifest"
OTHERWISE_MEANT = {
    ("sharing/server/downloads.py", "file"): A_FILE_ACTION,
    ("sharing/server/endpoints.py", "file"): A_FILE_ACTION,
    ("sharing/server/queries.py", "file"): A_FILE_ACTION,
    ("sharing/server/changes.py", "file"): A_FILE_ACTION,
    ("sharing/server/views.py", "file"): A_FILE_ACTION,
    ("sharing/wire/lines.py", "file"): A_FILE_ACTION,
    ("catalogs/unity/client.py", "https://"): "which URLs of servers are safe",
    ("storage/http/client.py", "http"): "which URLs of servers are safe",
    ("storage/http/client.py", "https"): "which URLs of servers are safe",
    ("storage/http/client.py", "https:"): "which URLs of servers are safe",
    ("sharing/client/profile.py", "file://"): "a profile's place, which fsspec opens",
    ("sharing/server/middleware.py", "http"): "ASGI's name of a request",
    ("sharing/server/config_settings.py", "http://"): "which URLs of servers are known",
    ("sharing/server/config_settings.py", "https://"): "which URLs of servers are known",
    ("sharing/server/serving.py", "http"): "where the server listens",
    ("sharing/server/serving.py", "https"): "where the server listens",
    ("sharing/__main__.py", "http://localhost:8080/delta-sharing/"): "where the server listens",
    ("sharing/server/recipients.py", "http"): "which URLs of servers are safe",
    ("sharing/server/recipients.py", "https"): "which URLs of servers are safe",
    ("integrations/telemetry.py", "http"): "OpenLineage's name of a transport",
    ("storage/stores/obstore_files.py", "s3"): "an argument of s3fs",
    ("storage/stores/obstore_files.py", "http"): "which endpoints a service has",
    ("storage/stores/obstore_files.py", "http://"): "which endpoints a service has",
    ("storage/stores/obstore_files.py", "https"): "which endpoints a service has",
    ("storage/fsspec_store.py", "http://"): "which endpoints a service has",
    ("_util/readable.py", "file"): "a noun",
    ("log/replay.py", "file:"): A_LOCAL_URL,
    ("operations/clone.py", "file:"): A_LOCAL_URL,
    ("transaction/maintenance/manifests.py", "file:"): A_LOCAL_URL,
}


def test_only_the_table_and_the_kinds_own_modules_name_a_kind(source: Source) -> None:
    own = {files_class(kind).__module__ for kind in ROWS} - {FsspecFiles.__module__}
    found = {
        (name, text)
        for name, text in source.strings()
        if NAMED.fullmatch(text)
        and f"deltalog.{name.removesuffix('.py').replace('/', '.')}"
        not in {StoreKind.__module__, *own}
        and not name.endswith("/moved.py")  # names of modules
    }
    assert found == set(OTHERWISE_MEANT)


def _fsspec_class(kind: StoreKind) -> Any:
    """None where it is not installed, or is no file system at all."""
    try:
        return fsspec.get_filesystem_class(kind.name)
    except (ImportError, ValueError):
        return None


WITH_HOST = {Address.HOST, Address.BUCKET, Address.ACCOUNT}
URLS = [
    (kind, f"{kind.name}://{place}/a b/c")
    for place, forms in {"": {Address.PATH, Address.HOST}, "place": WITH_HOST}.items()
    for kind in ROWS
    if kind.address in forms and _fsspec_class(kind) is not None
]


@pytest.mark.parametrize(("kind", "url"), URLS, ids=[url for _, url in URLS])
def test_a_url_is_the_path_that_fsspec_takes_it_for(kind: StoreKind, url: str) -> None:
    _, authority, path = split_location(url)
    assert own_path(kind, authority, path) == _fsspec_class(kind)._strip_protocol(url)


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.name)
def test_a_row_names_what_is_there(kind: StoreKind) -> None:
    files = files_class(kind)
    assert isinstance(files, type)
    if kind.quicker:
        assert issubclass(class_named(kind.quicker), files)
    assert kind.put_if_absent is not PutIfAbsent.REQUEST or issubclass(files, FsspecFiles)
    made = _fsspec_class(kind)
    if kind.filesystem == "(none)":
        assert not issubclass(files, FsspecFiles)
    elif kind.filesystem and made is not None:
        # Else the row's own calls would never be used.
        assert kind.filesystem in {cls.__module__ for cls in made.__mro__}


class Sealed(Exception):  # noqa: N818  # as a foreign library names it
    """What the vault says when the key does not fit."""


class Vault(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store of its own kind, whose conditional put is one step."""

    protocol = "vault"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    lock = threading.Lock()

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        with self.lock:
            super().pipe_file(path, value, mode=mode)

    def cat_file(self, path: str, start: Any = None, end: Any = None, **_: Any) -> bytes:
        if path.endswith("sealed"):
            raise Sealed("no")
        path = self._strip_protocol(path)
        if path not in self.store:
            raise FileNotFoundError(path)
        content: bytes = self.store[path].getvalue()
        return content[start:end]


@pytest.fixture
def vault() -> None:
    fsspec.register_implementation("vault", Vault, clobber=True)
    Vault.store.clear()


@pytest.fixture
def row(vault: None, monkeypatch: pytest.MonkeyPatch) -> None:
    del vault
    kind = StoreKind("vault", put_if_absent=PutIfAbsent.REQUEST, says_denied="Sealed")
    monkeypatch.setitem(KINDS, kind.name, kind)


@pytest.mark.usefixtures("row")
def test_a_new_kind_is_one_row() -> None:
    url, rows = "vault://safe/a table", pa.table({"id": [1, 2]})
    write_deltalake(url, rows)
    write_deltalake(url, rows, mode="append")
    table = DeltaTable(url)
    table.delete("id = 1")
    assert table.version() == 2
    assert [entry["operation"] for entry in table.history()] == ["DELETE", "WRITE", "WRITE"]
    assert DeltaTable(url).to_pyarrow_table().column("id").to_pylist() == [2, 2]
    assert len(DeltaTable(url, version=1).file_uris()) == 2
    with pytest.raises(AccessDeniedError, match="Sealed"):
        open_store(url).read("sealed")


@pytest.mark.usefixtures("row")
@pytest.mark.protocol("LOG-06", "B-01", "D-26")
def test_of_16_writers_of_a_new_kind_one_wins() -> None:
    store = open_store("vault://safe/t")

    def race(writer: int) -> bool:
        try:
            store.put_if_absent("_delta_log/0.json", str(writer).encode())
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        wins = list(pool.map(race, range(16)))
    assert wins.count(True) == 1
    assert store.read("_delta_log/0.json") == str(wins.index(True)).encode()


@pytest.mark.usefixtures("vault")
@pytest.mark.protocol("B-01", "D-26")
def test_a_kind_without_a_row_refuses_to_commit_by_name() -> None:
    store = open_store("vault://safe/t")
    store.put("x", b"1")
    assert store.read("x") == b"1"
    with pytest.raises(StorageError, match=r"no atomic put-if-absent .* of kind 'vault'"):
        store.put_if_absent("_delta_log/0.json", b"1")
    assert [file.path for file in store.list_all("")] == ["x"]
