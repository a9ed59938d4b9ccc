"""Check the types of arguments, as the annotations of public functions state them.

Annotations of other types than those in `_KINDS` are not checked here: the functions themselves
check such arguments, such as rows and conditions.

Protocol: none
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from datetime import date, datetime, timedelta
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Real
from os import PathLike
from types import FunctionType
from typing import Any, Final, SupportsIndex, TypeVar

from deltalog._util.call_errors import (
    NO_OBJECT,
    WrongCallError,
    called_with,
    check_object,
    hide_internal_frames,
)
from deltalog.errors import DeltaError, InvalidInputError

_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound="Callable[..., Any]")
_MOST_SHOWN: Final = 80
"""The most characters of a value in a message."""


def checks_types(kind: _Class) -> _Class:
    """Decorate a class whose public methods check the types of their arguments."""
    for name, member in list(vars(kind).items()):
        if name[0] == "_" and name not in {"__init__", "__call__"}:
            continue
        if isinstance(member, FunctionType):
            setattr(kind, name, _checked_method(kind, member))
        elif isinstance(member, classmethod | staticmethod):
            setattr(kind, name, _checked_static(kind, member))
    return kind


def _checked_method(kind: type, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(self: Any = NO_OBJECT, /, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython does not show this frame
        try:
            if args or options:
                check_types(function, type(self), args, options)
            return called_with(function, self, *args, **options)
        except DeltaError as error:
            check_object(kind, function.__name__, self)
            hide_internal_frames(error)
            raise
        except Exception:
            check_object(kind, function.__name__, self)
            raise

    return called


def _checked_static(kind: type, method: Any) -> Any:
    function = method.__func__
    first = 1 if isinstance(method, classmethod) else 0

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython does not show this frame
        try:
            check_types(function, kind, args[first:], options)
            return called_with(function, *args, **options)
        except DeltaError as error:
            hide_internal_frames(error)
            raise

    return type(method)(called)


def _shown(function: Callable[..., Any], kind: type | None) -> str:
    """Return the name of a function or method, as users call it."""
    if kind is None:
        return function.__name__
    called = next((vars(one)["_called"] for one in kind.__mro__ if "_called" in vars(one)), "")
    owner = called or kind.__name__
    return owner if function.__name__ == "__init__" else f"{owner}.{function.__name__}"


def checked_types(function: _Function) -> _Function:
    """Decorate a function that checks the types of its arguments; see `check_types`."""

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython does not show this frame
        _check_names(function, options)
        _check_number(function, args)
        try:
            check_types(function, None, args, options)
            return called_with(function, *args, **options)
        except DeltaError as error:
            hide_internal_frames(error)
            raise

    return called  # type: ignore[return-value]  # of the same signature


def _check_names(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise `WrongCallError` for an argument that a function does not have."""
    known = _annotations(function)[1]
    if options.keys() <= known.keys():
        return
    parameters = signature(function).parameters
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        return
    from deltalog._util.similar_names import (  # noqa: PLC0415  # only for errors
        known_arguments,
        similar_argument,
    )

    name = next(one for one in options if one not in parameters)
    hint = similar_argument(name, parameters, function.__name__) or known_arguments(parameters)
    raise WrongCallError(f"{function.__name__}() got an unexpected keyword argument {name!r}{hint}")


def _check_number(function: Callable[..., Any], args: Sequence[Any]) -> None:
    """Raise `WrongCallError` for more positional arguments than a function takes."""
    parameters = signature(function).parameters.values() if args else ()
    if len(args) <= sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters):
        return
    from deltalog._util.similar_names import surplus  # noqa: PLC0415  # only for errors

    if wrong := surplus(function, args, has_self=False):
        raise WrongCallError(f"{function.__name__}() {wrong}")


