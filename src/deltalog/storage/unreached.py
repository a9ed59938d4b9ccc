"""Services that were never reached: clients of clouds wait long for them, as if they were busy.

Owns how often a service is asked to which no connection was ever made: its name may be misspelt, or
this machine have no way to it. Once it has answered, the client's own rules hold.

Protocol: none
"""

from __future__ import annotations

from typing import Any, Final

ATTEMPTS: Final = 2
"""In all, where the client can say how often."""
PAUSE_SECONDS: Final = 0.3
"""Before the second attempt: a name server may have been restarted."""
_UNREACHED: Final = "EndpointConnectionError"
_TIMED_OUT: Final = "ConnectTimeoutError"


def impatient_client(client: Any, service: str) -> Any:
    """Return a client of botocore that tells soon of a service that was never reached."""
    FirstContact(service).watch(client.meta.events)
    return client


class FirstContact:
    """A handler of the event `needs-retry` of botocore, which ends repeats of the first request.

    Args:
        service: whose requests it is about, by botocore's name.
    """

    def __init__(self, service: str) -> None:
        self._event = f"needs-retry.{service}"
        self._is_reached = False

    def watch(self, events: Any) -> None:
        """Register the handler: `events` is a client's or a session's."""
        events.register_first(self._event, self._decide, unique_id=f"deltalog-{self._event}")

    def _decide(
        self,
        response: Any = None,
        caught_exception: Exception | None = None,
        attempts: int = 1,
        **_: object,
    ) -> None:
        if response is not None:
            self._is_reached = True
        if self._is_reached or caught_exception is None:
            return
        name = type(caught_exception).__name__
        if name == _TIMED_OUT or (name == _UNREACHED and attempts >= ATTEMPTS):
            raise caught_exception
