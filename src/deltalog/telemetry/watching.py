"""How watching is ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from deltalog.observing import unwatch

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from deltalog.observing import Observer


class Watching:
    """That somebody watches the work of this process; also a context manager, which stops it.

    Args:
        observer: who watches.
        close: called when it is stopped.
    """

    def __init__(self, observer: Observer, close: Callable[[], None] = lambda: None) -> None:
        self._observer = observer
        self._close = close

    def stop(self) -> None:
        """Watch no more; what was seen is sent, within a few seconds."""
        unwatch(self._observer)
        self._close()

    def __enter__(self) -> Self:
        """Watch on."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()
