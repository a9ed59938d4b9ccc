"""The command line: `deltalog`.

`application` has what the commands share, `commands` one function for each that keeps a table in
order, `share` those of the sharing server, `simulate` plays histories of a simulated table, `sql`
runs statements, `output` prints what they answer.
"""

from __future__ import annotations

from deltalog.cli.sql import app

__all__ = ["app"]