def check_types(
    function: Callable[..., Any],
    kind: type | None,
    args: tuple[Any, ...],
    options: Mapping[str, Any],
) -> None:
    """Raise for an argument that does not have the type of its annotation.

    Args:
        function: the function, whose annotations are strings.
        kind: the class of a method.
        args: the positional arguments, without `self`.
        options: the other arguments.

    Raises:
        InvalidInputError: an argument has another type.
    """
    positional, known = _annotations(function)
    given = [(name, value, kinds) for (name, kinds), value in zip(positional, args, strict=False)]
    given += [(name, value, known.get(name, ())) for name, value in options.items()]
    for name, value, kinds in given:
        if not _is_right(value, kinds):
            called = _shown(function, kind)
            expected = _MORE.get((called, name)) or _expected(kinds, value)
            raise wrong_argument(called, name, value, expected)


def check_type(called: str, name: str, value: object, annotation: str) -> None:
    """Raise for a value that does not have the type of an annotation; None is accepted.

    Raises:
        InvalidInputError: the value has another type.
    """
    kinds = _kinds_of_named(name, annotation)
    if value is not None and not _is_right(value, kinds):
        raise wrong_argument(called, name, value, _expected(kinds, value))


def wrong_argument(called: str, name: str, value: object, expected: str) -> InvalidInputError:
    """Return the error for an argument of the wrong type."""
    if name in _SECRETS:
        return InvalidInputError(
            f"cannot call {called}: {name}: expected {expected}, found {kind_of(value)}"
        )
    return InvalidInputError(
        f"cannot call {called} with {name}={shortened(value)}: expected {expected}{_found(value)}"
    )


_SECRETS: Final = frozenset({"token", "client_secret", "storage_options", "client_options"})
"""Arguments whose values must not be in errors."""


def _found(value: object) -> str:
    """Return the type of a value, or of an item, that deltalake has under the same name."""
    items: Any = value if isinstance(value, list | tuple) else [value]
    kinds = (kind_of(one) for one in items)
    return next((f"; found {kind}" for kind in kinds if _OF_DELTALAKE in kind), "")


def kind_of(value: object) -> str:
    """Return the type of a value with its article: `a str`, `an int`, `a Schema of deltalake`."""
    name, library = type(value).__name__, type(value).__module__.partition(".")[0]
    shown = with_article(name)
    if name in _ALSO_IN_DELTALAKE and library == "deltalake":
        return f"{shown}{_OF_DELTALAKE}; deltalog has its own class of this name"
    return shown


_OF_DELTALAKE: Final = " of deltalake"


def with_article(name: str) -> str:
    """Return a name with `a` or `an` before it: `an int`, `a str`, `a UUID`."""
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


_ALSO_IN_DELTALAKE: Final = frozenset(
    {
        *("BloomFilterProperties", "ColumnProperties", "CommitProperties", "DeltaTable", "Field"),
        *("PostCommitHookProperties", "Schema", "Transaction", "WriterProperties"),
    }
)


def shortened(value: object) -> str:
    """Return the `repr` of a value in one line, or the SQL of an expression; long ones are cut."""
    text = " ".join(in_words(value).split())
    if len(text) <= _MOST_SHOWN:
        return text
    return f"{text[:_MOST_SHOWN]}… ({type(value).__name__})"


def in_words(value: object) -> str:
    """Return the `repr` of a value; of an expression, its SQL; of a list, those of the items."""
    if type(value) in {list, tuple}:
        items: Any = value
        inside = ", ".join(map(in_words, items))
        return f"[{inside}]" if isinstance(value, list) else repr(value)
    shown = next((show for kind, show in _SHOWN.items() if isinstance(value, kind)), repr)
    return shown(value)


def show_by(kind: type, show: Callable[[Any], str]) -> None:
    """Register what messages contain for the values of a class of a higher package."""
    _SHOWN[kind] = show


_SHOWN: Final[dict[type, Callable[[Any], str]]] = {}


# --- Annotations


_Kind = tuple[Callable[[Any], bool], str]


