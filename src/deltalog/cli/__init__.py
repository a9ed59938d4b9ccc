"""The command line: `deltalog`.

`application` contains the common code of the commands: options, output and errors. `commands`
contains the commands that read, describe and maintain a table, `write` writes a file to a table,
`sql` runs statements, and `tools` contains the commands that open no table. `spark_archive` writes
archives for the workers of a Spark cluster.
"""

from __future__ import annotations

from deltalog._util.extras import needing

with needing("typer and rich", "cli", __name__, "typer", "rich"):
    from deltalog.cli import commands, sql, tools, write  # noqa: F401  # they register commands
    from deltalog.cli.application import app

__all__ = ["app"]
