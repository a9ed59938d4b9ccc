"""What a store promises, on emulated S3, Azure Blob Storage and Google Cloud Storage."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    DeltaError,
    InvalidInputError,
    ObjectNotFoundError,
    StorageError,
    TableNotFoundError,
    UnsafePathError,
)
from deltalog.storage import FsspecStore, Store, open_store
from deltalog.storage.parquet.reader import open_parquet
from deltalog.storage.parquet.sink import write_parquet
from tests.support.emulators import Emulator, fill, lose_answer, requests_of

pytestmark = pytest.mark.emulator


@pytest.fixture(params=["s3fs", "obstore", "azure", "gcs"])
def emulator(request: pytest.FixtureRequest) -> Emulator:
    found: Emulator = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def store(emulator: Emulator) -> Store:
    return open_store(emulator.url, emulator.options)


SCHEMA = pa.schema([("id", pa.int64())])
ROWS = pa.table({"id": [1]}, schema=SCHEMA)
NAMES = [
    "a b.parquet",
    "é.parquet",
    "p=x%3Ay/100%25.parquet",
    "h#x.parquet",
    "q?x=1.parquet",
    "*[a].parquet",
    "plus+&.parquet",
]


@pytest.mark.protocol("ADD-02", "D-05")
def test_names_are_taken_literally(store: Store) -> None:
    for name in NAMES:
        store.put(name, name.encode())
    for name in NAMES:
        assert store.read(name) == name.encode()
        assert store.stat(name).size_bytes == len(name.encode())
        assert store.read_ranges(name, [(3, 5), (0, 2)]) == [name.encode()[3:5], name.encode()[:2]]
    assert store.read_many(NAMES) == [name.encode() for name in NAMES]
    assert sorted(file.path for file in store.list_all("")) == sorted(NAMES)


@pytest.mark.protocol("D-25")
def test_listings_begin_at_a_name_and_are_sorted(store: Store) -> None:
    names = [f"{version:020d}.json" for version in range(25)]
    for name in [*names, "_last_checkpoint", "_sidecars/x.parquet"]:
        store.put(f"_delta_log/{name}", b"xy")
    found = list(store.list_from("_delta_log", names[9]))
    expected = [*names[9:], "_last_checkpoint"]
    assert [file.path for file in found] == [f"_delta_log/{name}" for name in expected]
    assert {file.size_bytes for file in found} == {2}
    assert all(file.modified_ms > 1_600_000_000_000 for file in found)
    assert len(list(store.list_from("_delta_log", ""))) == 26
    assert list(store.list_from("_delta", "")) == []
    assert list(store.list_all("_delta")) == []
    assert len(list(store.list_all("_delta_log"))) == 27


def test_listings_are_fresh(store: Store) -> None:
    store.put("d/a", b"1")
    assert len(list(store.list_from("d", ""))) == 1
    store.put("d/b", b"1")
    assert len(list(store.list_from("d", ""))) == 2
    store.put("d/a", b"123")
    assert store.stat("d/a").size_bytes == 3


def test_another_writer_is_seen(emulator: Emulator) -> None:
    ours, theirs = (FsspecStore(emulator.url, {**emulator.options}) for _ in range(2))
    assert list(ours.list_from("_delta_log", "")) == []
    theirs.put_if_absent("_delta_log/0.json", b"1")
    assert [file.path for file in ours.list_from("_delta_log", "")] == ["_delta_log/0.json"]
    assert ours.stat("_delta_log/0.json").size_bytes == 1


def test_what_is_not_there(store: Store) -> None:
    store.put("d/x", b"x")
    attempts: list[Callable[[], object]] = [
        lambda: store.read("zz"),
        lambda: store.stat("zz"),
        lambda: store.stat("d"),
        lambda: store.open("zz").read(),
        lambda: store.read_ranges("zz", [(0, 1), (1, 2)]),
        lambda: store.read_many(["d/x", "zz"]),
    ]
    for attempt in attempts:
        with pytest.raises(ObjectNotFoundError):
            attempt()


def test_deleting(store: Store) -> None:
    names = [f"d/{number} b" for number in range(30)]
    for name in names:
        store.put(name, b"")
    store.delete_many([*names[1:], "nope"])
    assert [file.path for file in store.list_all("")] == names[:1]


@pytest.mark.protocol("LOG-06", "B-01", "D-26")
def test_put_if_absent_never_overwrites(store: Store) -> None:
    store.put_if_absent("_delta_log/0.json", b"first")
    with pytest.raises(AlreadyExistsError, match=r"_delta_log/0\.json.*it exists"):
        store.put_if_absent("_delta_log/0.json", b"second")
    assert store.read("_delta_log/0.json") == b"first"


@pytest.mark.protocol("LOG-06", "B-01", "D-26")
def test_of_32_writers_one_wins(store: Store) -> None:
    def race(writer: int) -> bool:
        try:
            store.put_if_absent("_delta_log/0.json", str(writer).encode())
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(32) as pool:
        wins = list(pool.map(race, range(32)))
    assert wins.count(True) == 1
    assert store.read("_delta_log/0.json") == str(wins.index(True)).encode()


def test_parquet_files(store: Store) -> None:
    table = pa.table({"id": range(10_000), "t": ["x" * 20] * 10_000})
    write_parquet(store, "p=a%20b/x y.parquet", table, row_group_size=2500)
    reader = open_parquet(store, "p=a%20b/x y.parquet")
    assert reader.read().equals(table)
    assert reader.read(["id"], [2]).column("id").to_pylist() == list(range(5000, 7500))
    with pytest.raises(AlreadyExistsError):
        write_parquet(store, "p=a%20b/x y.parquet", table.slice(1))


def test_absolute_paths_in_the_log(store: Store) -> None:
    store.put("d/a b", b"1")
    assert store.read(f"{store.root}/d/a b") == b"1"
    aliases = {"s3": "s3a", "az": "abfss", "gs": "gcs"}
    scheme, _, rest = store.root.partition("://")
    assert store.read(f"{aliases[scheme]}://{rest}/d/a b") == b"1"


def test_a_local_clone_reads_its_source(emulator: Emulator, tmp_path: Any) -> None:
    source = open_store(emulator.url, emulator.options)
    source.put("x", b"1")
    with pytest.raises(UnsafePathError, match="trusted_locations"):
        open_store(tmp_path, emulator.options).read(f"{source.root}/x")
    clone = open_store(tmp_path, {**emulator.options, "trusted_locations": source.root})
    assert clone.read(f"{source.root}/x") == b"1"


def test_stores_pickle(store: Store) -> None:
    store.put("a", b"1")
    copy: Store = pickle.loads(pickle.dumps(store))
    assert copy.read("a") == b"1"


def _child(store: Store, answers: Any) -> None:
    try:
        store.put("b", b"2")
        answers.put(b"".join(store.read_many(["a", "b"])))
    except Exception as error:  # noqa: BLE001  # the parent tells what it was
        answers.put(repr(error))


def test_a_fork_makes_clients_anew(store: Store) -> None:
    store.put("a", b"1")
    context = get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=_child, args=(store, answers))
    process.start()
    assert answers.get() == b"12"
    process.join(timeout=30)
    assert store.read("b") == b"2"


def test_a_file_system_of_the_users_with_a_listings_cache(s3: Emulator) -> None:
    filesystem = fsspec.filesystem(
        "s3",
        key="testing",
        secret=s3.options["AWS_SECRET_ACCESS_KEY"],
        endpoint_url=s3.endpoint,
        use_listings_cache=True,
        skip_instance_cache=True,
    )
    ours = open_store(s3.url, filesystem=filesystem)
    theirs = open_store(s3.url, s3.options)
    assert ours.root == theirs.root
    theirs.put("d/a", b"1")
    assert filesystem.ls(f"{s3.url}/d")
    theirs.put("d/b", b"22")
    assert [file.path for file in ours.list_from("d", "")] == ["d/a", "d/b"]
    assert len(list(ours.list_all(""))) == 2
    theirs.put("d/a", b"333")
    assert ours.stat("d/a").size_bytes == 3
    ours.put_if_absent("d/c", b"")
    with pytest.raises(AlreadyExistsError):
        ours.put_if_absent("d/c", b"")
    copy: Store = pickle.loads(pickle.dumps(ours))
    assert copy.read("d/a") == b"333"


@pytest.fixture(params=["s3fs", "obstore"])
def either_s3(request: pytest.FixtureRequest) -> Emulator:
    found: Emulator = request.getfixturevalue(request.param)
    return found


def test_whole_reads_cost_one_request_each(either_s3: Emulator) -> None:
    store = FsspecStore(either_s3.url, either_s3.options)
    for name in "abc":
        store.put(name, name.encode())
    requests = requests_of(either_s3)
    store.read("a")
    store.read_many(["a", "b", "c"])
    store.read_ranges("a", [(0, 1)])
    found = sorted(request.asked for request in requests)
    assert found == [f"GET a table/{name}" for name in "aaabc"]
    requests = requests_of(either_s3)
    list(store.list_from("", "b"))
    store.put_if_absent("d", b"")
    store.delete_many(["a", "b", "c"])
    found = [request.asked for request in requests]
    assert found == ["GET ?list-type", "PUT a table/d", "POST ?delete"]


def test_obstore_is_used_where_it_is_installed(obstore: Emulator, s3: Emulator) -> None:
    for emulator, agent in ((obstore, "object_store"), (s3, "object_store")):
        requests = requests_of(emulator)
        FsspecStore(emulator.url, emulator.options).put("x", b"")
        assert [agent in request.user_agent for request in requests] == [True]


@pytest.mark.protocol("B-01", "D-26")
def test_commits_are_conditional_requests(either_s3: Emulator) -> None:
    store = FsspecStore(either_s3.url, either_s3.options)
    requests = requests_of(either_s3)
    store.put_if_absent("_delta_log/0.json", b"1")
    store.put("data", b"1")
    assert [request.if_none_match for request in requests] == ["*", None]


@pytest.mark.protocol("B-01", "D-26")
def test_a_commit_whose_answer_is_lost_is_made_once(either_s3: Emulator) -> None:
    url, options = either_s3.url, either_s3.options
    write_deltalake(url, pa.table({"id": [1]}), storage_options=options)
    for ending in ("00001.json", ".parquet"):
        lose_answer(either_s3, ending)
        requests = requests_of(either_s3)
        write_deltalake(url, pa.table({"id": [2]}), mode="append", storage_options=options)
        sent = [r.asked for r in requests if r.asked.startswith("PUT") and r.asked.endswith(ending)]
        assert len(sent) == 2
        assert len(set(sent)) == 1
    table = DeltaTable(url, storage_options=options)
    assert table.version() == 2
    assert table.to_pyarrow_table().sort_by("id").column("id").to_pylist() == [1, 2, 2]


@pytest.mark.protocol("D-25")
def test_long_listings(either_s3: Emulator) -> None:
    store = FsspecStore(either_s3.url, either_s3.options)
    names = [f"d/{number:05d}" for number in range(1010)]
    inner = [f"d/00700_/{number:04d}" for number in range(1001)]
    fill(either_s3, [*names, *inner])
    requests = requests_of(either_s3)
    assert [file.path for file in store.list_from("d", "00950")] == names[950:]
    assert [request.asked for request in requests] == ["GET ?list-type"]
    requests = requests_of(either_s3)
    assert [file.path for file in store.list_from("d", "")] == names
    assert [request.asked for request in requests] == ["GET ?list-type"] * 2
    assert [file.path for file in store.list_from("d", "00699")] == names[699:]
    assert [file.path for file in store.list_from("d/00700_", "")] == inner
    requests = requests_of(either_s3)
    assert store.list_short("d", 100) is None
    assert store.list_short("d/00700_", 100) is None
    assert [request.asked for request in requests] == ["GET ?list-type"] * 2
    store.put("e/x", b"x")
    assert [file.path for file in store.list_short("e", 100) or ()] == ["e/x"]


def test_markers_of_directories_are_no_files(either_s3: Emulator) -> None:
    store = FsspecStore(either_s3.url, either_s3.options)
    bucket, _, key = either_s3.url.removeprefix("s3://").partition("/")
    access = {"key": "testing", "secret": either_s3.options["AWS_SECRET_ACCESS_KEY"]}
    client = fsspec.filesystem("s3", **access, endpoint_url=either_s3.endpoint)
    for name in ("d/", "d/inner/", "d/inner/x", "d/same/"):
        client.call_s3("put_object", Bucket=bucket, Key=f"{key}/{name}", Body=b"")
    for name in ("d/empty", "d/same", "d/x"):
        store.put(name, b"" if name != "d/x" else b"1")
    expected = ["d/empty", "d/same", "d/x"]
    assert [file.path for file in store.list_from("d", "")] == expected
    assert [file.path for file in store.list_short("d", 100) or ()] == expected
    assert sorted(file.path for file in store.list_all("d")) == [
        "d/empty",
        "d/inner/x",
        "d/same",
        "d/x",
    ]


def test_names_with_empty_parts(either_s3: Emulator) -> None:
    store = FsspecStore(either_s3.url, either_s3.options)
    for name in ("d//a", "d/b", "e/./c", "f/g"):
        store.put(name, name.encode())
        assert store.read(name) == name.encode()
        assert store.read_ranges(name, [(0, 1), (1, 3)]) == [name[:1].encode(), name[1:3].encode()]
    assert [file.path for file in store.list_from("d", "")] == ["d/b"]
    store.delete_many(["d//a", "d/b", "e/./c"])
    assert [file.path for file in store.list_all("")] == ["f/g"]


@pytest.mark.protocol("B-01", "D-26")
def test_a_file_system_of_pyarrows_reads_and_refuses_to_commit(s3: Emulator) -> None:
    """It looks, and then writes: of eight writers of one version, several would win."""
    filesystem = pafs.S3FileSystem(
        access_key=s3.options["AWS_ACCESS_KEY_ID"],
        secret_key=s3.options["AWS_SECRET_ACCESS_KEY"],
        endpoint_override=s3.endpoint,
        region=s3.options["aws_region"],
    )
    open_store(s3.url, s3.options).put("d/a", b"1")
    store = open_store(s3.url.removeprefix("s3://"), filesystem=filesystem)
    assert [file.path for file in store.list_all("")] == ["d/a"]
    assert store.read_many(["d/a", "d/a"]) == [b"1", b"1"]
    with pytest.raises(StorageError, match=r"no atomic put-if-absent .*class ArrowFSWrapper"):
        store.put_if_absent("_delta_log/0.json", b"")


@pytest.mark.protocol("B-01", "D-26")
def test_google_commits_are_conditional_requests(gcs: Emulator) -> None:
    store = open_store(gcs.url, gcs.options)
    store.put_if_absent("_delta_log/0.json", b"1")
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent("_delta_log/0.json", b"1")


def test_wrong_credentials_are_told_without_secrets(azure: Emulator) -> None:
    wrong = {**azure.options, "AZURE_STORAGE_ACCOUNT_KEY": "U0VDUkVUMTIz" * 4}
    store = open_store(azure.url, wrong)
    with pytest.raises(AccessDeniedError) as caught:
        store.put("x", b"")
    assert "U0VDUkVUMTIz" not in str(caught.value)


def test_a_server_that_is_not_there(s3: Emulator) -> None:
    store = open_store(
        s3.url,
        {
            **s3.options,
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "connect_timeout": "1s",
            "config_kwargs": {"retries": {"max_attempts": 0}},
        },
    )
    with pytest.raises(StorageError):
        store.read("x")


def test_a_bucket_that_is_not_there(either_s3: Emulator) -> None:
    store = open_store("s3://no-such-bucket/t", either_s3.options)
    missing = "the bucket 'no-such-bucket' does not exist"
    with pytest.raises(ObjectNotFoundError, match=missing):
        list(store.list_from("_delta_log", ""))
    with pytest.raises(ObjectNotFoundError, match=missing):
        store.read("x")
    with pytest.raises(ObjectNotFoundError, match=missing):
        store.put_if_absent("x", b"")


@pytest.fixture(params=["s3fs", "obstore", "azure"])
def nowhere(request: pytest.FixtureRequest) -> Emulator:
    """An account with a location in a bucket or container that does not exist."""
    found: Emulator = request.getfixturevalue(request.param)
    scheme = found.url.partition("://")[0]
    return replace(found, url=f"{scheme}://nowhere-at-all/t")


def test_a_missing_bucket_is_named(nowhere: Emulator, caplog: pytest.LogCaptureFixture) -> None:
    what = "container" if nowhere.url.startswith("az:") else "bucket"
    with pytest.raises(DeltaError, match=f"{what}.*(does not exist|check the name)"):
        DeltaTable(nowhere.url, storage_options=nowhere.options)
    for mode in ("error", "append"):
        with pytest.raises(ObjectNotFoundError, match=f"the {what} 'nowhere-at-all' does not exi"):
            write_deltalake(nowhere.url, ROWS, mode=mode, storage_options=nowhere.options)
    assert not [text for text in caplog.messages if "could not delete" in text]
    with pytest.raises(ObjectNotFoundError, match=f"deltalog does not create a {what}"):
        DeltaTable.create(nowhere.url, SCHEMA, storage_options=nowhere.options)


def test_a_doubled_slash_is_shown(emulator: Emulator) -> None:
    bucket = emulator.url.rpartition("/")[0]
    write_deltalake(f"{bucket}/t", ROWS, storage_options=emulator.options)
    with pytest.raises(TableNotFoundError, match=f"a table at {bucket}/t; remove the second slash"):
        DeltaTable(f"{bucket}//t", storage_options=emulator.options)


@pytest.mark.parametrize("name", ["s3fs", "azure", "gcs"])
def test_an_endpoint_without_tls(name: str, request: pytest.FixtureRequest) -> None:
    found: Emulator = request.getfixturevalue(name)
    secure = {key: value.replace("http://", "https://") for key, value in found.options.items()}
    with pytest.raises(StorageError, match="its port does not use TLS: write http://"):
        DeltaTable(found.url, storage_options=secure)


def test_options_of_another_store_are_refused(s3: Emulator) -> None:
    with pytest.raises(InvalidInputError, match=r"'account_name' for s3://.* option of az://"):
        DeltaTable(s3.url, storage_options={**s3.options, "account_name": "x"})
    with pytest.raises(InvalidInputError, match="'aws_region': expected a string, found a number"):
        DeltaTable(s3.url, storage_options={**s3.options, "aws_region": 5})


def test_an_account_key_that_is_no_base64(azure: Emulator) -> None:
    wrong = {**azure.options, "AZURE_STORAGE_ACCOUNT_KEY": "not a key"}
    with pytest.raises(InvalidInputError, match="expected a key in base64") as caught:
        DeltaTable(azure.url, storage_options=wrong)
    assert "not a key" not in str(caught.value)
