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

from deltalog._util.call_errors import (
    NO_OBJECT,
    ObjectProperty,
    UnknownKeyError,
    UnknownNameError,
    WrongCallError,
    call_of,
    check_object,
    is_of_call,
)
from deltalog._util.frame_names import FRAME_METHODS
from deltalog._util.read_options import is_of_other_rows, read_option

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

_Class = TypeVar("_Class", bound=type)
_Function = TypeVar("_Function", bound="Callable[..., Any]")
_SIMILAR: Final = 0.75
"""The minimum similarity of a name that is suggested; less would be a guess."""
_MOST_NAMES: Final = 12
"""The maximum number of names in an error about an attribute that is not similar to any."""
_CONDITIONS: Final = (
    *("where", "filter", "filters", "predicate", "condition", "row_filter", "partition_filter"),
    *("file_pruning_predicate", "partition_filters"),
    *("on", "replace_where", "delete_filter", "overwrite_filter", "filter_expr", "conditions"),
)
_MOMENTS: Final = (
    *("version", "timestamp", "datetime", "as_of", "asOf", "at", "tag", "to"),
    *("versionAsOf", "version_as_of", "timestampAsOf", "timestamp_as_of"),
    *("snapshot", "snapshot_id"),
)
_OTHER_NAMES: Final = {
    "custom_metadata": ("metadata", "user_metadata", "userMetadata", "commit_metadata"),
    "app_transactions": ("app_id", "txn", "transaction", "transactions"),
    "max_commit_retries": ("retries",),
    "create_checkpoint": ("checkpoint",),
    "compression": ("codec", "compression_codec"),
    "data_page_size_limit": ("page_size",),
    "default_column_properties": (
        *("dictionary", "use_dictionary", "dictionary_enabled", "statistics", "write_statistics"),
        *("statistics_enabled", "bloom_filter", "bloom_filter_properties", "encoding"),
    ),
    "dictionary_enabled": ("dictionary", "use_dictionary"),
    "statistics_enabled": ("statistics", "write_statistics"),
    "bloom_filter_properties": ("bloom_filter",),
    "key": (
        *("on", "by", "keys", "columns", "join_cols", "unique_key", "primary_key", "key_columns"),
        *("id_columns", "predicate"),
    ),
    "predicate": (*_CONDITIONS, "merge_condition", "key", "keys", "join_cols", "left_on"),
    "filters": _CONDITIONS,
    "file_pruning_predicate": (*_CONDITIONS, "partitions"),
    "partition_filters": (*_CONDITIONS, "partitions"),
    "starting_version": ("start", "starting", "from_version", "start_version", "from_", "version"),
    "ending_version": ("end", "ending", "to_version", "end_version"),
    "start": (*_MOMENTS, "startingVersion", "starting_version", "offset", "since"),
    "version": _MOMENTS,
    "target": (*_MOMENTS, "to_version", "to_timestamp"),
    "connection": ("con", "conn", "duckdb_connection"),
    "schema": ("columns", "fields"),
    "fields": ("columns", "column", "schema"),
    "constraints": ("name", "constraint", "expr", "check", "expression"),
    "feature": ("features", "name", "feature_name"),
    "columns": (
        *("select", "cols", "by", "column", "selected_fields", "fields", "projection", "usecols"),
    ),
    "updates": ("set", "values", "assignments", "new_values", "columns"),
    "except_cols": ("exclude", "except_columns", "except_"),
    "target_alias": ("alias", "as_"),
    "source_alias": ("source_as",),
    "settings": ("config", "database_config"),
    "storage_options": (
        *("options", "storageOptions", "credentials", "credential_provider", "region", "token"),
        *("delta_table_options", "config", "hadoop_conf"),
    ),
    "filesystem": ("fs",),
    "limit": ("n", "num_rows", "rows", "size", "n_rows", "nrows", "head", "num", "last"),
    "num_rows": ("n", "limit", "rows", "size", "n_rows", "nrows", "num"),
    "order_by": ("sort", "sort_by", "order", "orderBy"),
    "type": ("dtype", "data_type", "dataType", "field_type"),
    "parameters": ("params", "args"),
    "retention_hours": ("hours", "retention", "days", "older_than", "retention_period"),
    "enforce_retention_duration": ("enforce", "retention_check_enabled"),
    "keep_versions": ("keep", "num_retain"),
    "dry_run": ("dry",),
    "configuration": ("properties", "table_properties", "tblproperties"),
    "description": ("comment",),
    "cluster_by": ("clustering", "clustered_by", "clusterBy"),
    "partition_by": (
        *("partitioned_by", "partitionBy", "partition_columns", "partition_cols", "partitions"),
        *("partition_spec", "partition_schema"),
    ),
    "mode": (*("if_exists", "save_mode", "write_mode"),),
    "merge_schema": ("schema_evolution", "with_schema_evolution", "mergeSchema", "schema_mode"),
    "schema_mode": ("schema_evolution",),
    "target_size": ("file_size", "target", "max_file_size", "target_file_size"),
    "nullable": ("null", "is_nullable"),
    "shallow": ("is_shallow", "isShallow"),
    "poll_seconds": ("poll", "interval", "poll_interval"),
    "max_files_per_step": ("maxFilesPerTrigger", "max_files"),
    "max_bytes_per_step": ("maxBytesPerTrigger", "max_bytes"),
    "most_rows": ("max_rows", "batch_size"),
    "most_bytes": ("max_bytes", "buffer_size"),
    "wait_ms": ("flush_interval", "interval", "max_wait"),
    "upsert": ("key", "on"),
    "allow_protocol_versions_increase": ("allow_upgrade",),
    "catalog": ("catalogs", "database", "warehouse", "uri", "path", "location"),
    "commit_properties": (
        *("metadata", "custom_metadata", "user_metadata", "userMetadata", "commit_metadata"),
        *("snapshot_properties", "app_id", "txn", "txnAppId", "retries", "max_retries"),
        *("max_commit_retries",),
    ),
    "table_uri": ("path", "location", "uri", "table"),
    "source": ("data", "df", "rows", "frame", "dataframe", "other", "updates", "new_data"),
    "data": ("df", "rows", "frame", "dataframe", "records", "values"),
    "table_or_uri": ("path", "location", "uri", "table", "table_uri"),
}
"""Keyword argument of deltalog → its names in other libraries, the likeliest argument first."""
_LIMITS: Final = frozenset({"limit", "n", "num_rows", "rows", "nrows", "n_rows", "head"})
"""Names of a number of rows in other libraries."""
_READING: Final = frozenset(
    {"to_pandas", "to_polars", "to_pyarrow_table", "to_pyarrow_dataset", "to_duckdb", "scan"}
    | {"to_arrow", "count", "head", "file_uris", "partitions", "describe"}
)
"""Methods that read the version that the table shows."""
_ELSEWHERE: Final = {
    **dict.fromkeys(
        (("GlueCatalog", one) for one in ("region_name", "region", "endpoint_url", "config")),
        "client_options={'region_name': …}, the arguments of boto3.client",
    ),
    **dict.fromkeys(
        (("GlueCatalog", one) for one in ("profile_name", "profile", "session")),
        "the environment variable AWS_PROFILE",
    ),
    **dict.fromkeys(
        (("UnityCatalog", one) for one in ("workspace_url", "host", "uri", "endpoint", "server")),
        "url",
    ),
    **dict.fromkeys(
        (("UnityCatalog", one) for one in ("bearer_token", "access_token", "pat", "api_key")),
        "token=…",
    ),
    **dict.fromkeys(
        (("HttpOptions", one) for one in ("timeout", "timeout_s", "request_timeout")),
        "connect_timeout_s=… and read_timeout_s=…",
    ),
    **dict.fromkeys(
        (("HttpOptions", one) for one in ("retries", "max_retries", "attempts")),
        "retry=Retry(attempts=…)",
    ),
    **dict.fromkeys(
        (("HttpOptions", one) for one in ("verify", "verify_ssl", "ssl", "cert", "headers")),
        "session=…, a function that returns an aiohttp.ClientSession",
    ),
    **dict.fromkeys((("Retry", one) for one in ("retries", "total", "max_retries")), "attempts=…"),
    ("DeltaTable", "branch"): "DeltaTable('location@branch')",
    ("DeltaTable", "catalog"): "DeltaTable('uc://catalog.schema.table'), or connect(catalog=…)",
    **dict.fromkeys(
        (("DeltaTable", "columns"), ("DeltaTable", "predicate"), ("DeltaTable", "filters")),
        "scan(columns, predicate) of the table",
    ),
    **dict.fromkeys(
        (("DeltaTable", "schema"), ("DeltaTable", "mode"), ("DeltaTable", "partition_by")),
        "DeltaTable.create(…) for a new table",
    ),
    ("SharedTable", "limit"): "scan(limit=…)",
    ("Scan", "lazy"): "to_polars(lazy=True) of the table",
    **{
        (kind, one): f"{instead} of the table"
        for kind, instead in (
            ("Scan", "scan(columns, predicate, limit=…, order_by=…)"),
            ("Changes", "load_cdf(…, columns=…, predicate=…)"),
            ("Step", "follow(…, columns=…, predicate=…)"),
        )
        for one in ("columns", "filters", "predicate", "limit", "order_by", "filter", "n")
    },
    **dict.fromkeys(
        (
            ("SqlResult", one)
            for one in ("columns", "filters", "predicate", "limit", "order_by", "filter", "n")
        ),
        "SELECT, WHERE, ORDER BY and LIMIT in the query",
    ),
    **dict.fromkeys((("SharingClient", "timeout"), ("SharingClient", "retry")), "options=…"),
    **dict.fromkeys(
        (("Field", "comment"), ("Field", "doc"), ("Field", "description")),
        "Field(name, type).comment(text)",
    ),
    **dict.fromkeys((("Field", "required"), ("Field", "not_null")), "nullable=False"),
    ("Field", "default"): "Field(name, type).default(sql)",
    ("Field", "generated"): "Field(name, type).generated_as(sql)",
}
"""Class and keyword argument of its constructor or of a method → what has this option instead."""
_OF_METHODS: Final = {
    ("connect", "database"): "catalog=… for a directory or a catalog, schema=… for one within it",
    ("create", "columns"): "schema=[Field(name, type), …]",
    **dict.fromkeys(
        (("create", "primary_key"), ("create", "key"), ("create", "unique")),
        "upsert(data, key), which keeps a key unique; tables have no primary keys",
    ),
    ("add_columns", "first"): "where='first'",
    ("add_columns", "after"): "where=('after', name)",
    **dict.fromkeys(
        (("add_columns", "before"), ("add_columns", "position")),
        "where='first', 'last' or ('after', name)",
    ),
    **dict.fromkeys(
        (("add_columns", "name"), ("add_columns", "type"), ("add_columns", "dtype")),
        "fields=[Field(name, type)]",
    ),
    **dict.fromkeys(
        (("add_constraint", one) for one in ("name", "expr", "check", "constraint_name")),
        "constraints={name: condition}",
    ),
    **dict.fromkeys(
        (("merge", one) for one in ("on", "key", "keys", "join_cols", "left_on", "right_on")),
        "predicate='source.id = target.id', or upsert(data, key) of the table",
    ),
    **dict.fromkeys(
        (("upsert", "when_matched_update_all"), ("upsert", "when_not_matched_insert_all")),
        "merge(source, predicate) and its clauses; an upsert has both",
    ),
    **dict.fromkeys((("compact", "zorder"), ("compact", "columns")), "optimize.z_order(columns)"),
    **dict.fromkeys((("load_cdf", "limit"), ("load_cdf", "n")), "a loop over its batches"),
    ("to_pyarrow_dataset", "columns"): "to_table(columns=…) of the dataset",
    **dict.fromkeys(
        (
            (method, one)
            for method in ("delete", "update")
            for one in ("limit", "n", "order_by", "head", "top", "first", "offset")
        ),
        "a condition that only these rows match, such as predicate='id IN (1, 2)'",
    ),
    **dict.fromkeys((("scan", "offset"), ("scan", "skip"), ("scan", "distinct")), "sql(query)"),
    **dict.fromkeys(
        (("scan", one) for one in ("ascending", "descending", "desc", "reverse")),
        "order_by='id DESC'",
    ),
    **dict.fromkeys(
        (("merge", one) for one in ("how", "join_type", "type")),
        "its WHEN clauses, such as when_matched_update_all() and when_not_matched_insert_all()",
    ),
    **dict.fromkeys(
        (("appender", one) for one in ("schema_mode", "merge_schema", "mergeSchema")),
        "write_deltalake(table, rows, mode='append', schema_mode='merge')",
    ),
    **dict.fromkeys(
        (("scan_delta", one) for one in ("use_pyarrow", "pyarrow_options")),
        "polars.scan_pyarrow_dataset(table.to_pyarrow_dataset())",
    ),
    **dict.fromkeys(
        (("to_pandas", one) for one in ("chunksize", "chunk_size", "batch_size", "iterator")),
        "scan(), which yields batches",
    ),
    ("to_pandas", "index_col"): "to_pandas().set_index(…)",
    ("count", "distinct"): 'sql("SELECT count(DISTINCT id) FROM this")',
    ("scan", "include_file_paths"): "columns=[…, '_metadata.file_path']",
    **dict.fromkeys(
        (("diff", one) for one in ("filters", "predicate", "filter", "where")),
        "deltalog.sql('SELECT * FROM d WHERE …', d=table.diff(…))",
    ),
    ("move_column", "after"): "where=('after', name)",
    ("move_column", "first"): "where='first'",
    **dict.fromkeys(
        (("move_column", one) for one in ("before", "position", "index")),
        "where='first', 'last' or ('after', name)",
    ),
    **dict.fromkeys(
        (("upsert", one) for one in ("update_columns", "except_cols", "exclude", "updates")),
        "merge(source, predicate) and when_matched_update(updates)",
    ),
    **dict.fromkeys(
        (("doctor", one) for one in ("fix", "repair", "apply")),
        "the calls that its findings name; doctor changes nothing",
    ),
    **dict.fromkeys(
        (("to_duckdb", one) for one in ("name", "view", "view_name", "alias")),
        "create_view(name) of the relation",
    ),
    ("clone", "version"): "clone(location) of DeltaTable(…, version=…)",
    ("clone", "mode"): "replace=True",
    ("clone", "deep"): "shallow=False",
    ("vacuum", "lite"): "full=False",
    ("vacuum", "force"): "enforce_retention_duration=False",
    **dict.fromkeys((("create", "exist_ok"), ("create", "if_not_exists")), "mode='ignore'"),
    **dict.fromkeys(
        (("create", "overwrite"), ("create", "or_replace"), ("create", "replace")),
        "mode='overwrite'",
    ),
    ("vacuum", "mode"): "full=True or full=False",
    ("follow", "checkpoint"): "start=offset, which is the stored step.offset.to_json()",
    **dict.fromkeys(
        (
            (method, one)
            for method in ("to_pandas", "to_polars", "to_arrow", "to_pyarrow_table", "head")
            for one in ("order_by", "sort", "sort_by", "orderBy")
        ),
        "scan(order_by=…, limit=…) and its to_pandas(), to_polars() or to_table()",
    ),
    ("to_polars", "engine"): "to_polars(lazy=True).collect(engine=…)",
    ("to_polars", "streaming"): "to_polars(lazy=True).collect(engine='streaming')",
    **dict.fromkeys((("to_polars", "eager"), ("to_polars", "collect")), "lazy=True or lazy=False"),
}
"""Method and keyword argument → what has this option instead."""
_INSTEAD: Final = {
    "__call__": "col('info.city') is a field of a struct; columns=['id', 'name'] selects several",
    "is_in": "pass one list, as in is_in([1, 2])",
    "key_index": "alter.set_key_index(columns) sets the key",
    "branches": "branch(name, exist_ok=True) opens a branch",
    "list_tables": "pass one tuple, as in list_tables(('catalog', 'schema'))",
    "list_schemas": "pass one tuple, as in list_schemas(('catalog',))",
}
"""What to write instead of more positional arguments than the method takes."""


