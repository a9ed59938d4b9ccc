"""Spans of OpenTelemetry: operations, commits, what follows them, and the server's requests.

Owns names and attributes of spans. Where they go is decided by the tracer provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalog._version import __version__
from deltalog.errors import InvalidInputError
from deltalog.observing import ObservedWork, WorkKind, watch
from deltalog.telemetry.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalog.observing import Fact

_SERVER_ERRORS = 500


def watch_with_opentelemetry(
    tracer_provider: Any = None, *, trusts_parents: bool = False
) -> Watching:
    """Make a span of each operation on a table, and of each request to the sharing server.

    An operation (`deltalog WRITE`, `deltalog MERGE`, …) has its commits as children, and each step
    after a commit (`deltalog checkpoint`, …) is a span too. Attributes begin with `deltalog.`: the
    table's location, the version, retries, counts of files and bytes, the operation's metrics. No
    attribute holds a value of a row.

    Args:
        tracer_provider: of OpenTelemetry; None is that of the process.
        trusts_parents: the header `traceparent` of requests to the sharing server names the parent
            of their spans; only behind a proxy that sets it, since recipients are strangers.

    Returns:
        By which it is stopped.

    Raises:
        InvalidInputError: `opentelemetry-api` is not installed.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415 -- an extra
    except ModuleNotFoundError:
        raise InvalidInputError(
            "spans need OpenTelemetry: pip install 'deltalog[opentelemetry]'"
        ) from None
    tracer = trace.get_tracer("deltalog", __version__, tracer_provider)
    observer = SpanObserver(tracer, trusts_parents=trusts_parents)
    watch(observer)
    return Watching(observer)


class SpanObserver:
    """Makes spans of work.

    Args:
        tracer: of OpenTelemetry.
        trusts_parents: as for `watch_with_opentelemetry`.
    """

    def __init__(self, tracer: Any, *, trusts_parents: bool) -> None:
        from opentelemetry import context, propagate, trace  # noqa: PLC0415 -- an extra

        self._tracer = tracer
        self._trusts_parents = trusts_parents
        self._context = context
        self._propagate = propagate
        self._trace = trace

    def begin(self, work: ObservedWork) -> Any:
        """Start a span, and make it the parent of those that begin before it ends."""
        parent, kind = None, self._trace.SpanKind.INTERNAL
        if work.kind is WorkKind.REQUEST:
            kind = self._trace.SpanKind.SERVER
            is_inner = self._trace.get_current_span().get_span_context().is_valid
            # An application around ours may have begun a span of this request.
            if self._trusts_parents and not is_inner:
                parent = self._propagate.extract(work.headers)
        span = self._tracer.start_span(
            f"deltalog {work.name}", context=parent, kind=kind, attributes=_attributes(work.facts)
        )
        return span, self._context.attach(self._trace.set_span_in_context(span, parent))

    def end(self, work: ObservedWork, begun: Any, error: BaseException | None) -> None:
        """End the span, with all that is known by now."""
        span, token = begun
        self._context.detach(token)
        span.set_attributes(_attributes(work.facts))
        if work.kind is WorkKind.REQUEST:
            span.update_name(f"deltalog {work.facts.get('action') or work.name}")
        status = work.facts.get("http.response.status_code")
        if error is not None:
            span.set_attribute("error.type", type(error).__name__)
            # Its text may quote values of rows, and a stack trace has the text, too.
            span.add_event("exception", {"exception.type": type(error).__qualname__})
        if error is not None or (isinstance(status, int) and status >= _SERVER_ERRORS):
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR))
        span.end()


def _attributes(facts: Mapping[str, Fact]) -> dict[str, str | int | float | bool]:
    """Return facts by the names of attributes; those of HTTP have their own."""
    return {
        name if name.startswith("http.") else f"deltalog.{name}": value
        for name, value in facts.items()
        if value is not None
    }
