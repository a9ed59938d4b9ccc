"""Events of OpenLineage: which job wrote which version of which table, and who was sent one.

Owns how a table and a job are named, and what an event says. The library's client decides where
events go (`OPENLINEAGE_URL`, its file, or an argument).

Protocol: OpenLineage 2.0, naming of datasets
"""

from __future__ import annotations

import logging
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from deltalog._version import __version__
from deltalog.clock import now_ms, utc_moment
from deltalog.errors import InvalidInputError
from deltalog.observing import ObservedWork, WorkKind, watch
from deltalog.store_kinds import KINDS, LOCAL, Address
from deltalog.telemetry.sending import Sender
from deltalog.telemetry.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Send an event for each operation on a table, and for each query to the sharing server.

    A run starts with an operation and ends COMPLETE, with the table and its new version as output,
    or FAIL. A query that the sharing server has answered is a run with the table as input, of a job
    named after the recipient. Events are sent by a thread of their own: work does not wait for
    them, and events are dropped, with a warning, while the backend does not take them.

    Args:
        client: an `OpenLineageClient`; None makes one, of `url` or of the library's own settings.
        url: of the backend.
        api_key: for it.
        namespace: of jobs.
        job: the name of the job that this process does; None names it after table and operation.

    Returns:
        By which it is stopped, and the last events are sent.

    Raises:
        InvalidInputError: `openlineage-python` is not installed, or both a client and a URL are
            given.
    """
    if client is not None and (url is not None or api_key is not None):
        raise InvalidInputError("cannot take both a client and a url: the client knows its own")
    try:
        from openlineage.client import OpenLineageClient  # noqa: PLC0415 -- an extra
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
    """A run of a job.

    Args:
        id: of the run.
        job: its name.
        kind: of the work.
        parent: the run in which this one began.
        began_ms: milliseconds since 1970.
    """

    id: str
    job: str
    kind: WorkKind
    parent: _LineageRun | None
    began_ms: int


_RUN: Final[ContextVar[_LineageRun | None]] = ContextVar("deltalog.lineage", default=None)


class LineageObserver:
    """Makes events of work.

    Args:
        sender: takes events.
        namespace: of jobs.
        job: the name of all jobs; None names them by table and operation.
    """

    def __init__(self, sender: Sender, namespace: str, job: str | None) -> None:
        self._sender = sender
        self._namespace = namespace
        self._job = job

    def begin(self, work: ObservedWork) -> Any:
        """Send that a run starts; a commit belongs to the run of its operation."""
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
        """Send that a run has ended, with what it wrote or read."""
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
            # Its text may quote values of rows.
            text = f"{type(error).__name__} ({getattr(error, 'code', 'no code')})"
            facet = error_message_run.ErrorMessageRunFacet(
                message=text, programmingLanguage="PYTHON"
            )
            yield "errorMessage", facet


def dataset_name(location: str) -> tuple[str, str]:
    """Return namespace and name of a table, as OpenLineage names datasets.

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
        scheme = kind.name  # a bucket has one name, whatever its scheme is called
    if kind is None or kind.address is not Address.ACCOUNT:  # there `@` ends the container's name
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