_WITHOUT: Final = {
    "commit": "; each method commits by itself, and `with table.transaction() as tx:` commits "
    "several changes at its end",
}
"""What to do instead of a call of a method without its arguments."""


def similar_to(name: str, names: Iterable[str]) -> str:
    """Return `: did you mean 'x'?` for the most similar public name; empty if none is similar."""
    from difflib import get_close_matches  # noqa: PLC0415  # only for errors

    public = [one for one in names if not one.startswith("_")]
    if name.startswith("_"):
        return ""
    close = [one for one in public if _folded(one) == _folded(name)]  # such as `toPandas`
    close = close or get_close_matches(name, public, 1, _SIMILAR)
    return f": did you mean {close[0]!r}?" if close else ""


def on_unused_parameter(
    name: object, used: Collection[str], given: Collection[object], sql: Iterable[str]
) -> str:
    """Return what to do with a parameter of a name that no SQL uses, for the end of a message.

    Args:
        name: the name of the parameter.
        used: the names after colons in the SQL.
        given: the names of all values.
        sql: the texts, in which the parameter may be in quotes.
    """
    if similar := similar_to(str(name), [one for one in used if one not in given]):
        # The SQL has the name after a colon.
        return similar.replace(": did you mean '", "; did you mean :").replace("'?", "?")
    if any(f":{name}" in text for text in sql):
        return "; a parameter has no quotes"
    return "; leave it out"


