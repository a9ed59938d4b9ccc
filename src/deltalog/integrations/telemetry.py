"""Report operations, and queries of shared tables, to OpenTelemetry and OpenLineage.

Nothing is reported before one of the functions is called; from then on, the whole process reports.
An error in a report never makes an operation fail, and operations never wait for a backend.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit
from weakref import ref

from deltalog._util.clock import now_ms, utc_moment
from deltalog._util.observing import Fact, ObservedWork, Observer, WorkKind, unwatch, watch
from deltalog._util.store_kinds import KINDS, LOCAL, Address
from deltalog._util.version import __version__
from deltalog.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


__all__ = ["Watching", "watch_with_openlineage", "watch_with_opentelemetry"]


logger: logging.Logger = logging.getLogger(__name__)

_PRODUCER: Final = f"urn:deltalog:{__version__}"
_INTEGRATION: Final = "DELTALOG"
_READING: Final = frozenset({"query", "poll_query", "changes"})


def watch_with_openlineage(
    client: Any = None,
    *,
    url: str | None = None,
    api_key: str | None = None,
    namespace: str = "deltalog",
    job: str | None = None,
) -> Watching:
    """Send events to OpenLineage for operations on tables, and for queries of shared tables.

    Each operation is a run. The run ends with the event COMPLETE, whose output is the table at its
    new version, or with the event FAIL. Each query that the sharing server has answered is a run,
    too: its input is the table, and its job has the name of the recipient. A separate thread sends
    the events. If the backend is too slow, events are dropped with a warning.

    Args:
        client: an `OpenLineageClient`; None creates one from `url` or the library's own settings.
        url: the URL of the backend.
        api_key: the API key of the backend.
        namespace: the namespace of jobs.
        job: the name of the job of all runs; None names jobs by table and operation.

    Returns:
        An object that stops the reports and sends the last events.

    Raises:
        InvalidInputError: `openlineage-python` is not installed, or both a client and a URL are
            set.
    """
    if client is not None and (url is not None or api_key is not None):
        raise InvalidInputError("cannot use both client and url: the client already has a URL")
    try:
        from openlineage.client import OpenLineageClient  # noqa: PLC0415 -- an optional dependency
    except ModuleNotFoundError:
        raise InvalidInputError(
            "lineage needs OpenLineage: pip install 'deltalog[openlineage]'"
        ) from None
    if client is None:
        client = OpenLineageClient(config=None if url is None else _transport(url, api_key))
    sender = Sender(client.emit)
    observer = LineageObserver(sender, namespace, job)
    watch(observer)
    return Watching(observer, sender.close)


def _transport(url: str, api_key: str | None) -> dict[str, Any]:
    transport: dict[str, Any] = {"type": "http", "url": url}
    if api_key is not None:
        transport["auth"] = {"type": "api_key", "apiKey": api_key}
    return {"transport": transport}


@dataclass(frozen=True)
class _LineageRun:
    """A run of a job in OpenLineage.

    Args:
        id: the id of the run.
        job: the name of the job.
        kind: the kind of the work that the run represents.
        parent: the run that contains this run; None if there is none.
        began_ms: the start time in milliseconds since 1970.
    """

    id: str
    job: str
    kind: WorkKind
    parent: _LineageRun | None
    began_ms: int


_RUN: Final[ContextVar[_LineageRun | None]] = ContextVar("deltalog.lineage", default=None)


class LineageObserver:
    """Observer that sends OpenLineage events for operations and queries.

    Args:
        sender: the sender of the events.
        namespace: the namespace of jobs.
        job: the name of all jobs; None names them by table and operation.
    """

    def __init__(self, sender: Sender, namespace: str, job: str | None) -> None:
        self._sender = sender
        self._namespace = namespace
        self._job = job

    def begin(self, work: ObservedWork) -> Any:
        """Send a START event. A commit within an operation belongs to the operation's run."""
        outer = _RUN.get()
        if work.kind is WorkKind.REQUEST:
            return now_ms()
        if work.kind is WorkKind.COMMIT and outer is not None:
            return None
        if work.kind not in {WorkKind.OPERATION, WorkKind.COMMIT}:
            return None
        run = _LineageRun(_new_id(), self._name_of(work), work.kind, outer, now_ms())
        self._send("START", run, at_ms=run.began_ms)
        return run, _RUN.set(run)

    def end(self, work: ObservedWork, begun: Any, error: BaseException | None) -> None:
        """Send the event for the end of a run, with the datasets that the run wrote or read."""
        if work.kind is WorkKind.REQUEST:
            self._tell_query(work, begun, error)
            return
        if begun is None:
            return
        run: _LineageRun
        token: Token[_LineageRun | None]
        run, token = begun
        _RUN.reset(token)
        if error is not None:
            self._send("FAIL", run, error=error)
        elif work.facts.get("is_skipped"):
            self._send("COMPLETE", run)
        else:
            self._send("COMPLETE", run, outputs=[_output(work)])

    def _tell_query(self, work: ObservedWork, began_ms: int, error: BaseException | None) -> None:
        facts = work.facts
        status = facts.get("http.response.status_code")
        is_answered = error is None and isinstance(status, int) and status < 400
        if not is_answered or facts.get("action") not in _READING or facts.get("version") is None:
            return
        name = f"sharing.{facts.get('recipient')}"
        run = _LineageRun(_new_id(), name, work.kind, None, began_ms)
        self._send("START", run, at_ms=began_ms)
        self._send("COMPLETE", run, inputs=[_input(work)])

    def _name_of(self, work: ObservedWork) -> str:
        if self._job is not None:
            return self._job
        _, name = dataset_name(str(work.facts["table"]))
        return f"{name.strip('/')}.{work.facts['operation']}"

    def _send(
        self,
        state: str,
        run: _LineageRun,
        *,
        at_ms: int | None = None,
        error: BaseException | None = None,
        inputs: list[Any] | None = None,
        outputs: list[Any] | None = None,
    ) -> None:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState  # noqa: PLC0415
        from openlineage.client.facet_v2 import job_type_job  # noqa: PLC0415

        kind = "QUERY" if run.kind is WorkKind.REQUEST else "COMMAND"
        job_type = job_type_job.JobTypeJobFacet(
            processingType="BATCH", integration=_INTEGRATION, jobType=kind
        )
        event = RunEvent(
            eventType=RunState[state],
            eventTime=utc_moment(now_ms() if at_ms is None else at_ms).isoformat(),
            run=Run(runId=run.id, facets=dict(self._run_facets(run, error))),
            job=Job(namespace=self._namespace, name=run.job, facets={"jobType": job_type}),
            producer=_PRODUCER,
            inputs=inputs or [],
            outputs=outputs or [],
        )
        self._sender.send(event)

    def _run_facets(
        self, run: _LineageRun, error: BaseException | None
    ) -> Iterator[tuple[str, Any]]:
        from openlineage.client.facet_v2 import (  # noqa: PLC0415
            error_message_run,
            parent_run,
            processing_engine_run,
        )

        yield (
            "processing_engine",
            processing_engine_run.ProcessingEngineRunFacet(version=__version__, name="deltalog"),
        )
        if run.parent is not None:
            yield (
                "parent",
                parent_run.ParentRunFacet(
                    run=parent_run.Run(runId=run.parent.id),
                    job=parent_run.Job(namespace=self._namespace, name=run.parent.job),
                ),
            )
        if error is not None:
            # Do not send the error message, because it may contain values of rows.
            text = f"{type(error).__name__} ({getattr(error, 'code', 'no code')})"
            facet = error_message_run.ErrorMessageRunFacet(
                message=text, programmingLanguage="PYTHON"
            )
            yield "errorMessage", facet


