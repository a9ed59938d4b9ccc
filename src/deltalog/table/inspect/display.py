"""Output for people: the notebook card of a table, `detail()`, and results of operations.

This module defines wording and layout. The facts come from a snapshot.

Protocol: none
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast
from weakref import WeakValueDictionary

import pyarrow as pa

from deltalog._util.call_errors import UnknownNameError, no_item
from deltalog._util.kernels import exact_sum
from deltalog._util.readable import amount, counted, details, outcome, readable_size, repaired
from deltalog._util.similar_names import no_key
from deltalog.errors import DeltaError
from deltalog.log.branches import branch_of, named_root
from deltalog.protocol.features import logical_clustering_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from deltalog._util.cards import CardPiece
    from deltalog.log.snapshot import Snapshot
    from deltalog.schema import Field

ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT")

_MAX_COLUMNS: Final = 20
_MOST_SHOWN: Final = 20


_OF_TABLES: Final = frozenset(
    {"version", "count", "history", "schema", "metadata", "detail", "head", "scan", "files"}
    | {"to_pandas", "to_polars", "to_arrow", "to_pyarrow_table", "to_duckdb", "sql"}
    | {"delete", "update", "merge", "upsert", "optimize", "vacuum", "alter", "restore"}
)
"""Names that callers look for if they take the result of an operation for the table."""


class ShownFacts(dict[str, Any]):
    """A dictionary with a notebook card: the result of an operation, or a table's details.

    Args:
        facts: names and values.
        title: title of the card.
    """

    def __init__(
        self, facts: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), /, *, title: str = ""
    ) -> None:
        super().__init__(facts)
        self.title = title

    if not TYPE_CHECKING:  # type checkers must report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that says how to get a value."""
            __tracebackhide__ = True  # IPython does not show this frame
            close = [name] if name in self else get_close_matches(name, self, 1)
            hint = f"use [{close[0]!r}]" if close else f"its keys are {', '.join(map(repr, self))}"
            if not close and name in _OF_TABLES:
                hint = f"use {name} of the table itself, which shows the new version"
            raise UnknownNameError(f"this dictionary has no attribute {name!r}: {hint}")

    def __missing__(self, key: object) -> NoReturn:
        """Raise an error that names the keys."""
        __tracebackhide__ = True  # IPython does not show this frame
        raise no_key(key, self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a recipe for pickle that preserves the title."""
        return partial(ShownFacts, title=self.title), (dict(self),)

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        from deltalog._util import cards  # only notebooks need it

        facts, title = dict(self), self.title
        pieces = []
        if isinstance(facts.get("files"), pa.Table):
            title = f"{title}, dry run"
            pieces = [cards.grid([("files", _value("files", facts.pop("files")))])]
        sentence = repaired(facts) if "files_removed" in facts else outcome(facts)
        if not sentence:
            return cards.card(self.title, _grid_of(self))
        return cards.card(f"{title}: {sentence}", cards.details_of(details(facts)), *pieces)


class ShownList(list[ItemT]):
    """A list with a notebook card.

    Args:
        items: the items.
        title: title of the card.
        names: the names of the columns of the card; without any, it has no table.
        row_of: returns the cells of an item.
    """

    def __init__(
        self,
        items: Iterable[ItemT],
        /,
        *,
        title: str,
        names: Sequence[str] = (),
        row_of: Callable[[ItemT], Sequence[object]] = lambda item: (item,),
    ) -> None:
        super().__init__(items)
        self._title, self._names, self._row_of = title, names, row_of

    if not TYPE_CHECKING:  # type checkers must report unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            """Raise an error that says to use an item, if the items have such a key."""
            __tracebackhide__ = True  # IPython does not show this frame
            is_key = bool(self) and isinstance(self[0], dict) and name in self[0]
            hint = f": use a dictionary of it: [0][{name!r}]" if is_key else ""
            raise UnknownNameError(f"a list has no attribute {name!r}{hint}")

        def __getitem__(self, key: Any) -> Any:
            """Return an item or a slice; the error for other numbers says how many there are."""
            __tracebackhide__ = True  # IPython does not show this frame
            try:
                return super().__getitem__(key)
            except IndexError:
                raise no_item(key, len(self)) from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a recipe for pickle, which omits the card."""
        return list, (list(self),)

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        from deltalog._util import cards  # only notebooks need it

        if not self:
            return cards.card(self._title)
        rows = map(self._row_of, self[:_MOST_SHOWN])
        pieces = [cards.grid(rows, self._names, omits_empty=bool(self._names))]
        if len(self) > _MOST_SHOWN:
            pieces.append(cards.plain(f"… {len(self) - _MOST_SHOWN:,} more"))
        return cards.card(self._title, *pieces)


class ShownText(str):
    """A string of several lines; its `repr` is the string without quotes, and it has a card."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the string without quotes, so that its lines are readable."""
        return str(self)

    def __str__(self) -> str:
        """Return the string as a plain `str`."""
        return str.__str__(self)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Return a recipe for pickle: a plain string."""
        return str, (str(self),)

    def _repr_html_(self) -> str:
        """Return the notebook card: the first line is the title."""
        from deltalog._util import cards  # only notebooks need it

        title, _, rest = str(self).partition("\n")
        return cards.card(title, cards.plain(rest))


def as_facts(result: ResultT, title: str) -> ResultT:
    """Return the result of an operation; if it is a dictionary, add a notebook card."""
    if isinstance(result, dict):
        return cast("ResultT", ShownFacts(result, title=title))
    return result


def _grid_of(facts: Mapping[str, Any]) -> CardPiece:
    from deltalog._util import cards  # only notebooks need it

    return cards.grid(
        (name, _value(name, value))
        for name, value in facts.items()
        if value is not None and not (isinstance(value, str | list | dict) and not value)
    )


def _value(name: str, value: Any) -> object:
    """Format a value: a size with its unit, a number with grouped digits, rows as a table."""
    from deltalog._util import cards  # only notebooks need it

    if isinstance(value, dict):
        return _grid_of(value)
    if isinstance(value, pa.Table):
        from deltalog.schema.check import readable_tuples  # only notebooks need it

        shown = cards.grid(readable_tuples(value.slice(0, _MOST_SHOWN)), value.column_names)
        return cards.folding(counted(value.num_rows, "row"), shown)
    if isinstance(value, list | tuple):
        more = f", … {len(value) - _MOST_SHOWN} more" if len(value) > _MOST_SHOWN else ""
        return ", ".join(map(str, value[:_MOST_SHOWN])) + more
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return _number(name, value)


def _number(name: str, value: float) -> str:
    if name.lower() in {"createdat", "lastmodified", "timestamp"}:
        return _moment(int(value))
    return amount(name, value)


def describe(snapshot: Snapshot) -> ShownFacts:
    """Return the details of Spark's `DESCRIBE DETAIL`, under the same keys.

    Cost: reads the sizes of all files from the log.
    """
    metadata, protocol = snapshot.metadata, snapshot.protocol
    configuration = snapshot.configuration
    facts = {
        "format": "delta",
        "id": metadata.id,
        "name": metadata.name,
        "description": metadata.description,
        "location": snapshot.store.root,
        "createdAt": metadata.created_time_ms,
        "lastModified": snapshot.commit_timestamp_ms,
        "version": snapshot.version,
        "partitionColumns": list(configuration.partition_columns),
        "clusteringColumns": _clustering(snapshot),
        "numFiles": snapshot.num_files,
        "sizeInBytes": total_size_bytes(snapshot),
        "properties": dict(sorted(metadata.configuration.items())),
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
        "tableFeatures": sorted(configuration.features.values()),
    }
    return ShownFacts(facts, title=metadata.name or "Delta table")


def _clustering(snapshot: Snapshot) -> list[str]:
    """Return the clustering columns by their logical names."""
    configuration = snapshot.configuration
    paths = logical_clustering_columns(
        snapshot.domain_metadata, configuration.schema, configuration.column_mapping_mode
    )
    return [".".join(path) for path in paths]


def total_size_bytes(snapshot: Snapshot) -> int:
    """Return the total size of the live data files."""
    return exact_sum(snapshot.files(["size"])["size"])


def card(snapshot: Snapshot) -> str:
    """Return a small HTML card: location, version, size, protocol, columns.

    Cost: reads size and number of rows of all files from the log, and the first rows of one file.
    """
    from deltalog._util import cards  # only notebooks need it

    metadata = snapshot.metadata
    schema = snapshot.configuration.schema
    columns = [_column(field, snapshot) for field in list(schema)[:_MAX_COLUMNS]]
    if len(schema) > _MAX_COLUMNS:
        columns.append((f"… {len(schema) - _MAX_COLUMNS} more", "", "", ""))
    shown = cards.folding(counted(len(schema), "column"), cards.grid(columns))
    facts = cards.grid(_facts(snapshot).items())
    return cards.card(metadata.name or "Delta table", facts, shown, *_some_rows(snapshot))


def _some_rows(snapshot: Snapshot) -> Iterator[CardPiece]:
    """Yield a few rows of the first columns, or the reason why rows cannot be shown."""
    from deltalog.data.scan.plan import PREVIEW_ROWS, plan_scan, some_rows

    names = snapshot.configuration.schema.names[:_MAX_COLUMNS]

    def batches() -> Iterator[pa.RecordBatch]:
        yield from plan_scan(snapshot, columns=names, limit=PREVIEW_ROWS).to_batches()

    yield from some_rows(batches)


# --- Cards of Arrow tables, which have none of their own


_shown_tables: Final[WeakValueDictionary[int, pa.Table]] = WeakValueDictionary()


def with_card(rows: pa.Table) -> pa.Table:
    """Return an Arrow table; if IPython runs, it will show this table as a card."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None:
        _shown_tables[id(rows)] = rows
        formatter = shell.display_formatter.formatters["text/html"]
        # Leave the formatter of another library in place.
        if pa.Table not in formatter.type_printers:
            formatter.for_type(pa.Table, card_of_rows)
    return rows


def card_of_rows(rows: pa.Table) -> str | None:
    """Return the notebook card of an Arrow table from `with_card`; of others, None: no card."""
    if _shown_tables.get(id(rows)) is not rows:
        return None
    from deltalog._util import cards
    from deltalog.data.scan.plan import grid_of_rows

    return cards.card("", grid_of_rows(rows))


def _facts(snapshot: Snapshot) -> dict[str, str]:
    protocol, configuration = snapshot.protocol, snapshot.configuration
    facts = {
        "description": snapshot.metadata.description or "",
        "location": named_root(snapshot.store),
        "branch": _branch(snapshot),
        "version": f"{snapshot.version} ({_moment(snapshot.commit_timestamp_ms)})",
        "rows": _num_rows(snapshot),
        "files": f"{snapshot.num_files:,}, {readable_size(total_size_bytes(snapshot))}",
        "partitioned by": ", ".join(configuration.partition_columns),
        "clustered by": ", ".join(_clustering(snapshot)),
        "protocol": f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}",
        "features": ", ".join(sorted(configuration.features.values())),
        "properties": ", ".join(
            f"{k}={v}" for k, v in sorted(snapshot.metadata.configuration.items())
        ),
    }
    return {name: text for name, text in facts.items() if text}


