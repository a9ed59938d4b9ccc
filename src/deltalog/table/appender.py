"""Append or upsert rows of many threads and tasks in few versions: one per window, not per caller.

This module collects rows in a window, limits the number of queued rows, and returns a result to
each caller. `operations.write` appends the rows of a window, and `operations.merge` upserts them.

Protocol: none
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import pyarrow as pa

from deltalog._util import cards
from deltalog._util.clock import Stopwatch
from deltalog._util.kernels import TRUE, compute
from deltalog._util.readable import counted
from deltalog._util.similar_names import SimilarNames
from deltalog.data.write.same_keys import with_same_keys
from deltalog.data.write.source import open_batches, warn_if_read_before
from deltalog.data.write.typed_values import with_typed_values
from deltalog.errors import CommitFailedError, InternalError, InvalidInputError, StorageError
from deltalog.expressions.comparing import keys as collation_keys
from deltalog.operations.changes.file_options import FileOptions
from deltalog.operations.changes.merge.pairs import KeyIndex
from deltalog.operations.merge import upsert
from deltalog.operations.write import AppendParts
from deltalog.schema import Field, find_field
from deltalog.schema.arrow import to_arrow_type
from deltalog.schema.collations import own_collation
from deltalog.schema.columns import naming_the_attempt
from deltalog.schema.types import STRING
from deltalog.transaction.properties import USUAL, CommitOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from contextlib import AbstractContextManager

    from deltalog.data.write.options import WriterProperties
    from deltalog.data.write.source import Rows
    from deltalog.table.creating import LatestTable

logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendWindow:
    """Limits that define when queued rows are committed as a version.

    Args:
        wait_ms: how long the first rows of a version wait for further rows. With 0, they do not
            wait, but rows that arrive during a commit still share the next version.
        most_rows: maximum number of rows in a version. The rows of one call are never split, so
            they may exceed it.
        most_bytes: maximum size of the rows of a version in memory, in bytes. The rows of one call
            may exceed it.
        waiting_bytes: maximum size of uncommitted rows, in bytes. At this limit, callers block.
    """

    wait_ms: float = 2.0
    most_rows: int = 1_000_000
    most_bytes: int = 128 * 1024 * 1024
    waiting_bytes: int = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        """Raise InvalidInputError for numbers out of range."""
        if not self.wait_ms >= 0:
            raise InvalidInputError(
                f"wait_ms: expected a number of milliseconds, 0 or more, found {self.wait_ms!r}"
            )
        for name in ("most_rows", "most_bytes", "waiting_bytes"):
            number = getattr(self, name)
            if not isinstance(number, int) or number < 1:
                raise InvalidInputError(f"{name}: expected a number above 0, found {number!r}")


class _UnreadErrors:
    """The errors of rows whose callers did not keep the future, for the next flush or close.

    The garbage collector may call `add` in any thread and at any point, so it must not take a lock.
    """

    def __init__(self) -> None:
        self._errors: deque[BaseException] = deque()
        self._is_closed = False

    def add(self, error: BaseException) -> None:
        """Keep an error for `raise_one`, or log it if the appender is closed."""
        if self._is_closed:
            self._log(error)
        else:
            self._errors.append(error)

    def raise_one(self) -> None:
        """Raise an error, if there is one, and log the others."""
        one = self._errors.popleft() if self._errors else None
        self.log()
        if one is not None:
            raise one

    def log(self) -> None:
        """Log the kept errors."""
        while self._errors:
            self._log(self._errors.popleft())

    def close(self) -> None:
        """Log errors from now on, because nothing will raise them."""
        self._is_closed = True

    def _log(self, error: BaseException) -> None:
        logger.error("rows of an appender were not written: %s", error)


class _Answer(Future[int]):
    """The future of a caller; it reports an error that nobody reads.

    Args:
        unread: the errors of the appender's futures that nobody reads.
        table: the location of the table.
    """

    def __init__(self, unread: _UnreadErrors, table: str) -> None:
        super().__init__()
        self._unread = unread
        self._table = table
        self._is_read = False

    def __repr__(self) -> str:
        """Show the table, and the version or the error, or how to wait for it."""
        if self.cancelled():
            state = "cancelled"
        elif not self.done():
            state = "not committed yet; result() waits for the version"
        elif (error := super().exception()) is not None:
            state = f"failed with {type(error).__name__}; result() raises it"
        else:
            state = f"committed as version {super().result()}"
        return f"<rows for {self._table}: {state}>"

    def result(self, timeout: float | None = None) -> int:
        self._is_read = True
        return super().result(timeout)

    def __await__(self) -> Generator[Any, None, int]:
        """Wait in a coroutine; `append_async` does the same."""
        return asyncio.wrap_future(self).__await__()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._is_read = True
        return super().exception(timeout)

    def add_done_callback(self, fn: Callable[[Future[int]], object]) -> None:
        self._is_read = True
        super().add_done_callback(fn)

    def __del__(self) -> None:
        if self._is_read or not self.done() or self.cancelled():
            return
        if (error := super().exception()) is not None:
            self._unread.add(error)


@dataclass(slots=True, eq=False)
class _Request:
    """The rows of one caller."""

    rows: pa.Table
    answer: Future[int]
    admitted: Future[None] = field(default_factory=Future)
    waited: Stopwatch = field(default_factory=Stopwatch)
    num_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.num_bytes = self.rows.nbytes

    def take_back(self) -> None:
        """Withdraw the rows, unless their commit has begun, because the caller no longer waits."""
        self.admitted.cancel()
        self.answer.cancel()


_MEANT: Final = {
    **dict.fromkeys(("write", "add", "insert", "upsert", "send", "put"), "append(data)"),
    **dict.fromkeys(("commit", "wait"), "flush()"),
}
"""What to use instead of names of other libraries."""


class Appender(SimilarNames):
    """A context manager that appends rows of many threads and tasks in few versions.

    See `DeltaTable.appender`, which creates it. All methods are thread-safe.

    Args:
        table: the table, at the latest version.
        window: limits that define when rows are committed.
        writer_properties: Parquet options of new files.
        options: options of each commit.
        key: the columns that identify a row, if rows are upserted; empty if they are appended.

    Raises:
        InvalidInputError: the options contain an application transaction, but an appender makes
            several commits; or there is no such column.
    """

    _meant = _MEANT

    def __init__(
        self,
        table: LatestTable,
        window: AppendWindow,
        *,
        writer_properties: WriterProperties | None = None,
        options: CommitOptions = USUAL,
        key: Sequence[str] = (),
    ) -> None:
        if options.properties is not None and options.properties.app_transactions:
            raise InvalidInputError(
                f"cannot append to {table.snapshot.store.root}: an appender cannot record an "
                "application transaction, because it makes several commits; use write_deltalake "
                "or a transaction() instead"
            )
        self._table = table
        self._window = window
        self._file_options = FileOptions(writer_properties=writer_properties, casts=True)
        self._options = options
        schema = table.snapshot.configuration.schema
        self._key = tuple(find_field(schema, (name,)) for name in key)
        self._changed = threading.Condition()
        self._outside: deque[_Request] = deque()  # requests that wait for space in the queue
        self._inside: deque[_Request] = deque()  # requests in the queue
        self._committing: list[_Request] = []
        self._wanted: list[_Request] = []  # those of `_committing` that were not cancelled
        self._inside_rows = 0
        self._held_bytes = 0
        self._hurries = 0
        self._unread = _UnreadErrors()
        self._is_closed = False
        self._is_running = False
        self._pid = os.getpid()
        self._committer = ThreadPoolExecutor(1, thread_name_prefix="deltalog-append")
        self._committer_thread: int | None = None

    def __repr__(self) -> str:
        """Show the table, and how many rows wait."""
        state = "closed" if self._is_closed else f"{counted(self._inside_rows, 'row')} waiting"
        return f"{self._table!r}.appender(), {state}"

    def _repr_html_(self) -> str:
        """Return the notebook card: the state, and what each method does."""
        return cards.methods_of(repr(self), Appender)

    def append(self, data: Rows) -> Future[int]:
        """Queue rows, and return a future of the version that will contain them.

        Blocks while the queue is full. Cancelling the future before its version begins withdraws
        the rows.

        Args:
            data: rows of any type that `write_deltalake` accepts; they are read at once.

        Returns:
            A future. Its result is the version, after it was committed and the rows are durable.
            Its exception is `SchemaMismatchError` or `ConstraintViolationError` if these rows are
            invalid, or the error of the commit. After `CommitOutcomeUnknownError`, the rows may be
            in the table. If the future is dropped, the next `flush` or `close` raises the error.

        Raises:
            InvalidInputError: the data is of an unsupported type, or the appender is closed.
        """
        request = self._request(data)
        self._hand_over(request)
        try:
            request.admitted.result()
        except BaseException:
            request.take_back()
            raise
        return request.answer

    async def append_async(self, data: Rows) -> int:
        """Append rows, and return the version that contains them.

        Args:
            data: rows, as for `append`; they are read in the current thread.

        Raises:
            DeltaError: see `append`.
        """
        request = self._request(data)
        self._hand_over(request)
        try:
            await asyncio.wrap_future(request.admitted)
            return await asyncio.wrap_future(request.answer)
        except asyncio.CancelledError:
            request.take_back()
            raise

    def _request(self, data: object) -> _Request:
        answer = _Answer(self._unread, self._table.snapshot.store.root)
        return _Request(self._table_of(data), answer)

    def _table_of(self, data: object) -> pa.Table:
        """Copy all rows of `data`, because the caller may change `data` afterwards."""
        schema = self._table.snapshot.configuration.schema
        with self._naming():
            rows = with_same_keys(data, schema) if self._key else data
            found = open_batches(with_typed_values(rows, schema)).read_all()
        warn_if_read_before(data, found.num_rows)
        return found

    def _naming(self) -> AbstractContextManager[None]:
        attempt = "upsert rows of" if self._key else "append rows to"
        return naming_the_attempt(attempt, self._table.snapshot.store.root)

    def flush(self) -> None:
        """Commit all queued rows without waiting for more; return after all their futures are done.

        Raises:
            InvalidInputError: a callback of a future called this method, which would be a deadlock.
            Exception: rows were not written, and their future was dropped. One such error is
                raised, and the others are logged.
        """
        self._refuse_callbacks("flush")
        with self._changed:
            answers = {
                request.answer for request in (*self._committing, *self._inside, *self._outside)
            }
            self._hurries += 1
            self._changed.notify_all()
        try:
            wait(answers)
        finally:
            with self._changed:
                self._hurries -= 1
        with self._changed:  # when nothing refers to a dropped future, it reports its error
            self._changed.wait_for(
                lambda: answers.isdisjoint(request.answer for request in self._committing)
            )
        answers.clear()
        self._unread.raise_one()

    def close(self) -> None:
        """Accept no more rows, and commit all queued rows; return after all futures are done.

        The end of a `with` block calls this method.

        Raises:
            InvalidInputError: a callback of a future called this method, which would be a deadlock.
            Exception: see `flush`.
        """
        self._finish()
        self._unread.raise_one()

    def _finish(self) -> None:
        self._refuse_callbacks("close")
        with self._changed:
            self._is_closed = True
            refused = list(self._outside)
            self._outside.clear()
            self._changed.notify_all()
        for request in refused:
            if request.admitted.set_running_or_notify_cancel():
                request.admitted.set_exception(self._closed())
        self._committer.shutdown()
        self._unread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            return
        self._finish()
        self._unread.log()  # the error of the block is the one that is raised

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: Any) -> None:  # noqa: PYI036  # passed on
        await asyncio.to_thread(self.__exit__, *error)

    # --- methods that run in the threads of callers

    def _hand_over(self, request: _Request) -> None:
        if os.getpid() != self._pid:
            raise InvalidInputError(
                f"cannot append to {self._table.snapshot.store.root} by an appender of the parent "
                "process; create a new one after the fork"
            )
        with self._changed:
            if self._is_closed:
                raise self._closed()
            # The caller may be the callback of a future. Callbacks run in the committer's thread,
            # which cannot wait for itself.
            is_urgent = threading.get_ident() == self._committer_thread
            if not is_urgent and (self._outside or not self._has_space(request)):
                self._outside.append(request)
                return
            self._admit(request)

    def _refuse_callbacks(self, method: str) -> None:
        if threading.get_ident() == self._committer_thread:
            raise InvalidInputError(
                f"cannot {method} the appender of {self._table.snapshot.store.root} in a callback "
                "of its future: this would be a deadlock, because the callback runs in the "
                "appender's thread"
            )

    def _has_space(self, request: _Request) -> bool:
        held = self._held_bytes
        return not held or held + request.num_bytes <= self._window.waiting_bytes

    def _admit(self, request: _Request) -> None:
        if not request.admitted.set_running_or_notify_cancel():
            return
        request.admitted.set_result(None)
        self._inside.append(request)
        self._inside_rows += request.rows.num_rows
        self._held_bytes += request.num_bytes
        if not self._is_running:
            self._is_running = True
            self._committer.submit(self._run)
        self._changed.notify_all()

    def _closed(self) -> InvalidInputError:
        return InvalidInputError(
            f"cannot append to {self._table.snapshot.store.root}: the appender is closed"
        )

    # --- methods that run in the committer's thread

    def _run(self) -> None:
        """Commit one window after the other until no rows are queued."""
        self._committer_thread = threading.get_ident()
        try:
            while self._take():
                self._commit()
                self._let_in()
        except BaseException as failure:
            self._fail_all(failure)
            raise

    def _fail_all(self, failure: BaseException) -> None:
        """Close the appender after an error of its own; no caller may wait for ever."""
        with self._changed:
            self._is_closed = True
            left = [*self._committing, *self._inside, *self._outside]
            for queue in (self._committing, self._inside, self._outside):
                queue.clear()
            self._changed.notify_all()
        for request in left:
            if not request.admitted.done() and request.admitted.set_running_or_notify_cancel():
                request.admitted.set_exception(failure)
            if not request.answer.done():
                request.answer.set_exception(failure)

    def _take(self) -> bool:
        """Move the queued rows of the next version to `_committing`; False if none are queued."""
        window = self._window
        with self._changed:
            if not self._inside:
                self._is_running = False
                return False
            left_ms = window.wait_ms - self._inside[0].waited.elapsed_ms()
            if left_ms > 0:
                self._changed.wait_for(self._is_due, left_ms / 1000)
            rows = num_bytes = 0
            while self._inside:
                request = self._inside[0]
                rows += request.rows.num_rows
                num_bytes += request.num_bytes
                is_full = rows > window.most_rows or num_bytes > window.most_bytes
                if self._committing and is_full:
                    break
                self._committing.append(self._inside.popleft())
                self._inside_rows -= request.rows.num_rows
        return True

    def _is_due(self) -> bool:
        window = self._window
        return (
            self._is_closed
            or self._hurries > 0
            or self._inside_rows >= window.most_rows
            or self._held_bytes >= min(window.most_bytes, window.waiting_bytes)
            or len(self._outside) > 0
        )

    # The traceback of an error refers to the variables of the functions below and of their callers.
    # So no future may be among these, because a future that its caller dropped must end at once.

    def _commit(self) -> None:
        """Commit the rows of `_committing`, and set the results of their futures."""
        if parts := self._begin():
            self._answer(self._results(parts))

    def _begin(self) -> list[pa.Table]:
        """Return the rows of the requests that were not cancelled; from now on, none can be."""
        self._wanted = [
            request for request in self._committing if request.answer.set_running_or_notify_cancel()
        ]
        return [request.rows for request in self._wanted]

    def _results(self, parts: Sequence[pa.Table]) -> list[_Result]:
        try:
            results = self._upsert(parts) if self._key else self._append(parts)
        except BaseException as failure:  # noqa: BLE001  # every future must get a result
            results = [failure] * len(parts)
        return [one if isinstance(one, int) else self._located(one) for one in results]

    def _located(self, error: BaseException) -> BaseException:
        """Return an error about rows with the location of the table in its message."""
        try:
            with self._naming():
                raise error  # noqa: TRY301  # so that the context manager replaces it
        except BaseException as found:  # noqa: BLE001  # the result of a future
            return found

    def _answer(self, results: Sequence[_Result]) -> None:
        for request, result in zip(self._wanted, results, strict=True):
            if isinstance(result, int):
                request.answer.set_result(result)
            else:
                request.answer.set_exception(result)
        self._wanted.clear()

    def _append(self, parts: Sequence[pa.Table]) -> list[_Result]:
        operation = AppendParts(parts=parts, file_options=self._file_options)
        ran = self._table.execute(operation, self._options)
        if ran.value is None:
            raise InternalError(f"nothing was staged by {operation}")
        version = ran.committed.version
        return [version if error is None else error for error in ran.value.errors]

    def _upsert(self, parts: Sequence[pa.Table]) -> list[_Result]:
        """Upsert parts, those with the same columns together.

        A part with two rows of one key, or with invalid rows, must not fail other parts. So if
        parts fail together, each is upserted separately.
        """
        results: list[_Result] = []
        for _, run in groupby(parts, key=lambda part: part.schema):
            together = list(run)
            try:
                version = self._merge(_last_rows(together, self._key))
            except (CommitFailedError, StorageError):  # the rows are not the cause
                raise
            except Exception as error:  # noqa: BLE001  # the result of these parts
                if len(together) > 1:
                    results += [found for part in together for found in self._upsert([part])]
                else:
                    results.append(error)
            else:
                results += [version] * len(together)
        return results

    def _merge(self, rows: pa.Table) -> int:
        names = [field.name for field in self._key]
        operation = upsert(rows, names, file_options=self._file_options)
        return self._table.execute(operation, self._options).committed.version

    def _let_in(self) -> None:
        """After a commit, move waiting requests into the queue."""
        with self._changed:
            self._held_bytes -= sum(request.num_bytes for request in self._committing)
            self._committing.clear()
            while self._outside and self._has_space(self._outside[0]):
                self._admit(self._outside.popleft())
            self._changed.notify_all()


_Result: TypeAlias = int | BaseException
"""The version that contains a caller's rows, or the error."""