def dataset_name(location: str) -> tuple[str, str]:
    """Return the namespace and the name of a table, by OpenLineage's rules.

    Examples:
        >>> dataset_name("s3a://lake/raw/flights/")
        ('s3://lake', 'raw/flights')
        >>> dataset_name("/data/flights")
        ('file', '/data/flights')
    """
    parts = urlsplit(location)
    kind = KINDS.get(parts.scheme) if "://" in location else LOCAL
    if kind is LOCAL:
        return LOCAL.name, parts.path.rstrip("/") or "/"
    scheme, host = parts.scheme, parts.netloc
    if kind is not None and kind.address is Address.BUCKET:
        scheme = kind.name  # for example, s3 for s3a, with the same buckets
    # Before `@`, a location of Azure has a container. In other locations, omit the credentials.
    if kind is None or kind.address is not Address.ACCOUNT:
        host = host.rpartition("@")[2]
    return f"{scheme}://{host}", parts.path.strip("/") or "/"


def _new_id() -> str:
    from openlineage.client.uuid import generate_new_uuid  # noqa: PLC0415 -- an extra

    return str(generate_new_uuid())


def _facets(work: ObservedWork) -> dict[str, Any]:
    from openlineage.client.facet_v2 import (  # noqa: PLC0415 -- an extra
        dataset_version_dataset,
        schema_dataset,
    )

    facets: dict[str, Any] = {
        "version": dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=str(work.facts["version"])
        )
    }
    if work.subject is not None:
        facets["schema"] = schema_dataset.SchemaDatasetFacet(
            fields=[
                schema_dataset.SchemaDatasetFacetFields(name=field.name, type=str(field.type))
                for field in work.subject.schema
            ]
        )
    return facets


