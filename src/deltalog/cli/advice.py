"""Advice in the words of the shell: commands and options instead of calls of Python.

Errors and findings of the library name its methods and arguments. `in_shell` replaces these names
by those of the command line. `plain_usage` improves the messages of typer about options and values.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Replacement = str | Callable[[re.Match[str]], str]


def _names(found: re.Match[str]) -> str:
    """Write a list of Python strings as names with commas."""
    return ",".join(re.findall(r"'([^']*)'", found[1]))


def _keys(found: re.Match[str]) -> str:
    """Write storage options as options of the command line."""
    pairs = re.findall(r"'([^']+)': \[?'([^']+)'", found[1])
    return " ".join(f"-o {key}={value}" for key, value in pairs)


_METHODS: Final = (
    r"(?:(?:alter|optimize)\.\w+|cleanup_metadata|compact_logs|update|recover|sync_iceberg)"
)
_ADVICE: Final[tuple[tuple[str, Replacement], ...]] = (
    # versions
    (
        r"\ba version is a number, and a branch is part of the location, as in DeltaTable\(\S*\)",
        "a version is a number, such as 3; a branch follows the table's name, as in TABLE@BRANCH",
    ),
    (r"\bdatetime\.now\(UTC\) - timedelta\(days=1\) is a day ago", "write the date"),
    (
        r"\bwrite_deltalake\(location, data, mode='(\w+)'\) writes rows",
        r"deltalog write TABLE FILE --mode \1 writes rows",
    ),
    (
        r"\bopen one of these versions by DeltaTable\(…, version=…\)",
        "name one of these versions, as in TABLE@v0",
    ),
    (r"\bpass starting_timestamp='", "pass '"),
    # write
    (r"\bschema_mode='(\w+)'(?: \(mergeSchema on Spark\))?", r"--schema-mode \1"),
    (r"\bmode='(error|append|overwrite|ignore)'", r"--mode \1"),
    (r"\bpartition_by=\[([^\]]*)\]", lambda found: f"--partition-by {_names(found)}"),
    (r"pass the new partition columns as partition_by.*", "name them with --partition-by"),
    (r"as in pa\.array\(\[None\], pa\.int64\(\)\)", "as in --type column=string"),
    (r"write_deltalake or DeltaTable\.create makes a table", "deltalog write makes a table"),
    (
        r"write_deltalake(?: or DeltaTable\.create)? makes a new table",
        "deltalog write makes a new table",
    ),
    (r"convert_to_deltalake (?:or `deltalog convert` )?converts", "deltalog convert converts"),
    (r"convert_to_deltalake\('([^']*)'\) makes", r"deltalog convert \1 makes"),
    (
        r"write_deltalake\(location, pyarrow\.dataset\.dataset\('([^']*)', format='\w+'\)\)",
        lambda found: f"deltalog write TABLE {quote(found[1])}",
    ),
    (r"; DeltaTable\.create creates an empty table.*", ""),
    (r"source_format='iceberg' \(in SQL: [^)]*\)", "the SQL statement CONVERT TO DELTA"),
    # read
    (
        (
            r"(?:a|the) parameter (\?|:\w+) (?:needs a list of values as|has no value in) "
            r"`parameters`(?:, and :name a dictionary)?"
        ),
        r"the command line has no parameters: write the value instead of \1",
    ),
    (
        r"no value was given for the parameter (:\w+); pass a dictionary, such as \S+ value}",
        r"the command line has no parameters: write the value instead of \1",
    ),
    (r"; a parameter is written :x, with parameters=\{'x': value\}", ""),
    (r"; allow_out_of_range=True reads the versions that exist", ""),
    (r"table\.alter\.set_table_properties\([^)]*\) or (deltalog properties)", r"\1"),
    (r"(?:otherwise, )?update_incremental\(\) loads", "TABLE without @VERSION means"),
    (r"\bdoctor\(\) names", "deltalog doctor names"),
    # storage options, previews and catalogs
    (r"storage_options=(\{[^}]*\})", _keys),
    (r"\bpass storage_options with credentials", "pass credentials as options (-o)"),
    (r"\bas storage_options\b", "as options (-o)"),
    (
        r"\bgive azure_storage_account_name as a storage option\b",
        "add -o azure_storage_account_name=NAME",
    ),
    # Not what the user has written, which messages show in quotes.
    (
        r"(?<![\w'\"`])(?:with storage_options: pass them|storage_options)(?![\w'\"`])",
        "the options (-o)",
    ),
    (r"\ballows_local_files=True", "-o unity_allow_local_files=true is given"),
    (r"deltalog\.enable_preview\(([^)]*)\)", lambda f: f"set DELTALOG_PREVIEWS={_names(f)}"),
    (r"connect\(catalog=…\)", "--catalog"),
    (r"\bin connect\(catalog='glue'\)", "with deltalog sql --catalog glue"),
    (r"connect\(schema=…\)", "--schema"),
    (r"pass it, as in sql\(.*? or (deltalog sql)", r"name it with \1"),
    # branches
    (
        r"open a branch by DeltaTable\('([^']*)@NAME'\), or create it by branch\('NAME'\)",
        r"name a branch, as in \1@NAME; deltalog branch \1 NAME creates one",
    ),
    (r"; branch\(…, exist_ok=True\) opens it", "; TABLE@NAME opens it"),
    (r"\bdiscard the branch\b", "delete the branch (deltalog branch TABLE NAME --drop)"),
    (r"run publish\(\) again, or discard\(\)", "publish it again, or delete it"),
    (r"branches\(\) lists it, and drop_branch\(\)", "deltalog branch TABLE NAME --drop"),
    (r"drop_branch\('([^']*)'\)", r"deltalog branch TABLE \1 --drop"),
    # maintain
    (r"\bretention_hours=", "--retention-hours "),
    (r"\bretention_hours\b", "--retention-hours"),
    (r"\bpass enforce_retention_duration=False", "add --force"),
    (r"\bvacuum\(full=True, dry_run=False\)", "deltalog vacuum TABLE --full --delete"),
    (r"\boptimize\.purge\(\)", "deltalog optimize TABLE --purge"),
    (r"\boptimize\.cluster\(\)", 'deltalog sql -t t=TABLE "OPTIMIZE t"'),
    (r"\bcreate_checkpoint\(\)", "deltalog checkpoint TABLE"),
    (r"\brepair\(\)", 'deltalog sql -t t=TABLE "FSCK REPAIR TABLE t"'),
    (r"; pass allow_protocol_versions_increase=True to allow this", ""),
    (
        r"\balter\.add_feature\('([^']*)', allow_protocol_versions_increase=True\)",
        r"deltalog properties TABLE --set delta.feature.\1=supported",
    ),
    (
        r"\balter\.unset_table_properties\('([^']*)', raise_if_not_exists=False\)",
        r"deltalog properties TABLE --unset \1",
    ),
    (
        r"\balter\.upgrade_protocol\((\d), (\d)\)",
        (
            r"deltalog properties TABLE --set delta.minReaderVersion=\1 "
            r"--set delta.minWriterVersion=\2"
        ),
    ),
    # What has no command. The last lines: those above have replaced what has one.
    (
        r"\. ignore_missing_files=True restores",
        r"; --ignore-missing-files restores",
    ),
    (rf"(?<![\w.])(?:table\.)?({_METHODS}\((?:[^()]|\([^()]*\))*\))", r"the Python method \1"),
)
"""Pattern of an advice in Python → the same advice for the shell, in the order of use."""
_IN_SHELL: Final = tuple((re.compile(pattern), text) for pattern, text in _ADVICE)


def in_shell(text: str) -> str:
    """Return the text of an error or a finding with commands and options instead of Python."""
    for pattern, replacement in _IN_SHELL:
        text = pattern.sub(replacement, text)
    return text


# --- messages of typer


_MEANT: Final = {
    "--retention": "--retention-hours",
    "--retain": "--retention-hours",
    "--retain-hours": "--retention-hours",
    "--older-than": "--retention-hours",
    "--predicate": "--where",
    "--filter": "--where",
    "--filters": "--where",
    "--condition": "--where",
    "--select": "--columns",
    "--rows": "--limit",
    "--top": "--limit",
    "--lines": "--limit",
    "--n": "--limit",
    "--last": "--limit",
    "--max-rows": "--limit",
    "--sep": "--delimiter",
    "--separator": "--delimiter",
    "--delete": "--unset",
    "--remove": "--unset",
    "--fields": "--columns",
    "--input-format": "--from",
    "--file-format": "--from",
    "--on": "--key",
    "--keys": "--key",
    "--by": "--z-order",
    "--zorder": "--z-order",
    "--z-order-by": "--z-order",
    "--partition-columns": "--partition-by",
    "--partitions": "--partition-by",
    "--partition": "--partition-by",
    "--partition-filter": "--where",
    "--partition-filters": "--where",
    "--merge-schema": "--schema-mode",
    "--storage-option": "--option",
    "--storage-options": "--option",
    "--output": "--format",
    "--output-format": "--format",
}
"""Option of other programs → the option of deltalog, for the commands that have it."""
_OTHERWISE: Final = {
    "--partition": ("--where", 'use --where, as in --where "month = 1"'),
    "--yes": ("--delete", "the command does not ask; --delete deletes the files"),
    "-y": ("--delete", "the command does not ask; --delete deletes the files"),
    "--no-dry-run": ("--delete", "use --delete"),
    "--append": ("--mode", "use --mode append"),
    "--overwrite": ("--mode", "use --mode overwrite"),
}
"""Option of other programs → an option of the command, and what to do instead."""
_SQL: Final = "deltalog sql -t t=TABLE"
_STATEMENT: Final = "give the statement without an option, as in deltalog sql 'SELECT 1'"
_VERSION: Final = "the version is an argument, as in deltalog restore TABLE 3"
_RANGE: Final = "versions are arguments, as in deltalog {0} TABLE 3 5"
_OF_COMMANDS: Final[dict[str, dict[str, str]]] = {
    "sql": {
        **dict.fromkeys(("--query", "--execute", "-e", "--command", "-q", "--sql"), _STATEMENT),
        **dict.fromkeys(("--limit", "-n"), "write LIMIT n in the statement"),
        "--dry-run": "EXPLAIN and the statement show the plan, and change nothing",
    },
    "restore": {
        **dict.fromkeys(("--version", "--to", "--timestamp", "--as-of", "--at"), _VERSION),
        "--dry-run": "deltalog diff TABLE VERSION shows what has changed since then",
    },
    "cdf": dict.fromkeys(
        ("--start", "--end", "--from", "--to", "--starting-version", "--ending-version"),
        _RANGE.format("cdf"),
    ),
    "diff": dict.fromkeys(("--from", "--to", "--before", "--after"), _RANGE.format("diff")),
    "convert": dict.fromkeys(
        ("--partition-by", "--partition", "--partition-schema"),
        "the names of directories, such as month=1, name the partition columns",
    ),
    **dict.fromkeys(
        ("serve", "check"),
        dict.fromkeys(
            ("--config", "-c", "--file", "-f", "-i"),
            "the file of the configuration is an argument without an option",
        ),
    ),
    "vacuum": dict.fromkeys(
        ("--days", "--retention-days", "--retain-days"),
        "use --retention-hours, as in --retention-hours 72 for 3 days",
    ),
    "spark-archive": dict.fromkeys(
        ("--output", "--out", "-o", "--file", "--path", "--to", "--output-file"),
        "the archive is an argument without an option, as in deltalog spark-archive "
        "deltalog.tar.gz",
    ),
    "token": dict.fromkeys(
        ("--name", "--recipient", "--user", "--output", "--out", "-o", "--file"),
        "--profile FILE writes the token to a new profile; the configuration names recipients",
    ),
    "optimize": {
        **dict.fromkeys(
            ("--compact", "--bin-pack"), "without an option, the command combines small files"
        ),
        "--dry-run": "no row changes; deltalog restore TABLE VERSION undoes it",
    },
    "properties": {"--get": "without an option, the command shows all properties"},
    "doctor": dict.fromkeys(
        ("--fix", "--repair"),
        f"each finding says what to do; {_SQL} 'FSCK REPAIR TABLE t' removes missing files from "
        "the log",
    ),
    "schema": {
        **dict.fromkeys(("--ddl", "--sql"), f"{_SQL} 'SHOW CREATE TABLE t' prints the statement")
    },
    "files": {"--partitions": f"{_SQL} 'SHOW PARTITIONS t' lists partitions"},
    "scan": {"--count": "deltalog count TABLE counts rows"},
    "head": {"--count": "deltalog count TABLE counts rows"},
    "count": {"--by": f"{_SQL} 'SELECT …' groups rows"},
    "history": {"--reverse": "the newest commit is first; --json prints lines for other programs"},
    "write": {
        "--header": "the first line of a CSV file names its columns",
        **dict.fromkeys(
            ("--no-headers", "--noheader", "--without-header", "--skip-header"),
            "--no-header reads the first line of a CSV file as a row",
        ),
        **dict.fromkeys(
            ("--schema", "--types", "--dtypes", "--dtype", "--cast"),
            "use --type for each column, as in --type zip=string",
        ),
    },
    "": {"-v": "use --version", "-V": "use --version"},
}
"""Command → the option of other programs → what to do instead."""
_OF_ALL: Final = {
    **dict.fromkeys(
        ("--order", "--order-by", "--sort", "--sort-by", "--offset", "--skip", "--group-by"),
        f"{_SQL} 'SELECT …' sorts and groups rows",
    ),
    **dict.fromkeys(("--out", "--to", "--output-file"), "use --csv > FILE, or --json > FILE"),
    **dict.fromkeys(("--yes", "-y", "--no-input"), "the command does not ask"),
    **dict.fromkeys(
        ("-t", "--table", "--path", "--uri"), "the table is an argument without an option"
    ),
}
"""Option of other programs → what to do instead, for the commands without other advice."""
_OF_VERSIONS: Final = frozenset({"--version", "--as-of", "--timestamp", "--at"})
"""Options of other programs for what follows a table's name here."""
_MERGES: Final = "deltalog sql -t t=TABLE -t s=SOURCE 'MERGE INTO t USING s ON …'"
_VALUES: Final = (
    (re.compile(r"^Value error, "), ""),
    (
        re.compile(r"^('(?:-|[^']*\.sql)') is not one of 'table'.*"),
        r"\1 is not an output format; --file FILE (-i) runs the statements of a file",
    ),
    (
        re.compile(r"^('parquet' is not one of 'table'.*?)\.?$"),
        r"\1; arrow keeps all types, and to_pandas().to_parquet(…) writes Parquet in Python",
    ),
    (
        re.compile(r"^('(?:merge|upsert)' is not one of 'error'.*?)\.?$"),
        rf"\1; {_MERGES} merges rows",
    ),
    (re.compile(r"Input should be a valid integer(?:, .*)?"), "expected a whole number"),
    (re.compile(r"Input should be a valid number(?:, .*)?"), "expected a number"),
    (re.compile(r"Input should be (greater than|less than)"), r"expected a number \1"),
)
"""Message of typer about a value → the message of deltalog."""


