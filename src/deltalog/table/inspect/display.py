"""Output for people: the notebook card of a table, `detail()`, and results of operations.

This module defines wording and layout. The facts come from a snapshot.

Protocol: none
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakValueDictionary

import pyarrow as pa

from deltalog._util.kernels import exact_sum
from deltalog.errors import DeltaError
from deltalog.protocol.features import logical_clustering_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from deltalog._util.cards import CardPiece
    from deltalog.log.snapshot import Snapshot
    from deltalog.schema import Field

ResultT = TypeVar("ResultT")

_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
_MAX_COLUMNS: Final = 20
_MOST_SHOWN: Final = 20


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

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a recipe for pickle that preserves the title."""
        return partial(ShownFacts, title=self.title), (dict(self),)

    def _repr_html_(self) -> str:
        """Return the notebook card."""
        from deltalog._util import cards  # only notebooks need it

        return cards.card(self.title, _grid_of(self))


def as_facts(result: ResultT, title: str) -> ResultT:
    """Return the result of an operation; if it is a dictionary, add a notebook card."""
    if isinstance(result, dict):
        return cast("ResultT", ShownFacts(result, title=title))
    return result


def _grid_of(facts: Mapping[str, Any]) -> CardPiece:
    from deltalog._util import cards  # only notebooks need it

    return cards.grid((name, _value(name, value)) for name, value in facts.items())


def _value(name: str, value: Any) -> object:
    """Format a value: a size with its unit, a number with grouped digits, rows as a table."""
    from deltalog._util import cards  # only notebooks need it

    if isinstance(value, dict):
        return _grid_of(value)
    if isinstance(value, pa.Table):
        from deltalog.schema.check import readable_tuples  # only notebooks need it

        shown = cards.grid(readable_tuples(value.slice(0, _MOST_SHOWN)), value.column_names)
        return cards.folding(f"{value.num_rows:,} rows", shown)
    if isinstance(value, list | tuple):
        more = f", … {len(value) - _MOST_SHOWN} more" if len(value) > _MOST_SHOWN else ""
        return ", ".join(map(str, value[:_MOST_SHOWN])) + more
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return _number(name, value)


def _number(name: str, value: float) -> str:
    words = name.lower()
    if words.endswith(("_ms", "timems")):
        return f"{value / 1000:,.3g} s" if value >= 1000 else f"{value:g} ms"
    if words in {"createdat", "lastmodified"}:
        return _moment(int(value))
    if any(word in words for word in ("bytes", "size")) and isinstance(value, int):
        return readable_size(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


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
        "properties": dict(metadata.configuration),
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


def readable_size(size_bytes: int) -> str:
    """Return a size with its unit, such as `12.3 MiB`."""
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size_bytes} bytes" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


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
    shown = cards.folding(cards.counted(len(schema), "column"), cards.grid(columns))
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
        "location": snapshot.store.root,
        "version": f"{snapshot.version} ({_moment(snapshot.commit_timestamp_ms)})",
        "rows": _num_rows(snapshot),
        "files": f"{snapshot.num_files:,}, {readable_size(total_size_bytes(snapshot))}",
        "partitioned by": ", ".join(configuration.partition_columns),
        "clustered by": ", ".join(_clustering(snapshot)),
        "protocol": f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}",
        "features": ", ".join(sorted(configuration.features.values())),
        "properties": ", ".join(f"{k}={v}" for k, v in snapshot.metadata.configuration.items()),
    }
    return {name: text for name, text in facts.items() if text}


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
