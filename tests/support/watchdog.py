"""Processes that end with whoever started them, however that ends.

Run as a program: it starts each command of its standard input, which are lines of JSON, and kills
its process group when the input ends. It leads the group, which others may join.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any


class Watchdog:
    """A process group that is killed when it is closed, or when this process ends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, process_group=0
        )
        self.group = self._process.pid

    def start(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """Start a command that runs until the end."""
        told = {"command": list(command), "environment": dict(environment), "log": str(log)}
        self._input.write(json.dumps(told).encode() + b"\n")
        self._input.flush()

    def close(self) -> None:
        """Kill all processes."""
        self._input.close()
        self._process.wait(timeout=60)

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin


def main() -> None:
    """Start what is asked for, and kill it in the end."""
    assert os.getpgrp() == os.getpid(), "the group is another one's"
    started = []
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        with Path(asked["log"]).open("wb") as log:
            started.append(
                subprocess.Popen(
                    asked["command"],
                    env=asked["environment"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