def similar_or_known(name: str, names: Collection[str], kind: str) -> str:
    """Return `: did you mean 'x'?`, or all names of this kind, or that there is none.

    Args:
        name: the name that is not one of them.
        names: the known names.
        kind: what they name, such as `constraint`.
    """
    if similar := similar_to(name, names):
        return similar
    some = sorted(names)[:_MOST_NAMES]
    more = ", …" if len(names) > len(some) else ""
    known = ", ".join(map(repr, some)) + more
    return f": it has {known}" if names else f": it has no {kind}"


def no_key(key: object, known: Collection[str]) -> UnknownKeyError:
    """Return the error about a missing key, with a similar key or those that exist."""
    some = ", ".join(map(repr, list(known)[:_MOST_NAMES])) + ", …" * (len(known) > _MOST_NAMES)
    keys = f"the keys are {some}" if known else "there are no keys"
    return UnknownKeyError(f"there is no key {key!r}{similar_to(str(key), known) or f': {keys}'}")


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def similar_argument(name: str, known: Collection[str], function: str = "") -> str:
    """Return what to use instead of an unknown argument; empty if none is meant or similar."""
    if other := _OF_METHODS.get((function, name)):
        return f": use {other}"
    meant = [one for one, names in _OTHER_NAMES.items() if one in known and name in names]
    return f": did you mean {meant[0]!r}?" if meant else similar_to(name, known)


