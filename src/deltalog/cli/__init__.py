"""The command line: `deltalog`.

`commands` has one function per command, `share` those of the sharing server, `simulate` plays
histories of a simulated table, `sql` runs statements, `output` prints what they answer.
"""

from __future__ import annotations

from deltalog.cli.sql import app

__all__ = ["app"]