SUBCOMMANDS_MEANT: Final = {
    **dict.fromkeys(
        ("start", "run", "server", "up"), "deltalog share serve CONFIG starts a server."
    ),
    **dict.fromkeys(
        ("list", "ls", "shares", "tables", "validate", "test"),
        "deltalog share check CONFIG --tables checks what a configuration shares; SharingClient "
        "in Python reads shares.",
    ),
    **dict.fromkeys(
        ("profile", "create-token", "recipient", "add"),
        "deltalog share token --profile FILE makes the profile of a recipient.",
    ),
}
"""Command after `share` → what to use instead."""
COMMANDS_MEANT: Final = {
    **dict.fromkeys(
        ("describe", "desc", "detail", "details", "info", "stat", "metadata", "size", "inspect"),
        "deltalog show TABLE shows the properties and columns of a table.",
    ),
    **dict.fromkeys(
        ("ls", "list", "tables", "databases"),
        "deltalog files TABLE lists the data files of a table, and deltalog sql --catalog "
        "DIRECTORY 'SHOW TABLES IN schema' lists tables.",
    ),
    **dict.fromkeys(
        ("cat", "read", "select", "print", "view", "tail", "less", "dump", "export", "query"),
        f"deltalog head TABLE and deltalog scan TABLE print rows; {_SQL} 'SELECT …' queries them.",
    ),
    "delete": f"{_SQL} 'DELETE FROM t WHERE …' deletes rows.",  # noqa: S608  # it is shown
    "update": f"{_SQL} 'UPDATE t SET … WHERE …' updates rows.",  # noqa: S608  # it is shown
    **dict.fromkeys(
        ("merge", "upsert"),
        f"{_SQL} -t s=SOURCE 'MERGE INTO t USING s ON … WHEN …' merges rows.",
    ),
    **dict.fromkeys(
        ("append", "insert", "load", "import", "ingest", "copy", "overwrite"),
        "deltalog write TABLE FILE --mode append writes rows; the other mode is overwrite.",
    ),
    **dict.fromkeys(
        ("create", "init", "new", "make"),
        "deltalog write TABLE FILE makes a table with the rows of a file; deltalog sql "
        "'CREATE TABLE delta.`TABLE` (id BIGINT)' makes an empty one.",
    ),
    **dict.fromkeys(
        ("alter", "clone"), f"{_SQL} STATEMENT runs statements, such as ALTER TABLE t …"
    ),
    **dict.fromkeys(
        ("drop", "rm", "remove"),
        "Delete the directory of a table; deltalog sql --catalog CATALOG 'DROP TABLE …' drops a "
        "table of a catalog.",
    ),
    **dict.fromkeys(("compact", "zorder", "z-order", "purge"), "Use deltalog optimize TABLE."),
    **dict.fromkeys(("log", "versions", "commits"), "Use deltalog history TABLE."),
    **dict.fromkeys(("rollback", "revert", "undo"), "Use deltalog restore TABLE VERSION."),
    **dict.fromkeys(("fsck", "check", "verify", "validate"), "Use deltalog doctor TABLE."),
    "repair": f"{_SQL} 'FSCK REPAIR TABLE t' removes missing files from the log.",
    **dict.fromkeys(("changes", "cdc"), "Use deltalog cdf TABLE VERSION."),
    **dict.fromkeys(("columns", "fields"), "Use deltalog schema TABLE."),
    **dict.fromkeys(("rows", "wc", "length"), "Use deltalog count TABLE."),
    **dict.fromkeys(("cleanup", "clean"), "Use deltalog vacuum TABLE."),
    "version": "Use deltalog --version.",
}
"""Command of other programs → what to use instead."""


