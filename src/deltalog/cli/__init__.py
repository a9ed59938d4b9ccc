"""The command line: `deltalog`.

`commands` has one function per command, `share` those of the sharing server, `output` prints what
they answer.
"""

from __future__ import annotations

from deltalog.cli.share import app

__all__ = ["app"]
