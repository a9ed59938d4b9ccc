from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from deltalog._util.store_kinds import KINDS
from deltalog.errors import InvalidInputError, StorageError
from deltalog.storage import open_store
from deltalog.storage.options import commit_objection, pickled_for_tasks, secrets_of
from deltalog.storage.stores.filesystems import filesystem_options


def s3(options: dict[str, Any]) -> dict[str, Any]:
    return filesystem_options(KINDS["s3"], options, "s3://b/t")


@pytest.mark.parametrize(
    "option", [{"timeout": "soon"}, {"aws_skip_signature": "perhaps"}, {"connect_timeout": ""}]
)
def test_values_that_mean_nothing(option: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="storage option"):
        s3(option)


def test_secrets_are_found_at_any_depth() -> None:
    options = {
        "AWS_SECRET_ACCESS_KEY": "sssssss",
        "aws_region": "eu-west-1",
        "client_kwargs": {"aws_session_token": "ttttttt"},
        "token": "x",  # too short to be one; hiding it would garble every message
    }
    assert set(secrets_of(options)) == {"sssssss", "ttttttt"}


@pytest.mark.protocol("B-01")
def test_a_table_under_a_dynamodb_lock_is_not_written() -> None:
    options = {"AWS_S3_LOCKING_PROVIDER": "dynamodb", "key": "k", "secret": "s"}
    assert commit_objection(KINDS["s3"], options) is not None
    assert commit_objection(KINDS["s3"], {"key": "k"}) is None
    store = open_store("s3://bucket/t", options)
    with pytest.raises(StorageError, match="dynamodb"):
        store.put_if_absent("_delta_log/0.json", b"")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("AWS_ACCES_KEY_ID", "AWS_ACCESS_KEY_ID"),
        ("aws_secret_acces_key", "aws_secret_access_key"),
        ("AWS_REGOIN", "AWS_REGION"),
    ],
)
def test_a_name_that_is_nearly_one_is_refused_and_its_value_not_shown(
    wrong: str, right: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"'{wrong}': did you mean '{right}'") as error:
        s3({wrong: "hush-hush"})
    assert "hush" not in str(error.value)
    assert s3({"AWS_ENDPOINT_URL_STS": "https://sts"}) == s3({})  # others' names have no effect


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("aws_secret_key", "aws_secret_access_key"),
        ("AWS_REGION_NAME", "AWS_REGION"),
        ("AWS_NOTHING_OF_THE_KIND", None),
    ],
)
def test_the_warning_about_an_unknown_name_names_one_with_similar_words(
    name: str, meant: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    s3({name: "sssssss"})
    hint = "" if meant is None else f": did you mean {meant!r}?"
    (message,) = caplog.messages
    assert message == f"storage option {name!r} is not known and has no effect{hint}"


def test_a_table_whose_lock_is_in_dynamodb_is_not_written() -> None:
    options = {"DELTA_DYNAMO_TABLE_NAME": "locks", "key": "k", "secret": "s"}
    with pytest.raises(StorageError, match="delta_dynamo_table_name='locks'"):
        open_store("s3://b/t", options).put_if_absent("_delta_log/x.json", b"")


@pytest.mark.parametrize(
    ("url", "wrong", "right"),
    [
        ("s3://b/t", "regiom", "region"),
        ("s3://b/t", "acess_key_id", "access_key_id"),
        ("s3://b/t", "secrets", "secret"),
        ("s3://b/t", "client_kwarg", "client_kwargs"),
        ("gs://b/t", "service_acount", "service_account"),
        ("gs://b/t", "projeKt", "project"),
        ("abfss://c@a.dfs.core.windows.net/t", "acount_key", "account_key"),
    ],
)
def test_names_without_a_prefix_are_checked_against_the_class_too(
    url: str, wrong: str, right: str
) -> None:
    """The classes of fsspec drop what they do not know; a request would go out without a key."""
    store = open_store(url, {wrong: "hush-hush"})
    with pytest.raises(InvalidInputError, match=f"'{wrong}': did you mean '{right}'") as error:
        store.read("x")
    assert "hush" not in str(error.value)


ROWS = 10_000
ARRAYS: list[Any] = [
    pa.array(range(ROWS)),
    pa.array([f"text {number}" for number in range(ROWS)]),
    pa.array([{"a": number, "b": [number]} for number in range(ROWS)]),
    pa.array([[("k", number)] for number in range(ROWS)], pa.map_(pa.string(), pa.int64())),
    pa.array(["x", "y"] * (ROWS // 2)).dictionary_encode(),
    pa.array([True, None] * (ROWS // 2)),
    pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * ROWS, pa.binary(16))),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.type))
def test_a_slice_is_sent_without_the_rest(array: Any) -> None:
    few = array.slice(17, 10)
    for value in (few, pa.table({"a": few}), pa.record_batch({"a": few})):
        data = pickled_for_tasks({"x": [value, value]})
        assert len(data) < 3000
        assert pickle.loads(data) == {"x": [value, value]}


def test_what_is_no_slice_is_sent_as_it_is() -> None:
    rows = pa.table({"a": pa.array(range(ROWS)), "b": pa.nulls(ROWS)})
    assert pickled_for_tasks(rows) == pickle.dumps(rows, pickle.HIGHEST_PROTOCOL)
    halves = [rows.slice(0, ROWS // 2), rows.slice(ROWS // 2)]
    assert len(pickled_for_tasks(halves)) < rows.nbytes * 1.1


def test_an_array_that_cannot_be_copied_is_sent_with_the_rest() -> None:
    kind = pa.sparse_union([pa.field("a", pa.int64())])
    numbers = pa.array(range(ROWS))
    union = pa.UnionArray.from_sparse(pa.array([0] * ROWS, pa.int8()), [numbers], ["a"])
    assert union.type == kind
    few: Any = union.slice(3, 2)
    assert pickle.loads(pickled_for_tasks(few)).to_pylist() == few.to_pylist()


@pytest.mark.parametrize(
    ("location", "name", "ours"),
    [
        ("s3://b/t", "fs.s3a.access.key", "AWS_ACCESS_KEY_ID"),
        ("s3://b/t", "spark.hadoop.fs.s3a.bucket.b.secret.key", "AWS_SECRET_ACCESS_KEY"),
        ("s3://b/t", "fs.s3a.endpoint.region", "AWS_REGION"),
        ("s3://b/t", "region_name", "AWS_REGION"),
        ("az://c/t", "fs.azure.account.key.acc.dfs.core.windows.net", "AZURE_STORAGE_ACCOUNT_KEY"),
        ("gs://b/t", "fs.gs.auth.service.account.json.keyfile", "GOOGLE_SERVICE_ACCOUNT"),
        ("gs://b/t", "fs.gs.auth.type", "the options of the store itself"),
        ("gs://b/t", "fs.s3a.fast.upload", "the options of the store itself"),
        ("memory://b/t", "fs.s3a.endpoint", "AWS_ENDPOINT_URL"),
    ],
)
def test_names_of_other_libraries_are_refused_with_ours(
    location: str, name: str, ours: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        open_store(location, {name: "hidden"})
    assert name in str(caught.value)
    assert ours in str(caught.value)
    assert "hidden" not in str(caught.value)