def known_arguments(known: Collection[str]) -> str:
    """Return the names of a function's arguments, for an error about another name."""
    names = [name for name in known if name not in _HIDDEN and _REPLACED.get(name) not in known]
    shown = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
    return f"; the arguments are {shown}" if names else "; it takes no arguments"


_HIDDEN: Final = frozenset({"self", "cls", "without_files", "log_buffer_size", "skip_stats"})
_REPLACED: Final = {"partitions": "filters", "partition_filters": "file_pruning_predicate"}
"""Deprecated argument → the argument that replaces it, where a function has both."""


def _names_of(kind: type) -> str:
    """Return the public names of a class with few of them."""
    names = [name for name in dir(kind) if not name.startswith("_")]
    return f": it has {', '.join(names)}" if 0 < len(names) <= _MOST_NAMES else ""


def frame_method(name: str, frames: str) -> str | None:
    """Return what to use instead of a method of dataframes; None for other names."""
    if not frames or name not in FRAME_METHODS:
        return None
    return f"{frames}, whose dataframes have such methods"


class SimilarNames:
    """Base class of public classes: an error about an unknown attribute names a similar one.

    Attributes:
        _meant: name in other libraries → what to use instead.
        _called: what the error calls the object; by default, the name of its class.
        _frames: what returns dataframes, for the methods of dataframes.
        _otherwise: what to use if no name is similar; by default, the error does not say it.
    """

    __slots__ = ()
    _meant: ClassVar[Mapping[str, str]] = {}
    _called: ClassVar[str] = ""
    _frames: ClassVar[str] = ""
    _otherwise: ClassVar[str] = ""

    if not TYPE_CHECKING:  # type checkers must report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that names what to use instead, or a similar name."""
            __tracebackhide__ = True  # IPython does not show this frame
            kind = type(self)
            other = self._meant.get(name) or frame_method(name, self._frames)
            hint = f": use {other}" if other else similar_to(name, dir(kind))
            if not hint and not name.startswith("_"):
                hint = f": use {self._otherwise}" if self._otherwise else _names_of(kind)
            called = self._called or kind.__name__
            raise UnknownNameError(f"{called} has no attribute {name!r}{hint}")