def _output(work: ObservedWork) -> Any:
    from openlineage.client.event_v2 import OutputDataset  # noqa: PLC0415 -- an extra
    from openlineage.client.facet_v2 import output_statistics_output_dataset  # noqa: PLC0415

    facts: dict[str, Any] = dict(work.facts)
    namespace, name = dataset_name(facts["table"])
    rows = facts.get("metrics.numOutputRows")
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=None if rows is None else int(rows),
        size=facts.get("num_added_bytes"),
        fileCount=facts.get("num_added_files"),
    )
    return OutputDataset(
        namespace=namespace,
        name=name,
        facets=_facets(work),
        outputFacets={"outputStatistics": statistics},
    )


def _input(work: ObservedWork) -> Any:
    from openlineage.client.event_v2 import InputDataset  # noqa: PLC0415 -- an extra

    namespace, name = dataset_name(str(work.facts["location"]))
    return InputDataset(namespace=namespace, name=name, facets=_facets(work))


# --- the thread that sends events to a backend


_MOST_EVENTS: Final = 1000
_CLOSE_SECONDS: Final = 5.0


class Sender:
    """A queue of events, which a thread sends in order.

    Args:
        emit: a function that sends one event. It may be slow, and may fail.
    """

    def __init__(self, emit: Callable[[Any], object]) -> None:
        self._emit = emit
        self._events: deque[Any] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._is_busy = False
        self._has_thread = False
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            known = ref(self)
            os.register_at_fork(after_in_child=lambda: _forked(known()))

    def send(self, event: Any) -> None:
        """Append an event to the queue. If the queue is full, the event is dropped."""
        with self._changed:
            if self._is_closed:
                return
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._run, name="deltalog-lineage", daemon=True).start()
            if len(self._events) >= _MOST_EVENTS:
                logger.warning("a lineage event is dropped: %d are queued", len(self._events))
                return
            self._events.append(event)
            self._changed.notify_all()

    def close(self) -> None:
        """Accept no further events, and send the queued events within a few seconds."""
        atexit.unregister(self.close)
        end_s = time.monotonic() + _CLOSE_SECONDS
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            while self._events or self._is_busy:
                left = end_s - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    logger.warning("%d lineage events were not sent", len(self._events))
                    return

    def forget(self) -> None:
        """Reset the queue in a forked process; the thread of the parent sends the queued events."""
        self._events = deque()
        self._changed = threading.Condition()
        self._is_busy = self._has_thread = False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._events or self._is_closed)
                if not self._events:
                    return
                event = self._events.popleft()
                self._is_busy = True
            try:
                self._emit(event)
            except Exception as error:  # noqa: BLE001 -- a backend may raise any error
                logger.warning("a lineage event was not sent: %s", type(error).__name__)
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()


def _forked(sender: Sender | None) -> None:
    if sender is not None:
        sender.forget()


# --- OpenTelemetry spans of operations, commits, post-commit hooks and requests to the server


_SERVER_ERRORS = 500