def help_meant(group: Any, words: Sequence[str], path: str = "deltalog") -> str:
    """Return how to ask for help on a command, for those who write `deltalog help COMMAND`.

    Args:
        group: the group of commands in which the words begin.
        words: what follows `help`.
        path: how the group is called.
    """
    for word in words:
        known = getattr(group, "commands", {})
        if not known or word.startswith("-"):
            break
        if word not in known:
            meant = COMMANDS_MEANT if path == "deltalog" else SUBCOMMANDS_MEANT
            close = get_close_matches(word, known, 1)
            better = f"use {path} {close[0]} --help" if close else f"{path} --help lists commands"
            return meant.get(word.lower(), f"{path} has no command {word!r}: {better}.")
        group, path = known[word], f"{path} {word}"
    return f"Use {path} --help."


@contextmanager
def plain_usage(options: Callable[[], set[str]]) -> Iterator[None]:
    """Change the messages of typer about options and values that are raised in a block.

    They are printed as errors of commands are: `error:`, and a hint in a line below.

    Args:
        options: returns the options of all commands.
    """
    try:
        yield
    except typer.BadParameter as error:
        for pattern, replacement in _VALUES:
            error.message = pattern.sub(replacement, error.message)
        _print_plainly(error)
        raise
    except Exception as error:
        if hasattr(error, "possibilities"):  # NoSuchOption, which typer does not export
            _explain_option(error, options)
        elif found := _EXTRA.match(getattr(error, "message", "")):
            _explain_argument(error, found[1])
        _print_plainly(error)
        raise


