"""The command line: `deltalog`.

`application` has what the commands share, `output` prints what they answer. `reading` has one
function per command that reads rows, `commands` those that tell of a table or keep it in order,
`share` those of the sharing server. `simulate` plays histories of a simulated table, `sql` runs
statements, `completion` serves shells.
"""

from __future__ import annotations

from deltalog.cli.commands import app

__all__ = ["app"]