def _branch(snapshot: Snapshot) -> str:
    """Return the name of a branch, the version at which it starts, and its end; "" for main."""
    found = branch_of(snapshot.store)
    if found is None:
        return ""
    expiry = "" if found.expires_ms is None else f"; expires {_moment(found.expires_ms)}"
    return f"{found.name}, from version {found.base_version} of main{expiry}"


def _num_rows(snapshot: Snapshot) -> str:
    """Return the number of rows from the log; "" if the log does not contain it exactly."""
    from deltalog.data.scan.plan import check_rows_readable  # only notebooks need it
    from deltalog.data.scan.prune import prune  # only notebooks need it

    try:
        check_rows_readable(snapshot)
        found = prune(snapshot, None).num_live_rows()
    except DeltaError:  # show the card without this number
        return ""
    return "" if found is None else f"{found:,}"


def _column(field: Field, snapshot: Snapshot) -> tuple[str, str, str, str]:
    is_key = field.name in snapshot.configuration.partition_columns
    return (
        field.name,
        str(field.type),
        "partition" if is_key else "" if field.nullable else "not null",
        str(field.metadata.get("comment", "")),
    )


def _moment(time_ms: int) -> str:
    from deltalog.schema.check import readable_moment  # only notebooks need it

    return readable_moment(time_ms)
