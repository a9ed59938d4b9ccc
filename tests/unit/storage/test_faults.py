from __future__ import annotations

import builtins
import pickle
from typing import Any

import aiohttp
import pyarrow as pa
import pytest
from yarl import URL

from deltalog.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    DeltaError,
    InvalidInputError,
    MalformedLogError,
    ObjectNotFoundError,
    StorageError,
)
from deltalog.storage.faults import holds_secret, redact, storage_error


def mapped(error: Exception) -> DeltaError:
    return storage_error(error, operation="read", path="s3://b/x")


def _subclasses(cls: type[Any]) -> set[type[Any]]:
    return {cls}.union(*(_subclasses(child) for child in cls.__subclasses__()))


def _aws(code: str, status: int) -> Exception:
    exceptions = pytest.importorskip("botocore.exceptions")
    error: Exception = exceptions.ClientError(
        {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}},
        "GetObject",
    )
    return error


def _azure(status: int, code: str = "") -> Exception:
    exceptions = pytest.importorskip("azure.core.exceptions")
    error: Exception = exceptions.HttpResponseError("m")
    error.status_code = status  # type: ignore[attr-defined]  # as azure.core sets it
    error.error_code = code  # type: ignore[attr-defined]  # likewise
    return error


def _google(status: int) -> Exception:
    retry = pytest.importorskip("gcsfs.retry")
    error: Exception = retry.HttpError({"code": status, "message": "m"})
    return error


def _http(status: int) -> Exception:
    info = aiohttp.RequestInfo(URL("http://h/x"), "GET", headers=None, real_url=URL("http://h/x"))  # type: ignore[arg-type]  # no headers needed
    return aiohttp.ClientResponseError(info, (), status=status)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: FileNotFoundError(2, "no"), ObjectNotFoundError),
        (lambda: NotADirectoryError(20, "no"), ObjectNotFoundError),
        (lambda: FileExistsError(17, "yes"), AlreadyExistsError),
        (lambda: PermissionError(13, "no"), AccessDeniedError),
        (lambda: OSError(28, "full"), StorageError),
        (lambda: TimeoutError("late"), StorageError),
        (lambda: pa.ArrowInvalid("odd"), StorageError),
        (lambda: pa.lib.ArrowIOError("io"), StorageError),
        (lambda: _aws("NoSuchKey", 404), ObjectNotFoundError),
        (lambda: _aws("NoSuchBucket", 404), ObjectNotFoundError),
        (lambda: _aws("404", 404), ObjectNotFoundError),
        (lambda: _aws("AccessDenied", 403), AccessDeniedError),
        (lambda: _aws("ExpiredToken", 400), AccessDeniedError),
        (lambda: _aws("InvalidAccessKeyId", 403), AccessDeniedError),
        (lambda: _aws("PreconditionFailed", 412), AlreadyExistsError),
        (lambda: _aws("ConditionalRequestConflict", 409), StorageError),
        (lambda: _aws("SlowDown", 503), StorageError),
        (lambda: _azure(404, "BlobNotFound"), ObjectNotFoundError),
        (lambda: _azure(409, "BlobAlreadyExists"), AlreadyExistsError),
        (lambda: _azure(409, "ContainerBeingDeleted"), StorageError),
        (lambda: _azure(412), AlreadyExistsError),
        (lambda: _azure(403, "AuthenticationFailed"), AccessDeniedError),
        (lambda: _azure(500), StorageError),
        (lambda: _google(404), ObjectNotFoundError),
        (lambda: _google(412), AlreadyExistsError),
        (lambda: _google(401), AccessDeniedError),
        (lambda: _google(503), StorageError),
        (lambda: _http(404), ObjectNotFoundError),
        (lambda: _http(403), AccessDeniedError),
        (lambda: _http(500), StorageError),
    ],
)
def test_what_foreign_errors_become(make: Any, kind: type[StorageError]) -> None:
    assert type(mapped(make())) is kind


def test_the_cause_of_a_wrapped_error_counts() -> None:
    wrapped = OSError(22, "odd")
    wrapped.__cause__ = _aws("PreconditionFailed", 412)
    assert type(mapped(wrapped)) is AlreadyExistsError
    wrapped.__cause__ = wrapped  # no endless walk
    assert type(mapped(wrapped)) is StorageError


def _instances(cls: type[BaseException]) -> BaseException:
    error = cls.__new__(cls)
    error.args = ("message",)
    return error