def watch_with_opentelemetry(
    tracer_provider: Any = None, *, trusts_parents: bool = False
) -> Watching:
    """Create OpenTelemetry spans for operations on tables and requests to the sharing server.

    The span of an operation (`deltalog WRITE`, `deltalog MERGE`, …) is the parent of the spans of
    its commits. Each post-commit hook (`deltalog checkpoint`, …) has a span, too. The names of
    attributes begin with `deltalog.`: the location of the table, the version, the number of
    retries, the numbers of files and bytes, and the metrics of the operation. No attribute contains
    a value of a row.

    Args:
        tracer_provider: the tracer provider of OpenTelemetry; None means the one of the process.
        trusts_parents: whether the header `traceparent` of a request to the sharing server
            determines the parent span. Set this only behind a proxy that overwrites the header,
            because recipients are not trusted.

    Returns:
        An object that stops the reports.

    Raises:
        InvalidInputError: `opentelemetry-api` is not installed.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415 -- an optional dependency
    except ModuleNotFoundError:
        raise InvalidInputError(
            "spans need OpenTelemetry: pip install 'deltalog[opentelemetry]'"
        ) from None
    tracer = trace.get_tracer("deltalog", __version__, tracer_provider)
    observer = SpanObserver(tracer, trusts_parents=trusts_parents)
    watch(observer)
    return Watching(observer)


class SpanObserver:
    """Observer that creates spans for operations and requests.

    Args:
        tracer: a tracer of OpenTelemetry.
        trusts_parents: see `watch_with_opentelemetry`.
    """

    def __init__(self, tracer: Any, *, trusts_parents: bool) -> None:
        from opentelemetry import context, propagate, trace  # noqa: PLC0415 -- an extra

        self._tracer = tracer
        self._trusts_parents = trusts_parents
        self._context = context
        self._propagate = propagate
        self._trace = trace

    def begin(self, work: ObservedWork) -> Any:
        """Start a span. It becomes the parent of all spans that start before it ends."""
        parent, kind = None, self._trace.SpanKind.INTERNAL
        if work.kind is WorkKind.REQUEST:
            kind = self._trace.SpanKind.SERVER
            is_inner = self._trace.get_current_span().get_span_context().is_valid
            # If an application that contains the server has started a span for this request, that
            # span is the parent.
            if self._trusts_parents and not is_inner:
                parent = self._propagate.extract(work.headers)
        span = self._tracer.start_span(
            f"deltalog {work.name}", context=parent, kind=kind, attributes=_attributes(work.facts)
        )
        return span, self._context.attach(self._trace.set_span_in_context(span, parent))

    def end(self, work: ObservedWork, begun: Any, error: BaseException | None) -> None:
        """End the span, and set its attributes and status."""
        span, token = begun
        self._context.detach(token)
        span.set_attributes(_attributes(work.facts))
        if work.kind is WorkKind.REQUEST:
            span.update_name(f"deltalog {work.facts.get('action') or work.name}")
        status = work.facts.get("http.response.status_code")
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            # Do not record the message or the stack trace, because they may contain values of rows.
            span.add_event("exception", {"exception.type": type(error).__qualname__})
        if error is not None or (isinstance(status, int) and status >= _SERVER_ERRORS):
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
        span.end()


def _attributes(facts: Mapping[str, Fact]) -> dict[str, str | int | float | bool]:
    """Return the attributes for facts: name → value. Facts about HTTP have their standard names."""
    return {
        name if name.startswith("http.") else f"deltalog.{name}": value
        for name, value in facts.items()
        if value is not None
    }


# --- the object that stops an observer


class Watching:
    """Handle of an observer in this process. It stops the observer, also as a context manager.

    Args:
        observer: the observer, which reports until it is stopped.
        close: a function that is called when the observer is stopped.
    """

    def __init__(self, observer: Observer, close: Callable[[], None] = lambda: None) -> None:
        self._observer = observer
        self._close = close

    def stop(self) -> None:
        """Stop the observer, and send the queued events within a few seconds."""
        unwatch(self._observer)
        self._close()

    def __enter__(self) -> Self:
        """Return this handle."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the observer."""
        self.stop()
