"""Storage options: translating the names of deltalake and the cloud SDKs to those of fsspec.

`AWS_ACCESS_KEY_ID`, `aws_region`, `azure_storage_account_name`, `google_service_account`, … mean
the same as in deltalake; case is ignored. An unknown option is passed to fsspec unchanged, so the
option names of s3fs, adlfs and gcsfs are valid, too. The module of each store kind lists its names.
"""

from __future__ import annotations

import io
import logging
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, Protocol, runtime_checkable

import pyarrow as pa

from deltalog._util.argument_types import kind_of
from deltalog._util.escaping import name_key
from deltalog._util.kernels import arrow
from deltalog._util.store_kinds import (
    HADOOP_SETTINGS,
    NAMES_OF_CLIENTS,
    Address,
    StoreKind,
    split_option,
)
from deltalog.errors import InvalidInputError

TRUSTED_LOCATIONS: Final = "trusted_locations"
"""The option with which callers allow a log to refer to files in other stores."""
FSYNC: Final = "fsync"
"""The option that sets whether local files are synced to the disk; True by default."""
# If an unknown name is at least this similar to a known name, it is probably a misspelling of it.
# `endpoint_url_s3` and `endpoint_url_sts` are less similar, so one is not regarded as a misspelling
# of the other.
_NEARLY: Final = 0.93
_OWN: Final = frozenset({TRUSTED_LOCATIONS, FSYNC})
_LEAST_COPIED: Final = 4096
"""The bytes of other rows up to which a slice of an Arrow array is pickled without a copy."""

_logger = logging.getLogger("deltalog.storage")
_SENT: Final[ContextVar[bool]] = ContextVar("sent_to_tasks", default=False)


@runtime_checkable
class ExpiringOptions(Protocol):
    """Options that expire, such as temporary credentials."""

    def __call__(self) -> Mapping[str, Any]:
        """Return the options; renew them first if they expire soon or were refused."""
        ...

    def is_due(self) -> bool:
        """Whether the last returned options expire soon."""
        ...

    def refuse(self) -> None:
        """Record that the store refused the last returned options."""
        ...


@contextmanager
def sent_to_tasks() -> Iterator[None]:
    """Allow pickles to contain temporary credentials, for tasks of the caller's job."""
    token = _SENT.set(True)
    try:
        yield
    finally:
        _SENT.reset(token)


def is_sent_to_tasks() -> bool:
    """Whether pickles may contain temporary credentials now; see `sent_to_tasks`."""
    return _SENT.get()


