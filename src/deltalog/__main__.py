"""`python -m deltalog`, and the `deltalog` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. If typer is not installed, exit with a message that explains this."""
    try:
        from deltalog.cli import app  # noqa: PLC0415  # typer may be missing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "rich"}:
            raise
        sys.exit("the command line is not installed: pip install 'deltalog[cli]'")
    app(prog_name="deltalog")


if __name__ == "__main__":
    main()
