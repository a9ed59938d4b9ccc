"""The command line: `deltalog`.

`application` contains the common code of the commands: options, output and errors. `commands`
contains the commands themselves: they read, describe and maintain a table, run SQL and the sharing
server, simulate histories, and print scripts for shells. `spark_archive` writes archives for the
workers of a Spark cluster.
"""

from __future__ import annotations

from deltalog.cli.commands import app

__all__ = ["app"]