def _is_whole(value: object) -> bool:
    if isinstance(value, float):  # such as 1e6 for a number of bytes
        return value.is_integer()
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool", "bool_"}  # NumPy's


def _is_path(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(one, str) for one in value)


def _is_position(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple) and len(value) == 2)


def _list_of(*checks: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def is_list(value: object) -> bool:
        if isinstance(value, str | bytes | bytearray | Mapping):
            return False
        if not isinstance(value, Iterable):
            return False
        # An iterator can be read only once, so its items are not checked here.
        return not isinstance(value, Sized) or all(
            any(check(item) for check in checks) for item in value
        )

    return is_list


def _mapping_to(*checks: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def is_mapping(value: object) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(key, str) and any(check(item) for check in checks)
            for key, item in value.items()
        )

    return is_mapping


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _named(name: str) -> Callable[[Any], bool]:
    """Return a check for a class of a higher package, which this module cannot import."""

    def is_one(value: object) -> bool:
        return any(
            kind.__name__ == name and kind.__module__.startswith("deltalog.")
            for kind in type(value).__mro__
        )

    return is_one


_STRING: Final = _is(str)
_is_field: Final = _named("Field")
_NAME: Final[_Kind] = (_STRING, "a string")
_PATH: Final[_Kind] = (_is_path, "a path, such as ('info', 'city')")
_NAMES: Final[_Kind] = (_list_of(_STRING), "a list of strings, such as ['id', 'name']")
_PATHS: Final[_Kind] = (_list_of(_STRING, _is_path), "a list of names, such as ['id', 'info.city']")
_TO_STRINGS: Final[_Kind] = (
    _mapping_to(_STRING),
    "a dictionary of strings, such as {'key': 'value'}",
)
_MAPPING: Final[_Kind] = (
    _mapping_to(lambda _: True),
    "a dictionary whose keys are strings, such as {'key': 'value'}",
)
_ITERABLE: Final[_Kind] = (
    lambda value: isinstance(value, Iterable) or type(value).__module__.startswith("deltalog."),
    _NAMES[1],
)
_PARTS: Final[_Kind] = (_list_of(_STRING), "a tuple of names, such as ('sales', 'orders')")
_TABLE: Final[_Kind] = (_is_path, _PARTS[1])
_FIELD: Final[_Kind] = (
    lambda value: _is_field(value) or hasattr(value, "__arrow_c_schema__"),
    "a Field, such as Field('name', 'string')",
)
_FILES: Final[_Kind] = (_named("WrittenFiles"), "WrittenFiles, the result of write_files")
_KINDS: Final[Mapping[str, tuple[_Kind, ...]]] = {
    "str": (_NAME,),
    "bool": ((_is_bool, "True or False"),),
    "int": ((_is_whole, "a whole number, such as 10"),),
    "float": ((_is_number, "a number, such as 2.5"),),
    "timedelta": ((_is(timedelta), "a timedelta, such as timedelta(days=3)"),),
    "datetime": ((_is(datetime), "a datetime, such as datetime(2024, 1, 31, tzinfo=UTC)"),),
    "date": ((_is(date), "a date, such as date(2024, 1, 31)"),),
    "tuple[str, ...]": (_PATH,),
    "ColumnPath": (_NAME, _PATH),
    **dict.fromkeys(("Sequence[str]", "Iterable[str]", "list[str]"), (_NAMES,)),
    **dict.fromkeys(
        (
            "Sequence[ColumnPath]",
            "Iterable[ColumnPath]",
            "list[ColumnPath]",
            "Sequence[str | tuple[str, ...]]",
        ),
        (_PATHS,),
    ),
    "Name": (_PARTS,),
    "TableName": (_TABLE,),
    "Sequence[str | Name]": ((_list_of(_STRING, _is_path), "a list of names"),),
    "Mapping[str, str]": (_TO_STRINGS,),
    "Mapping[str, str | None]": (
        (_mapping_to(_STRING, lambda item: item is None), _TO_STRINGS[1]),
    ),
    "Mapping[str, Any]": (_MAPPING,),
    "Mapping[str, object]": (_MAPPING,),
    "Sequence[object]": ((_is(Sequence), "a list of values, such as [1, 'a']"),),
    "Parameters": (
        (_is(Sequence), "a list of values, such as [1, 'a']"),
        (_mapping_to(lambda _: True), "a dictionary, such as {'name': 1}"),
    ),
    "Where": ((_is_position, "'first', 'last' or ('after', name)"),),
    "Field": (_FIELD,),
    "Sequence[Field]": (
        (_list_of(_FIELD[0]), "a list of fields, such as [Field('name', 'string')]"),
    ),
    "WrittenFiles": (_FILES,),
    "Sequence[WrittenFiles]": ((_list_of(_FILES[0]), "a list of them"),),
    "Retry": ((_named("Retry"), "a Retry, such as Retry(attempts=5)"),),
    "HttpOptions": ((_named("HttpOptions"), "HttpOptions(…) of deltalog.sharing"),),
    "AnswerLimits": ((_named("AnswerLimits"), "AnswerLimits"),),
    "OnProgress": ((callable, "a function"),),
    "Progress": ((lambda value: _is_bool(value) or callable(value), "True or a function"),),
    **dict.fromkeys(("PurePath", "PathLike[str]"), ((_is(PathLike), "a path"),)),
    "None": (),
}
"""Annotation → the check of a value, and what is expected."""
_SEQUENCE: Final[tuple[_Kind, ...]] = ((_is(Iterable), "a list"),)
"""Any other sequence, whose items the functions check."""
_NONE: Final[_Kind] = (lambda value: value is None, "")
_ALIASES: Final[Mapping[str, str]] = {
    "Mode": "Literal['error', 'append', 'overwrite', 'ignore']",
    "SchemaMode": "Literal['merge', 'overwrite']",
    "PartitionOverwrite": "Literal['static', 'dynamic']",
    "PartitionStrategy": "Literal['hive', 'directory']",
    "DtypeBackend": "Literal['numpy_nullable', 'pyarrow']",
    "Curve": "Literal['hilbert', 'zorder']",
    "SourceFormat": "Literal['parquet', 'iceberg']",
}
"""Names of types in annotations that are `Literal`s, of which only the type is checked here."""
_OWN: Final[Mapping[str, tuple[_Kind, ...]]] = {
    "columns": (_ITERABLE,),
    **dict.fromkeys(("new_values", "updates", "retention_hours", "keep_versions"), ()),
    **dict.fromkeys(("starting_version", "ending_version"), ()),
}
"""Optional arguments that functions check themselves, because their errors give more advice."""
_MORE: Final = {
    ("connect", "tables"): "a dictionary, name to table, such as {'t': table}; a directory of "
    "tables, or another catalog, is passed as catalog=…",
    ("TableOptimizer.upgrade_uniform", "iceberg_compat_version"): "1, 2 or 3",
    ("DeltaTable.sql", "parameters"): "a dictionary of values for :name, such as {'name': 1}; "
    "deltalog.sql(query, parameters, t=table) also takes a list for ?",
    **dict.fromkeys(
        (
            ("DeltaTable.alter.add_constraint", "constraints"),
            ("DeltaTable.create", "constraints"),
        ),
        "a dictionary, name to condition, such as {'positive': 'amount > 0'}",
    ),
    ("DeltaTable.alter.add_columns", "fields"): "a Field, such as Field('name', 'string'), a list "
    "of them, a dictionary, such as {'size': 'long'}, or a string, such as 'size long, at date'",
    ("CatalogTransactions.branch", "tables"): "a list of names, such as ['schema.table']",
    ("CatalogBranch.publish", "checks"): "a dictionary, such as {'schema.table': ['id > 0']}",
}
"""Function and argument → what is expected, where more than its type is known."""
_SIZES: Final = ("target_size", "file_size", "_bytes")
"""The ends of names of arguments that are numbers of bytes."""
_BYTES: Final[tuple[_Kind, ...]] = ((_is_whole, "a whole number of bytes, such as 100_000_000"),)


@cache
def kinds_of(annotation: str) -> tuple[_Kind, ...]:
    """Return the kinds of values that an annotation allows; empty if any of them is not checked."""
    kinds: list[_Kind] = []
    for name in _split(annotation):
        part = _ALIASES.get(name, name)
        found = _KINDS.get(part)
        if found is None and part.startswith("Literal['"):
            options = part.removeprefix("Literal[").removesuffix("]")
            found = ((_STRING, f"one of {options}"),)
        elif found is None and part.startswith(("Sequence[", "Iterable[")):
            found = _SEQUENCE
        elif found is None and part.startswith("Mapping[str, "):
            found = (_MAPPING,)
        elif found is None and part.startswith("Callable["):
            found = ((callable, "a function"),)
        if found is None:
            return ()
        kinds += found
    return tuple(kinds)


def _split(annotation: str) -> list[str]:
    """Split an annotation at each `|` outside of brackets."""
    parts, depth = [""], 0
    for letter in annotation.replace('"', "'"):
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


@cache
def _annotations(
    function: Callable[..., Any],
) -> tuple[tuple[tuple[str, tuple[_Kind, ...]], ...], dict[str, tuple[_Kind, ...]]]:
    """Return the checked arguments of a function: the positional ones in order, and all by name."""
    found = {
        name: (_kinds_of_argument(name, one), one.kind)
        for name, one in signature(function).parameters.items()
        if name not in {"self", "cls"}
    }
    by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    positional = [(name, kinds) for name, (kinds, kind) in found.items() if kind in by_place]
    return tuple(positional), {name: kinds for name, (kinds, _) in found.items()}


def _kinds_of_argument(name: str, parameter: Parameter) -> tuple[_Kind, ...]:
    annotation = str(parameter.annotation)
    is_optional = annotation.endswith("| None") or annotation == "Parameters"
    is_optional = is_optional or parameter.default is None
    kinds = _OWN[name] if name in _OWN and is_optional else _kinds_of_named(name, annotation)
    # None for False, or for a name that has a default, has always been accepted.
    has_default = parameter.default is not Parameter.empty
    accepts_none = is_optional or (has_default and annotation in {"bool", "str"})
    return (*kinds, _NONE) if kinds and accepts_none else kinds


def _kinds_of_named(name: str, annotation: str) -> tuple[_Kind, ...]:
    is_size = name.endswith(_SIZES) and annotation.partition(" |")[0] == "int"
    return _BYTES if is_size else kinds_of(annotation)


def _is_right(value: object, kinds: tuple[_Kind, ...]) -> bool:
    return not kinds or any(check(value) for check, _ in kinds)


_WITHOUT_PREFIX: Final = re.compile(
    r"enable(?:ChangeDataFeed|DeletionVectors|RowTracking|TypeWidening|InCommitTimestamps"
    r"|IcebergCompatV[123])|appendOnly|checkpointInterval|dataSkippingNumIndexedCols"
)
"""Names of table properties that lack `delta.`, and whose values are no strings in Python."""


def _expected(kinds: tuple[_Kind, ...], value: object) -> str:
    if isinstance(value, str) and kinds[0] in {_PARTS, _TABLE}:
        return f"a tuple of names, here {tuple(value.split('.'))!r}"
    if isinstance(value, Mapping) and any(what == _TO_STRINGS[1] for _, what in kinds):
        for key, item in value.items():
            if isinstance(key, str) and isinstance(item, bool | int | float):
                text = str(item).lower() if isinstance(item, bool) else str(item)
                full = f"delta.{key}" if _WITHOUT_PREFIX.fullmatch(key) else key
                return f"a dictionary of strings, such as {{{full!r}: {text!r}}}"
    return " or ".join(dict.fromkeys(what for _, what in kinds if what))
