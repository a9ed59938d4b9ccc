"""The command line: `deltalog`.

`commands` has one function per command, `output` prints what they answer.
"""

from __future__ import annotations

from deltalog.cli.commands import app

__all__ = ["app"]
