"""The state of the log at one version, read on demand.

This module reads commits, newest first, then the checkpoint, and caches reconciled columns.
`Snapshot` is the public interface. `open_log` replaces damaged log files by other files.

Protocol: Action Reconciliation
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import pyarrow as pa

from deltalog._util.cached import cached_property
from deltalog._util.json import JsonObject
from deltalog._util.kernels import arrow, compute, numbered
from deltalog.errors import (
    DeltaError,
    InvalidMetadataError,
    InvalidProtocolError,
    MalformedLogError,
    NoMetadataError,
    NoProtocolError,
)
from deltalog.log.reader import (
    VERSION_COLUMN,
    CommitTable,
    concat_commits,
    find_protocol_and_metadata,
    naming_the_table,
    parse_commits,
    read_in_batches,
)
from deltalog.log.replay import Survivors, file_keys, not_mentioned, reconcile
from deltalog.protocol.actions.arrow import FILE_SCHEMA
from deltalog.protocol.actions.codec import (
    domain_from_json,
    high_water_mark_from_json,
    metadata_from_json,
    protocol_from_json,
    txn_from_json,
)
from deltalog.protocol.stats.schema import leaves_of_schema
from deltalog.storage.pool import read_ahead, while_waiting
from deltalog.storage.store import Store, is_local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from deltalog._util.paths import FileInfo
    from deltalog.log.checkpoints.reader import Checkpoint
    from deltalog.log.names import LogFile
    from deltalog.log.segment import LogSegment
    from deltalog.protocol.actions.model import (
        DomainMetadata,
        Metadata,
        Protocol,
        RowIdHighWaterMark,
        SetTransaction,
    )
    from deltalog.protocol.stats.parse import AddBatch, StatsLeaf

_Action = TypeVar("_Action")

_RETAINED_BYTES: Final = 64 << 20
_HEAD_BYTES: Final = 2048
# The maximum number of commits whose lines are parsed together. It limits the memory for the lines,
# which is much larger than that for the columns.
_PARSED_TOGETHER: Final = 500
KEY_COLUMNS: Final = ("path", "deletionVector")
_SMALL_KINDS: Final = ("txn", "domainMetadata", "rowIdHighWaterMark")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierCommits:
    """What an earlier version computed from its commits, which are the first ones of a later one.

    A version that adds one commit would otherwise compute it again for all commits since the
    checkpoint.

    Args:
        keys: the keys of its adds and of its removes, see `file_keys`.
        live_adds: row numbers of its adds that were live files, ascending.
        stats: the leaves of the statistics of these adds that were requested.
    """

    keys: tuple[pa.ChunkedArray[Any], pa.ChunkedArray[Any]]
    live_adds: pa.Array[Any]
    stats: Mapping[StatsLeaf, pa.ChunkedArray[Any]]


class LogState:
    """The actions of one version, read lazily.

    Results are cached, but not pickled. Threads may share a state.

    Args:
        store: the table's store.
        segment: the log files of the version.
        parsed: the actions of the segment's first commits, if they are already parsed.
        parsed_to: the last version in `parsed`.
        checkpoint: the segment's checkpoint with its cached columns, if it is already open.
        unreadable: name of an unusable checkpoint or compaction → reason.
        retained: path → bytes of the newest commits, without gaps, up to a total size.
        head: the first bytes of the version's commit, if they are known. They identify the commit.
        unchecked: the state of an earlier version whose totals were not yet compared with its
            checksum.
        earlier: results for the first commits in `parsed`.

    Attributes:
        pieces: cached result of `splits.live_pieces`.
        totals: number and total size of the live files, as computed before from other log files;
            see `totals.CountedState`.
    """

    def __init__(
        self,
        store: Store,
        segment: LogSegment,
        *,
        parsed: CommitTable | None = None,
        parsed_to: int = -1,
        checkpoint: Checkpoint | None = None,
        unreadable: Mapping[str, str] | None = None,
        retained: Mapping[str, bytes] | None = None,
        head: bytes | None = None,
        unchecked: LogState | None = None,
        earlier: EarlierCommits | None = None,
    ) -> None:
        self.store = store
        self.segment = segment
        self.unreadable: Mapping[str, str] = unreadable or {}
        self._parsed = parsed
        self._parsed_to = parsed_to
        self._retained = dict(retained or {})
        self._free_bytes = _RETAINED_BYTES
        self.head = head
        self.pieces: tuple[Any, ...] | None = None
        self.totals: tuple[int, int] | None = None
        self._unchecked = self if segment.checksum and segment.has_shortcuts else unchecked
        self._live: dict[str, pa.ChunkedArray[Any]] = {}
        self._earlier = earlier
        self._commit_stats: dict[StatsLeaf, pa.ChunkedArray[Any]] = {}
        self._live_stats: dict[StatsLeaf, pa.ChunkedArray[Any]] = {}
        # The columns of `_live_stats` as nested tables, which share the memory of the values.
        self._nested_stats: dict[tuple[StatsLeaf, ...], pa.Table] = {}
        if checkpoint is None and segment.checkpoint is not None:
            # Import the reader only for tables with a checkpoint.
            from deltalog.log.checkpoints.reader import Checkpoint  # noqa: PLC0415

            checkpoint = Checkpoint(store, segment.checkpoint)
        self.checkpoint = checkpoint

    def read_protocol_and_metadata(self) -> tuple[Protocol, Metadata]:
        """Read the newest protocol and metadata.

        Raises:
            NoProtocolError, NoMetadataError: the log contains no protocol or no metadata.
            InvalidProtocolError, InvalidMetadataError: the newest protocol or metadata is invalid.

        Cost: reads commits, newest first, until both are found; otherwise also a few small leaves
        of the checkpoint. On a remote store, the newest commits and the checkpoint are read at the
        same time. The cost does not depend on the number of files.
        """
        protocol: JsonObject | None = None
        metadata: JsonObject | None = None
        batches = read_in_batches(self.store, self._unparsed_newest_first())
        for batch in chain(self._first_beside_checkpoint(batches), batches):
            for file, data in batch:
                self._retain(file, data)
                if protocol is None or metadata is None:
                    with naming_the_table(self.store):
                        found = find_protocol_and_metadata(file.end_version or file.version, data)
                    protocol, metadata = protocol or found[0], metadata or found[1]
            if protocol is not None and metadata is not None:
                break
        if self.checkpoint is not None and (protocol is None or metadata is None):
            rows = self.checkpoint.values(["protocol", "metaData"])
            where = self.checkpoint.files.name
            for row in rows["protocol"] if protocol is None else ():
                protocol = JsonObject(row, f"{where}: protocol", InvalidProtocolError)
            for row in rows["metaData"] if metadata is None else ():
                metadata = JsonObject(row, f"{where}: metaData", InvalidMetadataError)
        if protocol is None or metadata is None:
            raise self._lacking(NoProtocolError if protocol is None else NoMetadataError)
        return protocol_from_json(protocol), metadata_from_json(metadata)

    def _lacking(self, kind: type[NoProtocolError | NoMetadataError]) -> MalformedLogError:
        """Return the error for a log without an action; raise if the JSON of a commit is invalid.

        Cost: reads every commit.
        """
        _ = self.commits  # the missing action may be the invalid one
        action = "protocol" if kind is NoProtocolError else "metaData"
        what = f"version {self.segment.version} of {self.store.root}"
        text = f"cannot open {what}: there is no {action} action in its log"
        if self.checkpoint is not None:
            name = self.checkpoint.files.name
            return kind(f"{text}; restore the checkpoint {name} from a backup")
        first = next(reversed(self._unparsed_newest_first()), None)
        if first is None:
            return kind(text)
        empty = "" if first.info.size_bytes else ", which is empty"
        return kind(f"{text}; restore the first commit, {first.info.path}{empty}, from a backup")

    @cached_property
    def commits(self) -> CommitTable:
        """The actions of every commit after the checkpoint, oldest first.

        Cost: one request for each commit that is not yet in memory.
        """
        files = list(reversed(self._unparsed_newest_first()))
        retained = self._retained  # contents of the newest commits
        older = [file for file in files if file.info.path not in retained]
        tables = [] if self._parsed is None else [self._parsed]
        newer = [(file, retained[file.info.path]) for file in files[len(older) :]]
        groups = [newer[n : n + _PARSED_TOGETHER] for n in range(0, len(newer), _PARSED_TOGETHER)]
        parsed: Any = map if len(groups) <= 1 else partial(read_ahead, depth=1)
        with naming_the_table(self.store):
            tables += [parse_commits(batch) for batch in read_in_batches(self.store, older)]
            tables += parsed(parse_commits, groups)
        self._retained = {}
        return concat_commits(tables)

    @property
    def holds_columns(self) -> bool:
        """Whether columns of the checkpoint are cached; later versions can reuse them."""
        return self.checkpoint is not None and self.checkpoint.holds_columns

    def extended(self, commits: Sequence[LogFile], checksum: FileInfo | None) -> LogState:
        """Return the state after more commits. It reuses the cache of this state.

        Args:
            commits: the commits directly after this version, ascending.
            checksum: the version checksum file of the last commit; None without a checksum.
        """
        segment = replace(
            self.segment,
            version=commits[-1].version,
            commits=(*self.segment.commits, *commits),
            target_commit=commits[-1].info,
            checksum=checksum,
        )
        newer: list[CommitTable] = []
        head = b""
        with naming_the_table(self.store):
            for batch in read_in_batches(self.store, commits):
                newer.append(parse_commits(batch))
                head = batch[-1][1][:_HEAD_BYTES]
        return LogState(
            self.store,
            segment,
            parsed=concat_commits([self.commits, *newer]),
            parsed_to=segment.version,
            checkpoint=self.checkpoint,
            unreadable=self.unreadable,
            head=head,
            unchecked=self._unchecked,
            earlier=self._for_later(),
        )

    def committed(self, commits: Sequence[tuple[LogFile, bytes]]) -> LogState:
        """Return the state after commits whose bytes are in memory. They are parsed on demand.

        Args:
            commits: the files and bytes of the commits directly after this version, ascending.
        """
        files = [file for file, _ in commits]
        segment = replace(
            self.segment,
            version=files[-1].version,
            commits=(*self.segment.commits, *files),
            target_commit=files[-1].info,
            checksum=None,
        )
        newer = {file.info.path: data for file, data in commits}
        if sum(map(len, self._retained.values())) > _RETAINED_BYTES:
            _ = self.commits  # convert lines to columns, which need less memory
        is_parsed = "commits" in self.__dict__
        return LogState(
            self.store,
            segment,
            parsed=self.commits if is_parsed else self._parsed,
            parsed_to=self.segment.version if is_parsed else self._parsed_to,
            checkpoint=self.checkpoint,
            unreadable=self.unreadable,
            retained=newer if is_parsed else self._retained | newer,
            head=commits[-1][1][:_HEAD_BYTES],
            unchecked=self._unchecked,
            earlier=self._for_later(),
        )

    def _for_later(self) -> EarlierCommits | None:
        """Return the results that states of later versions reuse; computes nothing."""
        if "survivors" not in self.__dict__:
            return self._earlier
        return EarlierCommits(
            keys=self._commit_keys, live_adds=self.survivors.adds, stats=dict(self._commit_stats)
        )

    def newest_in_commits(self, after: int) -> tuple[Protocol | None, Metadata | None]:
        """Return the newest protocol and metadata in the commits after a version, or None."""
        protocols = [node for version, node in self.commits.protocol_nodes if version > after]
        metadatas = [node for version, node in self.commits.metadata_nodes if version > after]
        return (
            protocol_from_json(protocols[-1]) if protocols else None,
            metadata_from_json(metadatas[-1]) if metadatas else None,
        )

    def files(self, names: Sequence[str]) -> pa.Table:
        """Return columns of the live files: first the files of the checkpoint, then of the commits.

        Every call returns the same rows in the same order.

        Args:
            names: names of columns of `FILE_SCHEMA`.

        Cost: reads the leaves that are not cached. Also reads the paths in the checkpoint, if later
        commits add or remove files. With a checkpoint or a compaction, the first call also has the
        cost of `check_totals`.
        """
        if self._unchecked is not None:
            from deltalog.log.snapshot.totals import check_totals  # noqa: PLC0415  # rarely needed

            check_totals(self._unchecked, names)
            self._unchecked = None
        live = self._live  # another thread may replace `_live`
        missing = [name for name in names if name not in live]
        if missing:
            tables = [self.live_commit_adds.select(missing)]
            if self.checkpoint is not None:
                needed = [*missing, *(KEY_COLUMNS if len(self.survivors.keys) else ())]
                # Read all columns together into the cache, which the following calls use.
                self.checkpoint.columns("add", list(dict.fromkeys(needed)))
                tables.insert(0, self.keep(self.checkpoint.columns("add", missing)))
            table = pa.concat_tables(tables)
            live.update({name: table.column(name) for name in missing})
        if not names:
            return self.files(["size"]).select([])
        return pa.Table.from_arrays([live[name] for name in names], list(names))

    def stats(self, schema: pa.Schema) -> pa.Table:
        """Return statistics of the live files, with the rows of `files` in the same order.

        Args:
            schema: the leaves to return, nested as in `deltalog.protocol.stats.stats_schema`.
        """
        from deltalog.protocol.stats.parse import nest  # noqa: PLC0415  # needed only for statistics

        leaves = leaves_of_schema(schema)
        if not leaves:
            return self.files([])
        live = self._live_stats  # another thread may replace `_live_stats`
        missing = [leaf for leaf in leaves if leaf not in live]
        if missing:
            columns = self._leaves_of_commits(missing)
            if self.checkpoint is not None:
                older = self.keep(numbered(self.checkpoint.stats(missing)))
                columns = pa.concat_tables([older, numbered(columns)]).columns
            live.update(zip(missing, columns, strict=True))
        if (nested := self._nested_stats.get(asked := tuple(leaves))) is None:
            nested = nest([(leaf[0], live[leaf]) for leaf in leaves])
            self._nested_stats = {asked: nested, **dict(islice(self._nested_stats.items(), 15))}
        return nested

    def _leaves_of_commits(self, leaves: Sequence[StatsLeaf]) -> list[pa.ChunkedArray[Any]]:
        """Return leaves of the statistics of `live_commit_adds`; parse only what is new."""
        from deltalog.protocol.stats.parse import parsed_leaves  # noqa: PLC0415  # needed only for statistics

        stored, earlier = self.live_commit_adds.column("stats"), self._earlier
        if earlier is None or not all(leaf in earlier.stats for leaf in leaves):
            columns = parsed_leaves(stored, leaves)
        else:
            places = compute.index_in(self.survivors.adds, value_set=earlier.live_adds)
            is_new = compute.is_null(places)
            added = compute.cumulative_sum(is_new.cast(pa.int32()))
            last = pa.scalar(len(earlier.live_adds) - 1, pa.int32())
            rows = compute.coalesce(places, compute.add(added, last))
            parsed = parsed_leaves(stored.filter(is_new), leaves)
            columns = [
                arrow.chunked_array(
                    [*earlier.stats[leaf].chunks, *column.chunks], type=leaf[1]
                ).take(rows)
                for leaf, column in zip(leaves, parsed, strict=True)
            ]
        self._commit_stats.update(zip(leaves, columns, strict=True))
        return columns

    @cached_property
    def num_files(self) -> int:
        """The number of live logical files."""
        return self.files(["size"]).num_rows

    @cached_property
    def live_commit_adds(self) -> pa.Table:
        """The live adds of `commits`."""
        return self.commits.adds.take(self.survivors.adds)

    def iter_live_adds(self, leaves: Sequence[StatsLeaf], *, batch_rows: int) -> Iterator[AddBatch]:
        """Yield batches of the live files with all members, in the order of `files`.

        Args:
            leaves: the leaves of the statistics.
            batch_rows: maximum number of rows in a batch.

        Cost: reads the leaves of the checkpoint that are not cached, a few batches at a time. Also
        reads the paths in the checkpoint, if later commits add or remove files.
        """
        if self.checkpoint is not None:
            kept, row = self._kept_adds, 0
            for batch in self.checkpoint.iter_adds(leaves, batch_rows=batch_rows):
                yield batch if kept is None else batch.filter(kept.slice(row, batch.num_rows))
                row += batch.num_rows
        from deltalog.protocol.stats.parse import unread_adds  # noqa: PLC0415  # needed only for checkpoints

        newer = self.live_commit_adds.select(FILE_SCHEMA.names)
        for start in range(0, newer.num_rows, batch_rows):
            yield unread_adds(newer.slice(start, batch_rows), leaves)

    def keep(self, adds: pa.Table) -> pa.Table:
        """Return the adds of the checkpoint without files that later commits add or remove."""
        return adds if self._kept_adds is None else adds.filter(self._kept_adds)

    def tombstones(self, names: Sequence[str]) -> pa.Table:
        """Return columns of the tombstones, including expired ones.

        Args:
            names: names of columns of `REMOVE_SCHEMA`.
        """
        tables = [self.commits.removes.take(self.survivors.removes).select(names)]
        if self.checkpoint is not None:
            removes = self.checkpoint.columns("remove", names)
            kept = self._kept("remove")
            tables.insert(0, removes if kept is None else removes.filter(kept))
        return pa.concat_tables(tables)

    @cached_property
    def app_transactions(self) -> Mapping[str, SetTransaction]:
        """The latest `txn` of each application, including expired ones."""
        found = {txn.app_id: txn for txn in self._small("txn", txn_from_json)}
        found.update({txn.app_id: txn for _, txn in self.commits.txns})
        return found

    @cached_property
    def domains(self) -> Mapping[str, DomainMetadata]:
        """The latest `domainMetadata` of each domain, without removed domains."""
        found = {
            domain.domain: domain for domain in self._small("domainMetadata", domain_from_json)
        }
        found.update({domain.domain: domain for _, domain in self.commits.domains})
        return {name: domain for name, domain in found.items() if not domain.removed}

    @cached_property
    def draft_high_water_mark(self) -> RowIdHighWaterMark | None:
        """The latest `rowIdHighWaterMark` action, which only the protocol's draft has, or None."""
        marks = [mark for _, mark in self.commits.high_water_marks]
        if not marks:
            marks = self._small("rowIdHighWaterMark", high_water_mark_from_json)
        return marks[-1] if marks else None

    def _small(self, kind: str, parse: Callable[[JsonObject], _Action]) -> list[_Action]:
        if self.checkpoint is None:
            return []
        where = f"{self.checkpoint.files.name}: {kind}"
        rows = self.checkpoint.values(_SMALL_KINDS)[kind]
        return [parse(JsonObject(row, where)) for row in rows]

    @cached_property
    def survivors(self) -> Survivors:
        """The reconciled actions of `commits`, and the keys of all files in these actions."""
        adds, removes = self.commits.adds, self.commits.removes
        add_keys, remove_keys = self._commit_keys
        return reconcile(
            add_keys, adds.column(VERSION_COLUMN), remove_keys, removes.column(VERSION_COLUMN)
        )

    @cached_property
    def _commit_keys(self) -> tuple[pa.ChunkedArray[Any], pa.ChunkedArray[Any]]:
        """The keys of all adds and of all removes of `commits`."""
        adds, removes = self.commits.adds, self.commits.removes
        if self._earlier is None:
            return self._keys(adds), self._keys(removes)
        known = self._earlier.keys
        return self._with_keys(known[0], adds), self._with_keys(known[1], removes)

    def _with_keys(self, known: pa.ChunkedArray[Any], files: pa.Table) -> pa.ChunkedArray[Any]:
        newer = self._keys(files.slice(len(known)))
        return pa.chunked_array([*known.chunks, *newer.chunks], pa.string())

    @property
    def names_files(self) -> bool:
        """Whether `commits` contain `add` or `remove` actions."""
        return len(self.survivors.keys) > 0

    def _keys(self, files: pa.Table) -> pa.ChunkedArray[pa.StringScalar]:
        paths = cast("pa.ChunkedArray[pa.StringScalar]", files.column("path"))
        keys = file_keys(paths, files.column("deletionVector"), self.store.root)
        return cast("pa.ChunkedArray[pa.StringScalar]", keys)

    @cached_property
    def _kept_adds(self) -> pa.ChunkedArray[pa.BooleanScalar] | None:
        return self._kept("add")

    def _kept(self, kind: str) -> pa.ChunkedArray[pa.BooleanScalar] | None:
        """Return for each action of the checkpoint whether no later commit replaces it.

        None means that no action is replaced.
        """
        if self.checkpoint is None or not self.names_files:
            return None
        keys = self._keys(self.checkpoint.columns(kind, KEY_COLUMNS))
        kept: Any = not_mentioned(keys, self.survivors.keys)
        return None if compute.all(kept).as_py() is not False else kept

    def _first_beside_checkpoint(
        self, batches: Iterator[list[tuple[LogFile, bytes]]]
    ) -> list[list[tuple[LogFile, bytes]]]:
        """Read the first batch of commits and, at the same time, the checkpoint's small actions."""
        checkpoint = self.checkpoint
        if checkpoint is None or is_local(self.store):
            return []

        def ask() -> None:
            with suppress(DeltaError):  # if the values are needed, a later read raises the error
                checkpoint.values(["protocol", "metaData"])

        first = while_waiting(lambda: next(batches, None), ask)
        return [] if first is None else [first]

    def _unparsed_newest_first(self) -> list[LogFile]:
        return [
            file for file in self.segment.files_newest_first() if file.version > self._parsed_to
        ]

    def _retain(self, file: LogFile, data: bytes) -> None:
        if file.info == self.segment.target_commit:
            self.head = data[:_HEAD_BYTES]
        self._free_bytes -= len(data)
        if self._free_bytes >= 0:
            self._retained[file.info.path] = data