def _print_plainly(error: Any) -> None:
    """Make typer print an error about the usage without the lines `Usage` and `Try`."""
    # The error of a group without arguments is its help.
    if not hasattr(error, "show") or type(error).__name__ == "NoArgsIsHelpError":
        return
    context = getattr(error, "ctx", None)
    hint = "" if context is None else f"\n  {context.command_path} --help shows what it accepts"
    if context is not None and type(error).__name__ == "MissingParameter":
        hint = _example_of(context) + hint

    def show(file: Any = None) -> None:
        typer.echo(f"error: {error.format_message()}{hint}", file=file, err=file is None)

    error.show = show


def _example_of(context: Any) -> str:
    """Return the example in the help of a command as a line, or an empty string."""
    found = re.search(r"Example: (.+)", context.command.help or "")
    return f"\n  for example: {found[1]}" if found else ""


_EXTRA: Final = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)$", re.DOTALL)
_CONDITION: Final = re.compile(r"[<>=!]|\bis\b", re.IGNORECASE)


def _explain_argument(error: Any, extra: str) -> None:
    """Add to an error about unexpected arguments which option they are probably meant for."""
    context = error.ctx
    if context is None:
        return
    known = options_of(context.command)
    has_table = any(one.name == "table" for one in context.command.params)
    if half := _half_pair(context):
        # The argument is not shown, because it may be a secret.
        error.message = half
        return
    advice = _continued(context, extra)
    if not advice and not Path(extra).exists():  # another table or file is no value of an option
        advice = _option_for(extra, known)
    if not advice and context.info_name == "sql":
        advice = "statements are one argument in quotes, separated by semicolons"
    elif not advice and context.info_name == "token":
        advice = "--profile FILE writes the token to a new profile of a recipient"
    elif not advice and has_table:
        name = context.info_name
        takes = "one file" if name == "write" else "one table"
        advice = f"the command takes {takes}: run deltalog {name} for each"
        if extra.removeprefix("v").isdecimal():
            advice = f"write a version after the table, as in TABLE@v{extra.removeprefix('v')}"
    advice = f"; {advice}" if advice else ""
    error.message = f"expected no more arguments, found {extra!r}{advice}"


