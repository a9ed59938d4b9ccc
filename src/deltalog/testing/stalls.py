"""A hang told from a slow machine, by the processor time that the process uses.

A process that waits for itself uses none, however busy the machine is; one that makes progress uses
some. So no limit on elapsed time is needed, which a busy machine would exceed.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_STALL_SECONDS: Final = 60.0
_PROGRESS_SECONDS: Final = 0.05
_LOOK_SECONDS: Final = 1.0


class StallWatch:
    """Whether this process has stopped making progress.

    Args:
        after_s: for so long it must have used next to no processor time.
    """

    def __init__(self, after_s: float = _STALL_SECONDS) -> None:
        self._after_s = after_s
        self._since = time.monotonic()
        self._used = time.process_time()

    def has_stalled(self) -> bool:
        """Look once; must be called every few seconds."""
        now, used = time.monotonic(), time.process_time()
        if used - self._used > _PROGRESS_SECONDS:
            self._since, self._used = now, used
        return now - self._since > self._after_s


def all_stacks() -> str:
    """What each thread of the process is doing."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"{names.get(number, 'a thread of a library')}:\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sys._current_frames().items()  # noqa: SLF001  # there is no other way
    )


@contextmanager
def ended_when_stalled(after_s: float = _STALL_SECONDS) -> Iterator[None]:
    """End the process with the stacks of all threads, and code 70, if the block hangs.

    Args:
        after_s: as `StallWatch` takes it.
    """
    over = threading.Event()

    def watch() -> None:
        stalls = StallWatch(after_s)
        while not over.wait(_LOOK_SECONDS):
            if stalls.has_stalled():
                sys.stderr.write(f"no progress for {after_s} s:\n{all_stacks()}\n")
                sys.stderr.flush()
                os._exit(70)

    thread = threading.Thread(target=watch, name="stall-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
