"""The command line: `deltalog`.

`application` has what the commands share: options, output and errors. `commands` has the commands:
they read, describe and maintain a table, run SQL and the sharing server, simulate histories, and
print scripts for shells.
"""

from __future__ import annotations

from deltalog.cli.commands import app

__all__ = ["app"]
