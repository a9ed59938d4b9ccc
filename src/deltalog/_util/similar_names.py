"""Suggestions in errors about unknown attributes, keyword arguments, and uses as a sequence.

Users of other libraries look for the names of those libraries, and everybody mistypes names. So the
errors of public classes name what to use instead, or the most similar name.

Protocol: none
"""

from __future__ import annotations

from functools import wraps
from inspect import signature
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

from deltalog._util.call_errors import UnknownNameError, WrongCallError, is_of_call

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

_Class = TypeVar("_Class", bound=type)
_SIMILAR: Final = 0.75
"""The minimum similarity of a name that is suggested; less would be a guess."""
_PRUNING: Final = "file_pruning_predicate"
_MOST_NAMES: Final = 12
"""The maximum number of names in an error about an attribute that is not similar to any."""
_SYNONYMS: Final = {
    "metadata": ("custom_metadata",),
    "checkpoint": ("create_checkpoint",),
    "dictionary": ("dictionary_enabled",),
    "retries": ("max_commit_retries",),
    **dict.fromkeys(
        ("where", "filter", "condition"), ("predicate", "filters", _PRUNING, "partition_filters")
    ),
    "on": ("predicate", "filters", "key"),
    "filters": ("predicate", _PRUNING),
    "predicate": ("filters", _PRUNING, "partition_filters"),
    "version": ("target",),
    **dict.fromkeys(("select", "cols", "column"), ("columns",)),
    **dict.fromkeys(("set", "values", "assignments"), ("updates", "new_values")),
    **dict.fromkeys(
        ("timestamp", "as_of", "asOf", "versionAsOf", "version_as_of", "snapshot"),
        ("version", "target"),
    ),
    **dict.fromkeys(("alias", "as_"), ("target_alias",)),
    **dict.fromkeys(("options", "storageOptions"), ("storage_options",)),
    **dict.fromkeys(("n", "num_rows", "rows", "limit", "size"), ("limit", "num_rows")),
    **dict.fromkeys(("dtype", "data_type", "dataType"), ("type",)),
    **dict.fromkeys(("params", "args"), ("parameters",)),
    **dict.fromkeys(("hours", "retention", "days"), ("retention_hours",)),
    **dict.fromkeys(("properties", "table_properties", "tblproperties"), ("configuration",)),
    **dict.fromkeys(
        ("partitioned_by", "partitionBy", "partition_columns", "partition_cols", "partitions"),
        ("partition_by",),
    ),
    **dict.fromkeys(("path", "location", "uri", "table"), ("table_uri", "table_or_uri")),
}
"""Keyword arguments of other libraries → those of deltalog, of which a function may have one."""
_LIMITS: Final = frozenset({"limit", "n", "num_rows", "rows", "nrows", "n_rows", "head"})
"""Names of a number of rows in other libraries."""
_ELSEWHERE: Final = {
    **dict.fromkeys(
        (
            ("GlueCatalog", "region_name"),
            ("GlueCatalog", "region"),
            ("GlueCatalog", "profile_name"),
        ),
        "client_options={'region_name': …}, the arguments of boto3.client",
    ),
    ("DeltaTable", "branch"): "DeltaTable('location@branch')",
    ("SharedTable", "limit"): "scan(limit=…)",
    **dict.fromkeys((("SharingClient", "timeout"), ("SharingClient", "retry")), "options=…"),
}
"""Class and keyword argument → what has this option instead."""
_INSTEAD: Final = {
    "is_in": "pass one list, as in is_in([1, 2])",
    "key_index": "alter.set_key_index(columns) sets the key",
    "branches": "branch(name, exist_ok=True) opens a branch",
}
"""What to write instead of more positional arguments than the method takes."""


def similar_to(name: str, names: Iterable[str]) -> str:
    """Return `: did you mean 'x'?` for the most similar public name; empty if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415  # only for errors

    public = [one for one in names if not one.startswith("_")]
    if name.startswith("_"):
        return ""
    close = [one for one in public if _folded(one) == _folded(name)]  # such as `toPandas`
    close = close or get_close_matches(name, public, 1, _SIMILAR)
    return f": did you mean {close[0]!r}?" if close else ""


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def similar_argument(name: str, known: Collection[str]) -> str:
    """Return `: did you mean 'x'?` for an unknown argument; empty if none is meant or similar."""
    meant = [one for one in _SYNONYMS.get(name, ()) if one in known]
    return f": did you mean {meant[0]!r}?" if meant else similar_to(name, known)


def _names_of(kind: type) -> str:
    """Return the public names of a class with few of them."""
    names = [name for name in dir(kind) if not name.startswith("_")]
    return f": it has {', '.join(names)}" if 0 < len(names) <= _MOST_NAMES else ""


class SimilarNames:
    """Base class of public classes: an error about an unknown attribute names a similar one.

    Attributes:
        _meant: name in other libraries → what to use instead.
        _called: what the error calls the object; by default, the name of its class.
        _otherwise: what to use if no name is similar; by default, the error does not say it.
    """

    __slots__ = ()
    _meant: ClassVar[Mapping[str, str]] = {}
    _called: ClassVar[str] = ""
    _otherwise: ClassVar[str] = ""

    if not TYPE_CHECKING:  # type checkers must report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that names what to use instead, or a similar name."""
            __tracebackhide__ = True  # IPython does not show this frame
            kind = type(self)
            other = self._meant.get(name)
            hint = f": use {other}" if other else similar_to(name, dir(kind))
            if not hint and not name.startswith("_"):
                hint = f": use {self._otherwise}" if self._otherwise else _names_of(kind)
            called = self._called or kind.__name__
            raise UnknownNameError(f"{called} has no attribute {name!r}{hint}")