def _last_rows(parts: Sequence[pa.Table], key: Sequence[Field]) -> pa.Table:
    """Return the rows of all parts, without rows whose key is in a later part.

    Upserts of one part after the other would replace these rows. Rows of one part are all kept. A
    NULL in the key equals nothing.
    """
    rows = pa.concat_tables(parts).combine_chunks()
    if len(parts) == 1 or not {one.name for one in key} <= set(rows.column_names):
        return rows
    columns = [_compared(rows.column(one.name).combine_chunks(), one) for one in key]
    codes = KeyIndex(columns, [False] * len(key), is_wide=False).codes(columns)
    numbers = [pa.repeat(pa.scalar(at), some.num_rows) for at, some in enumerate(parts)]
    part: Any = pa.concat_arrays(numbers)
    known = pa.table({"code": codes, "part": part}).filter(codes.is_valid())
    last = known.group_by("code", use_threads=False).aggregate([("part", "max")])
    latest = last.sort_by("code").column("part_max").combine_chunks()
    is_last = compute.equal(part, latest.take(codes))
    return rows.filter(compute.fill_null(is_last, TRUE))


def _compared(values: Any, field: Field) -> Any:
    """Return the values of a key column as a merge compares them."""
    values = values.cast(to_arrow_type(field.type))
    return collation_keys(values, own_collation(field)) if field.type == STRING else values