_LISTS: Final = ("--columns", "--z-order", "--partition-by")
"""Options whose values are separated by commas."""
_REPEATED: Final = ("--key", "--check", "--unset")
_GOES_ON: Final = re.compile(r"\s*([<>=!]|(is|in|like|between|and|or|not)\b)", re.IGNORECASE)


def _continued(context: Any, extra: str) -> str:
    """Return how to write arguments that continue an option, as in `--columns id name`.

    Returns:
        The advice; empty if no option is given that they may continue.
    """
    given = {
        name: context.params[one.name]
        for one in context.command.params
        for name in getattr(one, "opts", ())
        if context.params.get(one.name)
    }
    if "--where" in given and _GOES_ON.match(extra):
        condition = _with_quotes(f"{given['--where']} {extra}")
        return f'use --where "{condition}"'
    if Path(extra).exists():  # another table or file
        return ""
    words = extra.split()
    for name in _LISTS:
        if name in given:
            values = given[name] if isinstance(given[name], list | tuple) else [given[name]]
            return f"commas separate names: use {name} {','.join([*values, *words])}"
    for name in _REPEATED:
        if name in given:
            values = " ".join(f"{name} {word}" for word in [*given[name], *words])
            return f"repeat the option: use {values}"
    return ""


_VALUE: Final = re.compile(r"([<>=!]\s*)([^<>=!\s].*)$", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?")
_WORDS: Final = frozenset({"true", "false", "null"})


def _with_quotes(condition: str) -> str:
    """Put the value of a comparison into the quotes that the shell has removed."""
    found = _VALUE.search(condition)
    if found is None or _NUMBER.fullmatch(found[2]) or found[2].lower() in _WORDS:
        return condition
    value = found[2].strip("'").replace("'", "''")
    return f"{condition[: found.start(2)]}'{value}'"


def quoting_advice(error: object, options: Mapping[str, Any]) -> str:
    """Return that a condition needs quotes, if the shell has probably cut it, as `id>1`.

    Args:
        error: the error of a command.
        options: the options of the command.
    """
    if "a condition is expected here" not in str(error):
        return ""
    for option, name in (("where", "--where"), ("check", "--check")):
        given = options.get(option)
        for text in [given] if isinstance(given, str) else given or ():
            if re.fullmatch(r"[\w.`]+", text):
                return (
                    "; a shell takes > and < as redirections: quote the condition, as in "
                    f"{name} '{text} > 1'"
                )
    return ""


def _half_pair(context: Any) -> str:
    """Return an error about a value without `=`, as in `--set key value`; empty if none."""
    for one in context.command.params:
        wanted = str(one.metavar).strip("<>")
        for given in (context.params.get(one.name) or ()) if "=" in wanted else ():
            if "=" not in given:
                name, example = one.opts[0], wanted.partition("=")[2]
                return f"{name} expects {wanted}, as in {name} {given}={example}, found {given!r}"
    return ""


def _option_for(extra: str, known: set[str]) -> str:
    """Return which option to use for an argument; empty if none fits."""
    if extra.isdecimal():
        names = ["--limit", "--retention-hours", "--port"]
    elif re.fullmatch(r"[\w.]+=\S*", extra) and "--set" in known:
        names = ["--set"]
    elif _CONDITION.search(extra):
        names = ["--where"]
    else:
        names = ["--columns", "--z-order"]
    name = next((one for one in names if one in known), "")
    text = f'"{extra}"' if name == "--where" else ",".join(extra.split())
    return f"use {name} {text}" if name else ""


def _explain_option(error: Any, options: Callable[[], set[str]]) -> None:
    """Add to an error about an unknown option what to use instead, if that is known."""
    name, context = error.option_name, error.ctx
    command = None if context is None else context.command
    known = set() if command is None else options_of(command)
    is_before = context is not None and context.parent is None
    if is_before and _MEANT.get(name, name) in options():
        advice = " before the command; give it after the command and its arguments"
    else:
        names = [] if command is None else [one.name for one in command.params]
        title = "" if is_before or context is None else str(context.info_name)
        found = _instead_of(name, title, known, has_table="table" in names)
        advice = f"; {found}" if found else ""
    if advice:
        error.message += advice
        error.possibilities = None
        return
    bare = {one.lstrip("-"): one for one in ("--help", *sorted(known))}
    error.possibilities = [bare[one] for one in get_close_matches(name.lstrip("-"), bare)] or None


def _instead_of(name: str, command: str, known: set[str], *, has_table: bool) -> str:
    """Return what to use instead of an option; empty if that is not known."""
    if advice := _OF_COMMANDS.get(command, {}).get(name):
        return advice
    if name in _OF_VERSIONS and has_table:
        return "write the version after the table, as in TABLE@v1 or TABLE@2024-01-31"
    if (meant := _MEANT.get(name)) in known:
        return f"use {meant}"
    if name[1:].isdecimal() and has_table:
        limit = f"use --limit {name[1:]}"
        return limit if "--limit" in known and command != "cdf" else "versions count from 0"
    needed, advice = _OTHERWISE.get(name, (None, ""))
    if needed in known:
        return advice
    return _OF_ALL.get(name, "") if command else ""


def options_of(command: Any) -> set[str]:
    """Return the options of a command of typer, such as `--where`."""
    return {name for each in command.params for name in getattr(each, "opts", ())}
