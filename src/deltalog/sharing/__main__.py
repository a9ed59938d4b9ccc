"""`python -m deltalog.sharing`: the server's commands, without the extra `cli`."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from typing import Any, Final
from urllib.parse import urlsplit

from deltalog._util.escaping import printable_json
from deltalog._util.json import dumps
from deltalog._util.readable import counted
from deltalog.errors import DeltaError, InvalidInputError

try:
    from deltalog.sharing.server.application import check_tables
    from deltalog.sharing.server.config_file import load_config
    from deltalog.sharing.server.serving import serve
    from deltalog.sharing.server.tables import tables_of
    from deltalog.sharing.server.tokens import token_digest
    from deltalog.sharing.wire.profile import BearerToken, Profile, encode_profile
except InvalidInputError as _error:
    if __name__ != "__main__":
        raise
    sys.exit(f"error: {_error}")

_ENDPOINT: Final = "http://localhost:8080/delta-sharing/"


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="deltalog share", description="Share Delta tables.")
    commands = parser.add_subparsers(dest="command", required=True)
    serving = commands.add_parser("serve", help="share the tables of a configuration file")
    serving.add_argument("config", help="a YAML or TOML file")
    serving.add_argument("--host", help="address to listen on, instead of the file's")
    serving.add_argument("--port", type=int, help="port, instead of the file's")
    checking = commands.add_parser("check", help="check a configuration file")
    checking.add_argument("config", help="a YAML or TOML file")
    checking.add_argument("--tables", action="store_true", help="also open every table")
    checking.add_argument("--json", action="store_true", help="print a line of JSON per table")
    making = commands.add_parser(
        "token", help="make a token and its hash for the configuration file"
    )
    making.add_argument("--profile", help="write the token to this new file, print only the hash")
    making.add_argument("--endpoint", help=f"of the profile; default: {_ENDPOINT}")
    found = parser.parse_args(arguments)
    try:
        if found.command == "serve":
            serve(found.config, host=found.host, port=found.port)
        elif found.command == "check":
            return _check(found.config, tables=found.tables, as_json=found.json)
        else:
            _token(found.profile, found.endpoint)
    except DeltaError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _token(profile: str | None, endpoint: str | None) -> None:
    if endpoint is not None and profile is None:
        raise InvalidInputError(
            "cannot use --endpoint without --profile: it is written to the profile; give both"
        )
    if endpoint is not None and not urlsplit(endpoint).hostname:
        raise InvalidInputError(
            f"cannot use --endpoint {endpoint!r}: expected a URL such as "
            "https://sharing.example/delta-sharing/"
        )
    token = secrets.token_urlsafe(32)
    digest = f"sha256:{token_digest(token)}"
    if profile is None:
        sys.stdout.write(f"token: {token}\nhash: {digest}\n")
        return
    made = Profile(version=1, endpoint=endpoint or _ENDPOINT, credentials=BearerToken(token=token))
    try:
        # Only the owner may read the file, from the beginning.
        number = os.open(profile, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidInputError(f"cannot write the profile {profile!r}: the file exists") from None
    except OSError as error:
        raise InvalidInputError(
            f"cannot write the profile {profile!r}: {error.strerror}; pass the path of a new file "
            "in an existing directory"
        ) from None
    with os.fdopen(number, "wb") as file:
        file.write(encode_profile(made) + b"\n")
    sys.stdout.write(f"{digest}\n")


def _check(path: str, *, tables: bool, as_json: bool) -> int:
    """Print what a file shares; return 1 if a table cannot be shared."""
    config = load_config(path)
    num_tables = sum(1 for share in config.shares for _ in tables_of(share))
    counts = {"shares": len(config.shares), "tables": num_tables}
    counts["recipients"] = len(config.recipients)
    shown = f"{path}: {', '.join(f'{name}: {n}' for name, n in counts.items())}\n"
    # With --tables, each line of JSON is a table.
    sys.stdout.write(_line(counts) if as_json and not tables else "" if as_json else shown)
    problems = 0
    for name, problem in check_tables(config) if tables else ():
        problems += problem is not None
        row = {"table": name, "problem": problem}
        sys.stdout.write(_line(row) if as_json else f"{name}: {problem or 'can be shared'}\n")
    if tables:
        found = f"{problems} of {counted(num_tables, 'table')} cannot be shared"
        sys.stderr.write(f"{found if problems else 'all tables can be shared'}\n")
    return 1 if problems else 0


def _line(row: dict[str, Any]) -> str:
    return f"{printable_json(dumps(row).decode())}\n"


if __name__ == "__main__":
    sys.exit(main())