def _foreign_classes() -> list[type[BaseException]]:
    own = [value for value in vars(builtins).values() if _is_exception(value)]
    roots: list[type[BaseException]] = [
        pa.ArrowException,
        pa.lib.ArrowCancelled,
        aiohttp.ClientError,
    ]
    for module, name in [
        ("botocore.exceptions", "BotoCoreError"),
        ("botocore.exceptions", "ClientError"),
        ("azure.core.exceptions", "AzureError"),
        ("google.auth.exceptions", "GoogleAuthError"),
        ("gcsfs.retry", "HttpError"),
        ("requests", "RequestException"),
    ]:
        try:
            roots.append(getattr(__import__(module, fromlist=[name]), name))
        except ImportError:
            continue
    found = set(own).union(*(_subclasses(root) for root in roots))
    return [
        cls for cls in found if issubclass(cls, Exception) and not issubclass(cls, ExceptionGroup)
    ]


def _can_be_shown(error: BaseException) -> bool:
    try:
        str(error)
    except (AttributeError, TypeError, KeyError, IndexError, ValueError):
        return False
    return True


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def test_the_mapping_is_total() -> None:
    """Every exception class of every library beneath becomes one of ours, message and all."""
    classes = _foreign_classes()
    assert len(classes) > 200
    for cls in classes:
        error = _instances(cls)
        if not _can_be_shown(error):  # it needs fields that only its library sets
            continue
        assert isinstance(error, Exception)
        ours = mapped(error)
        assert isinstance(ours, StorageError), cls
        assert cls.__name__ in str(ours)
        assert pickle.loads(pickle.dumps(ours)).args == ours.args


def test_our_own_errors_pass() -> None:
    error = MalformedLogError("x")
    assert mapped(error) is error


@pytest.mark.parametrize(
    "text",
    [
        "https://acc.blob.core.windows.net/c/x?sv=2021&sig=SECRET123%3D&se=2030",
        "https://b.s3.amazonaws.com/x?X-Amz-Credential=SECRET123&X-Amz-Signature=SECRET123",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=SECRET123==;",
        "s3://user:SECRET123@bucket/x",
        "{'secret_access_key': 'SECRET123', 'key': 'AKIA'}",
        "Authorization: Bearer SECRET123.x-y",
        'aws_session_token="SECRET123"',
        "password=SECRET123 host=h",
        "SAS_TOKEN: SECRET123",
        "s3://key:SECRET123/r@bucket/x",
        "s3://key:x/SECRET123/y+z=@bucket/x",
        "s3a://key:12/SECRET123@bucket/x",
        "s3://key:x@SECRET123@bucket/x",
        "cannot read gs://a:SECRET123/b@bucket/x, nor s3://bucket/y",
        "{'location': 's3://key:SECRET123/r@bucket'}",
        "https://user:SECRET123/r@host/x",
        "https://user:8080SECRET123/r@host/x",
        "redis://:SECRET123@host",
        "Authorization: Basic SECRET123==",
        "https://host/x?u=https%3A%2F%2Fb%2Fx%3Fsv%3D1%26sig%3DSECRET123%26se%3D2",
        "https://storage.googleapis.com/x?X-Goog-Credential=SECRET123&x-goog-signature=SECRET123",
        "SharedAccessSignature=sv=2021&sig=SECRET123",
        'client_secret="with a blank SECRET123"',
        "api_key=SECRET123",
        "'secret': 'SECRET123'",
    ],
)
def test_what_looks_like_a_secret_is_not_shown(text: str) -> None:
    ours = storage_error(OSError(text), operation="read", path=text)
    assert "SECRET123" not in str(ours)
    assert "***" in str(ours)
    assert holds_secret(OSError(text))


def test_given_secrets_are_not_shown_whatever_surrounds_them() -> None:
    ours = storage_error(
        OSError("odd abcdef here"), operation="write", path="x", secrets=["abcdef"]
    )
    assert "abcdef" not in str(ours)


@pytest.mark.parametrize(
    "text",
    [
        "abfss://c@acc.dfs.core.windows.net/key/token/design=1: no such file",
        "https://host:8443/t/x@y",
        "hdfs://node:9000/user/a@b/t",
        "http://[::1]:8080/a@b",
        "s3://bucket/a:b@c",
        "file:///home/x:y@z/t",
        "the secrets of basic tables: a token of thanks",
    ],
)
def test_harmless_texts_stay(text: str) -> None:
    assert redact(text) == text
    assert not holds_secret(OSError(text))


@pytest.mark.parametrize("text", ["s3://key:***@bucket/x@y", "sig=***&se=2", "Bearer ***"])
def test_what_is_hidden_already_stays(text: str) -> None:
    assert redact(text) == text


def test_an_option_that_the_client_refuses_is_named() -> None:
    def session(*, region: str) -> None:
        del region

    refuse: Any = session
    with pytest.raises(TypeError) as caught:
        refuse(foo="bar")
    found = storage_error(caught.value, operation="list", path="s3://bucket/x")
    assert isinstance(found, InvalidInputError)
    assert str(found) == (
        "cannot list 's3://bucket/x': the store's client does not know the storage option 'foo'"
    )