class NoItems:
    """Base class of results with attributes: the error of `x["id"]` names the attribute."""

    __slots__ = ()

    if not TYPE_CHECKING:  # type checkers must report this use

        def __getitem__(self, key: object) -> NoReturn:
            """Raise an error that says how to get a value."""
            __tracebackhide__ = True  # IPython does not show this frame
            kind = type(self)
            name = key if isinstance(key, str) else ""
            hint = f": use .{name}" if name in dir(kind) else similar_to(name, dir(kind))
            raise WrongCallError(f"{kind.__name__} has no item {key!r}{hint or _names_of(kind)}")


class VisibleNames:
    """Base class of public classes: `dir(x)` lists only the names that users need.

    Attributes:
        _internal: the other names without an underscore, in addition to those of the base classes.
    """

    __slots__ = ()
    _internal: ClassVar[frozenset[str]] = frozenset()

    def __dir__(self) -> list[str]:
        """Return the names of the object, without those of `_internal`."""
        hidden = {name for kind in type(self).__mro__ for name in vars(kind).get("_internal", ())}
        return [name for name in super().__dir__() if name not in hidden]


class NoSequence(VisibleNames):
    """Base class of tables and scans: errors of `len(x)`, `x[key]` and `list(x)` say what to use.

    So do those of `pandas.DataFrame(x)`, which makes an array of `x` if it has `__iter__`.

    Attributes:
        _counted: what returns the number of rows.
        _items: what returns rows and columns.
        _datafusion: how DataFusion reads the rows.
        _block: what a `with` block is for instead.
    """

    __slots__ = ()
    _block: ClassVar[str] = ""
    _datafusion: ClassVar[str] = "from_arrow(rows, name) of the context"
    _counted: ClassVar[str] = "to_table().num_rows"
    _items: ClassVar[str] = (
        "to_table() for a table of Arrow, which has columns and rows, or to_pandas() for a "
        "dataframe"
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

        def __datafusion_table_provider__(self, *_: object) -> NoReturn:
            """Raise an error that says how DataFusion reads the rows; it looks for this method."""
            raise WrongCallError(
                f"DataFusion cannot register a {type(self).__name__} itself: use {self._datafusion}"
            )

        def __enter__(self) -> NoReturn:
            """Raise an error: a `with` block would look like a transaction, which this is not."""
            raise WrongCallError(
                f"a {type(self).__name__} is not a context manager: it has nothing to close"
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
            setattr(kind, name, _suggesting(kind, function))
        elif isinstance(function, classmethod):
            setattr(kind, name, classmethod(_suggesting(kind, function.__func__)))
        elif type(function) is property and not function.fset:
            # It takes the docstring of the getter.
            setattr(kind, name, ObjectProperty(function.fget, kind=kind, name=name))
    return kind


def suggests_arguments_of_init(kind: _Class) -> _Class:
    """Decorate a class whose constructor's errors contain its name and the names to use."""
    kind.__init__ = _suggesting(kind, kind.__init__)  # type: ignore[misc]
    return kind


def _suggesting(owner: type, function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def called(self: Any = NO_OBJECT, /, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True  # IPython does not show this frame
        try:
            return function(self, *args, **options)
        except AttributeError:  # of a string, in `DeltaTable.delete("t")`
            check_object(owner, function.__name__, self)
            raise
        except TypeError as error:
            check_object(owner, function.__name__, self)
            if not is_of_call(error):
                raise
            kind = self if isinstance(self, type) else type(self)
            wrong = _unknown(kind, function, options)
            named = None if wrong else _by_their_types(function, args, options)
            wrong = None if named is not None else wrong or surplus(function, args)
            # Python's own message contains the class that defines the method.
            method = "" if function.__name__ == "__init__" else f".{function.__name__}"
            if not wrong and (wrong := str(error).partition("() ")[2]):
                wrong += _WITHOUT.get(function.__name__) or call_of(function, kind.__name__, wrong)
            message = f"{kind.__name__}{method}() {wrong}" if wrong else str(error)
            if named is None:
                raise WrongCallError(message) from None
        from deltalog._util.builders import warn_caller  # noqa: PLC0415  # only for warnings

        shown = ", ".join(f"{name}=…" for name in named) or "commit_properties=…"
        warn_caller(
            f"{kind.__name__}{method}(): passing properties of a commit by position is deprecated; "
            f"write {shown}",
            DeprecationWarning,
        )
        return function(self, *args[: _num_positional(function)], **options, **named)

    return called


_NAMES_OF_TYPES: Final = {
    "CommitProperties": "commit_properties",
    "PostCommitHookProperties": "post_commithook_properties",
}
_AFTER_PROPERTIES: Final = {
    "create": ("raise_if_key_not_exists",),
    "vacuum": ("full", "keep_versions"),
}
"""Method → the arguments that follow the two of a commit in deltalake, by position."""


def _by_their_types(
    function: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return surplus positional arguments by name; None if they have no names.

    deltalake accepts the properties of a commit by position, in an order that depends on the
    method. Here, their types tell which is which.
    """
    others = args[_num_positional(function) :]
    names = ("", "", *_AFTER_PROPERTIES.get(function.__name__, ()))
    known = signature(function).parameters
    if not others or len(others) > len(names) or "commit_properties" not in known:
        return None
    found: dict[str, Any] = {}
    for name, value in zip(names, others, strict=False):
        own = name or _NAMES_OF_TYPES.get(type(value).__name__, "")
        if value is None and not name:
            continue
        if own not in known or own in found or own in options:
            return None
        found[own] = value
    return found


def _num_positional(function: Callable[..., Any]) -> int:
    """Return how many positional arguments a method takes, without the object."""
    parameters = list(signature(function).parameters.values())[1:]
    return sum(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters)


def suggests_options(called: str, meant: Mapping[str, str]) -> Callable[[_Function], _Function]:
    """Decorate a function whose errors about arguments say what to use instead.

    Args:
        called: the function as users call it, such as `deltalog.dask.read()`.
        meant: argument in other libraries → what to use instead.
    """

    def decorated(function: _Function) -> _Function:
        known = signature(function).parameters

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            __tracebackhide__ = True  # IPython does not show this frame
            try:
                return function(*args, **options)
            except TypeError as error:
                if not is_of_call(error):
                    raise
                problem = str(error).partition("() ")[2]
                name = next((one for one in options if one not in known), None)
                if name is not None:
                    hint = (
                        f": use {meant[name]}" if name in meant else similar_argument(name, known)
                    )
                    problem = f"got an unexpected keyword argument {name!r}{hint}"
                elif problem.startswith("takes "):
                    has_self = next(iter(known), "") in {"self", "cls"}
                    problem = surplus(function, args[has_self:], has_self=has_self) or problem
                else:
                    problem += call_of(function, called.removesuffix("()"), problem)
                raise WrongCallError(f"{called} {problem}") from None

        return call  # type: ignore[return-value]  # of the same signature

    return decorated


def answers_options(meant: Mapping[str, str]) -> Callable[[_Class], _Class]:
    """Decorate a class whose methods have other arguments than those of `DeltaTable`.

    Args:
        meant: argument in other libraries → what to use instead, for the errors of all methods.
    """

    def decorated(kind: _Class) -> _Class:
        for name, function in list(vars(kind).items()):
            called = f"{kind.__name__}()" if name == "__init__" else f"{kind.__name__}.{name}()"
            if name[0] == "_" and name != "__init__":
                continue
            if isinstance(function, FunctionType):
                setattr(kind, name, suggests_options(called, meant)(function))
            elif isinstance(function, classmethod):
                answering = suggests_options(called, meant)(function.__func__)
                setattr(kind, name, classmethod(answering))
        return kind

    return decorated


def check_passed_on(
    kind: type, function: Callable[..., Any], options: Mapping[str, Any], to: Callable[..., Any]
) -> None:
    """Raise for an option that a method would pass on to a function that does not have it.

    Args:
        kind: the class of the method.
        function: the method, which takes any options.
        options: the options that it passes on.
        to: the function of another library that gets them.

    Raises:
        WrongCallError: the function does not have one of the options.
    """
    own = signature(function).parameters
    known = {name: one for name, one in own.items() if one.kind is not one.VAR_KEYWORD}
    wrong = _unknown(kind, function, options, {**known, **signature(to).parameters})
    if wrong:
        raise WrongCallError(f"{kind.__name__}.{function.__name__}() {wrong}")


def _unknown(
    kind: type,
    function: Callable[..., Any],
    options: Mapping[str, Any],
    known: Mapping[str, Any] | None = None,
) -> str | None:
    """Return what is wrong with the first unknown argument, with a hint; None if all are known."""
    known = signature(function).parameters if known is None else known
    for name in options:
        if name not in known:
            hint = similar_argument(name, known)
            if other := _elsewhere(kind, function.__name__, name):
                hint = f": use {other}"
            of_reader = read_option(kind.__name__, function.__name__, name)
            if is_of_other_rows(kind.__name__):
                hint = of_reader or hint
            hint = hint or _hint_of(function.__name__, name, options[name], known) or of_reader
            hint = hint or _misspelled_elsewhere(kind, name) or known_arguments(known)
            return f"got an unexpected keyword argument {name!r}{hint}"
    return None


def _misspelled_elsewhere(kind: type, name: str) -> str:
    """Return what to use instead of a misspelled option of another library; empty if unknown."""
    from difflib import get_close_matches  # noqa: PLC0415  # only for errors

    names = [one for owner, one in _ELSEWHERE if owner == kind.__name__]
    close = get_close_matches(name, names, 1, _SIMILAR)
    return f": use {_ELSEWHERE[kind.__name__, close[0]]}" if close else ""


def _elsewhere(kind: type, method: str, name: str) -> str | None:
    """Return what has an option that a method lacks; None if there is no better answer."""
    of_method = kind.__name__ == "DeltaTable" and method != "__init__"
    if not of_method and (other := _ELSEWHERE.get((kind.__name__, name))):
        return other
    if other := _OF_METHODS.get((method, name)):
        return other
    if method in _READING and name in _MOMENTS:
        return "DeltaTable(location, version=…), or load_as_version(version)"
    return None


def _hint_of(method: str, name: str, value: object, known: Collection[str]) -> str:
    """Return what to write instead of an argument that is the name of a column or property."""
    match method:
        case "add_constraint":
            return f": pass a dictionary, {{{name!r}: {value!r}}}"
        case "delete":
            return (
                f': for a column, write a condition in SQL, as in predicate="{name} = …"'
                f"{known_arguments(known)}"
            )
        case "update":
            value = f"{value!r}" if isinstance(value, int | float) else "…"
            return f": for a column, write updates={{{name!r}: {value}}}{known_arguments(known)}"
        case "set_table_properties":
            key = name if "." in name else f"delta.{_of_property(name)}"
            text = str(value).lower() if isinstance(value, bool) else str(value)
            return f": pass a dictionary, {{{key!r}: {text!r}}}"
        case "to_pandas" | "to_polars" | "to_arrow" | "to_pyarrow_table" if name in _LIMITS:
            return ": use scan(limit=…)"
    return ""


def _of_property(name: str) -> str:
    """Return the name of a table property, such as `appendOnly` for `delta_append_only`."""
    first, *others = name.split("_")
    camel = first + "".join(one[:1].upper() + one[1:] for one in others)
    bare = camel.removeprefix("delta")
    return bare[:1].lower() + bare[1:]


def surplus(
    function: Callable[..., Any], args: Sequence[Any], *, has_self: bool = True
) -> str | None:
    """Return what is wrong with the number of positional arguments; None if it is right."""
    parameters = list(signature(function).parameters.values())[has_self:]
    positional = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
    if len(args) <= len(positional) or any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return None
    named = [f"{one.name}=…" for one in parameters if one.kind is one.KEYWORD_ONLY]
    hint = _INSTEAD.get(function.__name__) or (named and f"write the names: {', '.join(named)}")
    known = f" ({', '.join(positional)})" if positional else ""
    kind = "positional argument" if parameters else "argument"
    number = f"{len(positional) or 'no'} {kind}{'s' * (len(positional) != 1)}"
    return f"takes {number}{known}, found {len(args)}{f'; {hint}' if hint else ''}"