def pickled_for_tasks(value: object, pickler: Any = pickle.Pickler) -> bytes:
    """Pickle the input or the result of a task of the caller's job.

    The pickle contains temporary credentials. A slice of an Arrow array is copied; pyarrow would
    pickle the whole buffers, which other slices share.

    Args:
        value: the input or the result.
        pickler: the class of the pickler, such as the one of cloudpickle.
    """
    kind = _copying(pickler)
    with io.BytesIO() as file, sent_to_tasks():
        kind(file, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
        return file.getvalue()


@cache
def _copying(pickler: Any) -> Any:
    return type(pickler.__name__, (_SliceCopier, pickler), {})


class _SliceCopier:
    """A base class for picklers that pickle copies of small slices of Arrow arrays."""

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is pickled; `NotImplemented` means as usual."""
        if isinstance(value, pa.Array) and _is_slice(value):
            try:
                return value.take(arrow.arange(0, len(value))).__reduce__()
            except pa.ArrowNotImplementedError:  # a type without this kernel
                return NotImplemented
        usual = getattr(super(), "reducer_override", None)
        return NotImplemented if usual is None else usual(value)


def _is_slice(array: pa.Array[Any]) -> bool:
    """Return whether an array's buffers have many bytes of other rows."""
    own = array.nbytes
    return array.get_total_buffer_size() - own > max(own // 4, _LEAST_COPIED)


def translate(
    kind: StoreKind, names: Mapping[str, str], options: Mapping[str, Any], *, own: bool = True
) -> dict[str, Any]:
    """Translate options to the keyword arguments of an fsspec class.

    Args:
        kind: the kind of the store.
        names: the argument for each option of this kind as `outer.inner!conversion`; the conversion
            is `bool`, `seconds` or missing. Arguments of the form `!name` are for the `finish`
            method of the kind, which must replace them. An empty string means that the option is
            ignored.
        options: the user's options.
        own: whether the user passed these options for this kind; otherwise unknown options are
            ignored.

    Raises:
        InvalidInputError: a value is not the expected duration or boolean, or a name is probably a
            misspelt known name.
    """
    arguments: dict[str, Any] = {}
    for name, value in options.items():
        owner, short = split_option(name)
        if (owner is not None and owner != kind) or name in _OWN:
            continue
        if short in names:
            _set(arguments, names[short], value, name)
        elif short in _WITHOUT_EFFECT.split():
            continue
        elif owner is not None:
            check_spelling(name, short, names)
            hint = _similar_words(name, short, names)
            _logger.warning("storage option %r is not known and has no effect%s", name, hint)
        elif own:
            merge(arguments, {name: value})
    return arguments


def _similar_words(name: str, short: str, names: Iterable[str]) -> str:
    """Return a hint about a known name with one word more or less; empty if there is none."""
    words = set(short.split("_"))
    for one in names:
        if len(words ^ set(one.split("_"))) == 1:
            meant = name[: len(name) - len(short)] + (one.upper() if name.isupper() else one)
            return f": did you mean {meant!r}?"
    return ""


def check_spelling(name: str, short: str, names: Iterable[str]) -> None:
    """Raise if a name is probably misspelt, because its value would have no effect.

    Args:
        name: the name that the user passed.
        short: the name in lower case without its prefix.
        names: the known names without prefixes.

    Raises:
        InvalidInputError: the name differs from a known name by one typing error, or lacks its end.
    """
    known = list(names)
    close = [one for one in known if _is_slip(one, short)]
    close += get_close_matches(short, known, n=1, cutoff=_NEARLY)
    close += [one for one in known if one.startswith(f"{short}_")]  # such as `access_key`
    if close:
        meant = name[: len(name) - len(short)] + (close[0].upper() if name.isupper() else close[0])
        raise InvalidInputError(f"there is no storage option {name!r}: did you mean {meant!r}?")


def _is_slip(one: str, other: str) -> bool:
    """Whether two names differ in one letter, or in two swapped letters."""
    start = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
    one, other = sorted((one[start:], other[start:]), key=len)
    if len(one) < len(other):
        return one == other[1:]
    swapped = one[1:2] + one[:1] + one[2:]
    return one != other and (one[1:] == other[1:] or swapped == other)


def trusted_locations(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the locations in other stores to which the table's log may refer.

    Raises:
        InvalidInputError: the option is neither a string nor a list of strings.
    """
    given = options.get(TRUSTED_LOCATIONS) or ()
    found = given.split(",") if isinstance(given, str) else given
    if not isinstance(found, list | tuple) or not all(isinstance(place, str) for place in found):
        raise InvalidInputError(
            f"storage option {TRUSTED_LOCATIONS!r}: expected a list of locations such as "
            f"['s3://bucket/path'], found {given!r}"
        )
    return tuple(place.strip() for place in found if place.strip())


def commit_objection(kind: StoreKind, options: Mapping[str, Any]) -> str | None:
    """Return the reason why these options forbid commits, or None; see `lock_options`."""
    chosen = {split_option(name)[1]: value for name, value in options.items()}
    for name in kind.lock_options:
        if chosen.get(name):
            return (
                f"the storage options request a lock in DynamoDB ({name}={chosen[name]!r}), which "
                "deltalog does not support; let all writers use conditional puts, and remove the "
                "option"
            )
    return None


@cache
def warn_of_ineffective(
    kind: StoreKind, name: str, names_of: Callable[[StoreKind], Iterable[str]]
) -> None:
    """Log once that an option has no effect on files of this machine.

    Known options of other stores are accepted, because programs pass them to all locations.

    Args:
        kind: the kind of the store.
        name: the option.
        names_of: returns the known options of another kind, without prefixes.

    Raises:
        InvalidInputError: the name is probably a misspelling of an option that has one, here or in
            another store. A program that is tested with local files would fail with that store.
    """
    owner, short = split_option(name)
    if name in _OWN or short in _WITHOUT_EFFECT.split():
        return
    known = _OWN if owner is None else {*names_of(owner), *owner.lock_options}
    if owner is None or short not in known:
        check_spelling(name, short, known)
        _logger.warning("storage option %r has no effect on %s locations", name, kind.name)


@cache
def warn_of_lock(kind: StoreKind, name: str, value: str) -> None:
    """Log once that tables can be read with these options, but not written.

    Raises:
        InvalidInputError: the value is not the name of a lock.
    """
    if "provider" in split_option(name)[1] and value.lower() != "dynamodb":
        raise InvalidInputError(
            f"storage option {name!r}: expected 'dynamodb', or no such option, found {value!r}"
        )
    _logger.warning(
        "tables can be read, but not written: %s", commit_objection(kind, {name: value})
    )


def check_options(given: object) -> None:
    """Refuse storage options that are neither a mapping nor a function.

    Raises:
        InvalidInputError: the options have another type.
    """
    if not (given is None or isinstance(given, Mapping) or callable(given)):
        raise InvalidInputError(
            "cannot use storage_options: expected a mapping, or a callable that returns one, found "
            f"{kind_of(given)}"  # the value may contain secrets
        )
    for name in given if isinstance(given, Mapping) else ():
        if not isinstance(name, str):
            raise InvalidInputError(
                f"cannot use storage_options: expected names as strings, found {name!r}"
            )


def check_effect(
    kind: StoreKind,
    options: Mapping[str, Any],
    names_of: Callable[[StoreKind], Iterable[str]],
) -> None:
    """Log options that have no effect, or forbid commits, when a table is opened.

    Args:
        kind: the kind of the store.
        options: the user's options.
        names_of: returns the known options of another kind, without prefixes.

    Raises:
        InvalidInputError: an option is probably misspelt, belongs to Hadoop, or names an unknown
            lock.
    """
    check_options(options)
    for name, value in options.items():
        check_hadoop(name)
        if ours := NAMES_OF_CLIENTS.get(kind.name, {}).get(name_key(name)):
            raise InvalidInputError(f"there is no storage option {name!r}: write {ours!r}")
        if kind.address is Address.PATH:
            warn_of_ineffective(kind, name, names_of)
        elif split_option(name)[1] in kind.lock_options and value:
            warn_of_lock(kind, name, str(value))


_OF_HADOOP: Final = re.compile(
    r"(?:spark\.hadoop\.)?(?:fs\.(?P<scheme>[a-z0-9]+)|google\.cloud)\.(?P<setting>.+)"
)


def check_hadoop(name: str) -> None:
    """Refuse a setting of Hadoop's file systems, such as `fs.s3a.access.key`.

    Raises:
        InvalidInputError: the name is such a setting. The message names the option to use.
    """
    found = _OF_HADOOP.fullmatch(name_key(name))
    if found is not None:
        ours = option_for_hadoop(name)
        advice = f"write {ours!r}" if ours else "set the options of the store itself"
        raise InvalidInputError(
            f"storage option {name!r} is a setting of Hadoop, which deltalog does not use: {advice}"
        )


def option_for_hadoop(name: str) -> str:
    """Return the option that replaces a setting of Hadoop; empty if there is none."""
    found = _OF_HADOOP.fullmatch(name_key(name))
    if found is None:
        return ""
    setting = found["setting"]
    if setting.startswith("bucket."):  # a setting for one bucket
        setting = setting.split(".", 2)[-1]
    options = HADOOP_SETTINGS.get(found["scheme"], {})
    # The name of an account or a key file can follow.
    fitting = [one for one in options if setting == one or setting.startswith(f"{one}.")]
    return options[max(fitting, key=len)] if fitting else ""


_WITHOUT_SECRETS: Final = frozenset({"profile", "skip_signature", "anon", "use_emulator"})


def names_credentials(options: Mapping[str, Any]) -> bool:
    """Return whether options contain credentials, or state that none are needed."""
    names = {split_option(name)[1] for name in options}
    return (
        not names.isdisjoint(_WITHOUT_SECRETS)
        or any(_SECRET_NAME.search(name) for name in options)
        or bool(secrets_of(options))
    )


def secrets_of(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the secret values of the options, longest first, to remove them from messages."""
    found: list[str] = []
    for name, value in options.items():
        if isinstance(value, Mapping):
            found.extend(secrets_of(value))
        elif isinstance(value, str) and len(value) >= 6 and _SECRET_NAME.search(name):
            found.append(value)
    return tuple(sorted(found, key=len, reverse=True))


def merge(arguments: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Merge `more` into `arguments` recursively; dictionaries of the user are not changed."""
    for name, value in more.items():
        present = arguments.get(name)
        if isinstance(present, dict) and isinstance(value, Mapping):
            merge(present, value)
        else:
            arguments[name] = _copy(value)


def truth(name: str, value: Any) -> bool:
    """Return the boolean value of an option, which may be a string.

    Raises:
        InvalidInputError: the value is not a boolean.
    """
    if isinstance(value, bool):
        return value
    match str(value).strip().lower():
        case "true" | "1" | "yes" | "on" | "y" | "requester":
            return True
        case "false" | "0" | "no" | "off" | "n" | "":
            return False
        case _:
            raise InvalidInputError(f"storage option {name!r}: expected true or false")


_SECRET_NAME: Final = re.compile(r"(?i)key|secret|token|password|credential|sas|connection")
# The settings of deltalake's HTTP client that fsspec does not have. They can be ignored, because
# they do not change results.
_WITHOUT_EFFECT: Final = (
    "allow_http allow_invalid_certificates connect_timeout timeout http1_only http2_only"
    " http2_keep_alive_interval http2_keep_alive_timeout http2_keep_alive_while_idle"
    " pool_idle_timeout pool_max_idle_per_host proxy_url proxy_ca_certificate proxy_excludes"
    " user_agent default_content_type randomize_addresses max_retries retry_timeout"
    " backoff_config mount_allow_unsafe_rename"
)


def _set(arguments: dict[str, Any], target: str, value: Any, name: str) -> None:
    if not target:
        return
    place, _, conversion = target.partition("!")
    match conversion:
        case "bool":
            value = truth(name, value)
        case "seconds":
            value = _seconds(name, value)
        case "" if isinstance(value, int | float) and not isinstance(value, bool):
            raise InvalidInputError(
                f"storage option {name!r}: expected a string, found a number; put it in quotes"
            )
        case _ if not place:
            place = target
    for part in reversed(place.split(".")):
        value = {part: value}
    merge(arguments, value)


def _copy(value: Any) -> Any:
    return {name: _copy(inner) for name, inner in value.items()} if type(value) is dict else value


_DURATION: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>ms|s|m|h|)")
_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(name: str, value: Any) -> float:
    found = _DURATION.fullmatch(str(value).strip().lower())
    if found is None:
        raise InvalidInputError(
            f"storage option {name!r}: expected a duration such as '30s', found {value!r}"
        )
    return float(found["number"]) * _UNIT_SECONDS[found["unit"]]