class NoSequence:
    """Base class of tables and scans: errors of `len(x)`, `x[key]` and `list(x)` say what to use.

    So do those of `pandas.DataFrame(x)`, which makes an array of `x` if it has `__iter__`.

    Attributes:
        _counted: what returns the number of rows.
        _items: what returns rows and columns.
        _block: what a `with` block is for instead.
    """

    __slots__ = ()
    _block: ClassVar[str] = ""
    _counted: ClassVar[str] = "to_table().num_rows"
    _items: ClassVar[str] = (
        "to_table() for a table of Arrow, which has columns and rows, or to_pandas() for a data "
        "frame"
    )

    if not TYPE_CHECKING:  # type checkers must report these uses

        def __bool__(self) -> bool:
            """Return True, as without `__len__`."""
            return True

        def __len__(self) -> NoReturn:
            """Raise an error that names the method that counts the rows."""
            raise WrongCallError(f"a {type(self).__name__} has no length: use {self._counted}")

        def __getitem__(self, key: object) -> NoReturn:
            """Raise an error that names the methods that return rows and columns."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise _without_items(self)

        def __iter__(self) -> NoReturn:
            """Raise the same error; classes that yield batches override this method."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise _without_items(self)

        def __array__(self, *_: object, **__: object) -> NoReturn:
            """Raise the same error; `pandas.DataFrame(x)` would be a frame of batches."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise _without_items(self)

        def __enter__(self) -> NoReturn:
            """Raise an error: a `with` block would look like a transaction, which this is not."""
            raise WrongCallError(
                f"a {type(self).__name__} is no context manager: nothing of it needs to be closed"
                f"{self._block}"
            )

        def __exit__(self, *_: object) -> None:
            """Do nothing; Python looks for this method before it calls `__enter__`."""

        def __contains__(self, item: object) -> NoReturn:
            """Raise the same error for `item in x`, which would compare the item with batches."""
            __tracebackhide__ = True  # IPython does not show this frame
            raise _without_items(self)


def _without_items(value: NoSequence) -> WrongCallError:
    return WrongCallError(f"a {type(value).__name__} has no items: use {value._items}")  # noqa: SLF001  # of this module


def suggests_arguments(kind: _Class) -> _Class:
    """Decorate a class whose errors about arguments contain its name and the names to use."""
    for name, function in list(vars(kind).items()):
        if name[0] == "_" and name != "__init__":
            continue
        if isinstance(function, FunctionType):
            setattr(kind, name, _suggesting(function))
        elif isinstance(function, classmethod):
            setattr(kind, name, classmethod(_suggesting(function.__func__)))
    return kind


def _suggesting(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(self: Any, /, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython does not show this frame
        try:
            return function(self, *args, **options)
        except TypeError as error:
            if not is_of_call(error):
                raise
            kind = self if isinstance(self, type) else type(self)
            wrong = _unknown(kind, function, options) or _surplus(function, args)
            # Python's own message contains the class that defines the method.
            method = "" if function.__name__ == "__init__" else f".{function.__name__}"
            wrong = wrong or str(error).partition("() ")[2]
            message = f"{kind.__name__}{method}() {wrong}" if wrong else str(error)
            raise WrongCallError(message) from None

    return called


def _unknown(kind: type, function: Callable[..., Any], options: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the first unknown argument, with a hint; None if all are known."""
    known = signature(function).parameters
    for name in options:
        if name not in known:
            hint = similar_argument(name, known)
            if other := _ELSEWHERE.get((kind.__name__, name)):
                hint = f": use {other}"
            hint = hint or _hint_of(function.__name__, name, options[name])
            return f"got an unexpected keyword argument {name!r}{hint}"
    return None


def _hint_of(method: str, name: str, value: object) -> str:
    """Return what to write instead of an argument that is the name of a column or property."""
    match method:
        case "delete":
            return f': a condition is SQL, as in predicate="{name} = …"'
        case "set_table_properties":
            key = name if "." in name else f"delta.{name}"
            text = str(value).lower() if isinstance(value, bool) else str(value)
            return f": pass a dictionary, {{{key!r}: {text!r}}}"
        case "to_pandas" | "to_polars" | "to_pyarrow_table" if name in _LIMITS:
            return ": use scan(limit=…)"
    return ""


def _surplus(function: Callable[..., Any], args: Sequence[Any]) -> str | None:
    """Return what is wrong with the number of positional arguments; None if it is right."""
    parameters = list(signature(function).parameters.values())[1:]  # without `self`
    positional = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    if len(args) <= len(positional) or any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return None
    named = [f"{one.name}=…" for one in parameters if one.kind is one.KEYWORD_ONLY]
    hint = _INSTEAD.get(function.__name__) or (named and f"write the names: {', '.join(named)}")
    known = f" ({', '.join(positional)})" if positional else ""
    number = f"{len(positional) or 'no'} positional argument{'s' * (len(positional) != 1)}"
    return f"takes {number}{known}, found {len(args)}{f'; {hint}' if hint else ''}"
