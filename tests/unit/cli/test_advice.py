"""Advice in errors of commands: how to write it in the shell."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deltalog import DeltaTable, write_deltalake
from deltalog.cli.advice import in_shell
from deltalog.errors import DeltaError
from tests.support.command_line import run

IN_PYTHON = re.compile(r"\w+=(True|False|None|['\[{])|\b\w+\(['…)]|DeltaTable|write_deltalake")


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("head {t} --columns|id name", 2, "commas separate names, as in id,name"),
        ("cdf {t} 0", 3, "deltalog properties TABLE --set delta.enableChangeDataFeed=true"),
        ("diff {t} zero one", 2, "such as 3; a branch follows the table's name, as in TABLE@BRAN"),
        ("restore {t} b", 2, "such as 3; a branch follows the table's name, as in TABLE@BRANCH"),
        ("cdf {t} yesterday", 2, "2024-01-31; write the date"),
        ("restore {t} append", 2, "; deltalog write TABLE FILE --mode append writes rows"),
        ("publish {t}", 2, "{t}@NAME; deltalog branch {t} NAME creates one"),
        ("write {t} {d}/new.csv", 3, "use --mode append or --mode overwrite"),
        ("write {t} {d}/new.csv --mode append", 3, "; --schema-mode merge adds new columns"),
        ("write {t} {d}/new.csv --mode overwrite -p x", 2, "with --partition-by x: the table's"),
        ("show {d}/nothing", 3, "; deltalog write makes a new table"),
        ("show {d}", 3, "; deltalog write makes a table"),
        ("show {d}/files", 3, "; deltalog convert converts them to a table"),
        ("optimize {t}@v0", 2, "; TABLE without @VERSION means the latest version"),
        ("branch {t} b", 3, ": it exists; TABLE@NAME opens it"),
        ("vacuum {t} --retention-hours nan", 2, "with --retention-hours nan: expected"),
        ("vacuum {t} --retention-hours -1", 2, ": --retention-hours must not be negative"),
        ("vacuum {t} --retention-hours 0", 2, "; if there are none, add --force"),
        ("count {t} --where|id = ?", 2, "has no parameters: write the value instead of ?"),
        ("count {t} --where|id = :x", 2, "has no parameters: write the value instead of :x"),
        ("count {t} --where|id = $1", 2, "'$' has no meaning in an expression\n"),
        ("sql|SELECT ?", 2, "has no parameters: write the value instead of ?"),
        ("sql|SELECT :x", 2, "has no parameters: write the value instead of :x"),
        ("sql|USE s", 2, ": this session has no catalog; --catalog provides one"),
        ("sql|SELECT * FROM t", 3, "deltalog sql -t t=LOCATION"),
        ("sql --catalog {t}/nope|SHOW TABLES", 2, "there is no such directory"),
        ("sql -t t={t}|SELECT TOP 5 * FROM t", 2, "write LIMIT n at the end"),
        ("count {t} --where|WHERE id = 1", 2, "leave out WHERE"),
    ],
)
def test_advice(tmp_path: Path, command: str, code: int, words: str) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1], "name": ["n1"]})
    DeltaTable(place).branch("b")
    (tmp_path / "new.csv").write_text("id,other\n1,2\n")
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "files" / "a.parquet")
    options, _, last = command.format(t=place, d=tmp_path).partition("|")
    found = run(*options.split(), *([last] if last else []), code=code)
    assert words.format(t=place) in found.stderr
    assert not IN_PYTHON.search(found.stderr)
    assert DeltaTable(place).version() == 0


def test_advice_of_the_doctor(tmp_path: Path) -> None:
    place = tmp_path / "t"
    write_deltalake(place, {"id": [1]}, configuration={"delta.appendOnly": "false"})
    commit = place / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text("utf-8").replace("delta.appendOnly", "delta.nonsense"))
    commit.with_suffix(".crc").unlink()
    write_deltalake(place, {"id": [2]}, mode="append")
    for file in DeltaTable(place).file_uris()[:1]:
        Path(file).unlink()
    for arguments in ((), ("--json",)):
        told = run("doctor", place, *arguments, code=1).stdout.replace('\\"', '"')
        assert 'or deltalog sql -t t=TABLE "FSCK REPAIR TABLE t" removes such files' in told
        assert "remove it: deltalog properties TABLE --unset delta.nonsense" in told
        assert not IN_PYTHON.search(told)
    run("sql", "-t", f"t={place}", "FSCK REPAIR TABLE t")
    run("properties", place, "--unset", "delta.nonsense")
    run("doctor", place)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "add it with alter.add_feature('typeWidening', allow_protocol_versions_increase=True)",
            "add it with deltalog properties TABLE --set delta.feature.typeWidening=supported",
        ),
        ("it is a preview: deltalog.enable_preview('a', 'b')", "set DELTALOG_PREVIEWS=a,b"),
        (
            "open the table with storage_options={'trusted_locations': ['s3://b/t']}",
            "open the table with -o trusted_locations=s3://b/t",
        ),
        (
            "the name schema.table in connect(catalog='glue')",
            "the name schema.table with deltalog sql --catalog glue",
        ),
        (
            "vacuum has deleted them. ignore_missing_files=True restores the files",
            "; --ignore-missing-files restores the files",
        ),
        ("in the environment or in storage_options", "in the environment or in the options (-o)"),
        ("and its secret, as storage_options", "and its secret, as options (-o)"),
        ("give azure_storage_account_name as a storage option", "azure_storage_account_name=NAME"),
        ("pass storage_options with credentials", "pass credentials as options (-o)"),
        (
            "or open one of these versions by DeltaTable(…, version=…)",
            "or name one of these versions, as in TABLE@v0",
        ),
        ("since 1970, pass starting_timestamp='2024-01-01Z'", "since 1970, pass '2024-01-01Z'"),
        ("another program has vacuumed; discard the branch", "--drop)"),
        ("write_deltalake or DeltaTable.create makes a new table", "write makes a new table"),
        ("cleanup_metadata() deletes them", "the Python method cleanup_metadata() deletes them"),
        (
            "files: update(updates={'size(a)': '`size(a)`'})",
            "files: the Python method update(updates={'size(a)': '`size(a)`'})",
        ),
        (
            "alter.upgrade_protocol(3, 7): they",
            "--set delta.minReaderVersion=3 --set delta.minWriterVersion=7: they",
        ),
    ],
)
def test_advice_in_the_words_of_the_shell(text: str, told: str) -> None:
    assert in_shell(text).endswith(told)


def test_the_value_after_half_a_pair_is_not_shown(tmp_path: Path) -> None:
    shown = run("head", tmp_path, "-o", "aws_secret_access_key", "hidden", code=2).stderr
    assert "hidden" not in shown


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("cdf", "cdf [OPTIONS] TABLE [START] [END]"),
        ("share serve", "share serve [OPTIONS] CONFIG"),
        ("completion", "completion [OPTIONS] SHELL"),
    ],
)
def test_the_usage_names_arguments_in_capitals(command: str, usage: str) -> None:
    assert run(*command.split(), "--help").stdout.partition("\n")[0].endswith(usage)


def test_a_feature_is_added_as_the_advice_says(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1]})
    run("properties", place, "--set", "delta.feature.typeWidening=supported")
    assert "typeWidening" in (DeltaTable(place).protocol().writer_features or ())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--json count t", "No such option: --json before the command; give it after the command"),
        ("--nothing count t", "No such option: --nothing"),
        ("vacuum t --retain 0", "No such option: --retain; use --retention-hours"),
        ("vacuum t --days 3", "No such option: --days; use --retention-hours, as in --ret"),
        ("optimize t --target-size big", "expected a size such as 134217728 or 128mb, found"),
        ("optimize t --verbose", " optimize --help shows what it accepts"),
        ("vacuum t --no-dry-run", "use --delete"),
        ("vacuum t --delete --dry-run", "cannot use both --delete and --dry-run"),
        ("vacuum t --yes", "the command does not ask; --delete deletes the files"),
        ("optimize t --yes", "No such option: --yes; the command does not ask"),
        ("optimize t --verbose", "No such option: --verbose\n"),
        ("optimize t --partition m=1", 'use --where, as in --where "month = 1"'),
        ("optimize t --predicate m=1", "use --where"),
        ("optimize t --where id=1", "expected a condition on partition columns, found id"),
        ("write t f --partition a", "use --partition-by"),
        ("head t --sort id", "deltalog sql -t t=TABLE 'SELECT …' sorts and groups rows"),
        ("scan t --to x.csv", "use --csv > FILE, or --json > FILE"),
        ("restore t --version 0", "the version is an argument, as in deltalog restore TABLE 3"),
        ("cdf t --start 0", "versions are arguments, as in deltalog cdf TABLE 3 5"),
        ("convert t --partition-by m", "the names of directories"),
        ("properties t --get a", "the command shows all properties"),
        ("sql --query x", "give the statement without an option"),
        ("sql -e x", "give the statement without an option"),
        ("sql --limit 2 x", "write LIMIT n in the statement"),
        ("-v", "No such option: -v; use --version"),
        ("write t f --append", "use --mode append"),
        (
            "write t f --mode merge",
            "'merge' is not one of 'error', 'append', 'overwrite', 'ignore'; deltalog sql",
        ),
        ("scan t --filter x", "No such option: --filter; use --where"),
        ("history t --filter x", "No such option: --filter"),
        ("scan t --limit x", "'--limit' / '-n': expected a whole number"),
        ("scan t --limit -1", "expected a number greater than or equal to 0"),
        ("vacuum t --hours x", "expected a number"),
        ("branch t b --expires-days 0", "expected a number greater than or equal to 1"),
        ("completion powershell", "'SHELL': 'powershell' is not one of 'bash', 'zsh', 'fish'."),
        ("properties t --set a", "cannot use --set 'a': expected key=value, with a value after ="),
        ("properties t --set a b", "--set expects key=value, as in --set a=value, found 'a'"),
        ("head t -o key b", "--option expects key=value, as in --option key=value, found 'key'"),
        ("sql -t a b x", "--table expects name=location, as in --table a=location"),
        ("create t", "deltalog sql 'CREATE TABLE delta.`TABLE` (id BIGINT)' makes an empty one"),
        ("spark-archive --output x.tar.gz", "the archive is an argument without an option"),
        ("head t -5", "No such option: -5; use --limit 5"),
        ("cdf t -1", "No such option: -1; versions count from 0"),
        ("history t --last 3", "use --limit"),
        ("scan t --order id", "'SELECT …' sorts and groups rows"),
        ("scan t --count", "deltalog count TABLE counts rows"),
        ("schema t --ddl", "'SHOW CREATE TABLE t' prints the statement"),
        ("files t --partitions", "'SHOW PARTITIONS t' lists partitions"),
        ("write t f.csv --sep ;", "use --delimiter"),
        ("write t f.csv --header", "the first line of a CSV file names its columns"),
        ("write t f.csv --noheader", "--no-header reads the first line of a CSV file as a row"),
        ("write t f.csv --dtypes x", "use --type for each column, as in --type zip=string"),
        ("write t f.csv --type zip string", "--type expects column=type, as in --type zip=type"),
        ("head t t -c id", "the command takes one table: run deltalog head for each"),
        ("write t f.csv g.csv", "the command takes one file: run deltalog write for each"),
        ("optimize t --dry-run", "deltalog restore TABLE VERSION undoes it"),
        ("doctor t --fix", "'FSCK REPAIR TABLE t' removes missing files from the log"),
        ("properties t --delete a", "use --unset"),
        ("restore t 0 --dry-run", "deltalog diff TABLE VERSION shows"),
        ("share start x", "deltalog share serve CONFIG starts a server"),
        ("share list", "deltalog share check CONFIG --tables checks"),
        ("help head", "Use deltalog head --help."),
        ("help", "Use deltalog --help."),
        ("help share serve", "Use deltalog share serve --help."),
        ("share help serve", "Use deltalog share serve --help."),
        ("help head -n 5", "Use deltalog head --help."),
        ("help heed", "deltalog has no command 'heed': use deltalog head --help."),
        ("help nonsense", "deltalog has no command 'nonsense': deltalog --help lists commands."),
        ("help share start", "deltalog share serve CONFIG starts a server"),
        ("help ls", "deltalog files TABLE lists the data files"),
        ("share chexk x", "Did you mean 'check'?"),
        ("completion bash x", "expected no more arguments, found 'x'"),
        ("head", "Missing argument 'TABLE'"),
        ("restore t", "for example: deltalog restore flights 3"),
        ("properties t --set =3", "cannot use --set: expected key=value, with a key before ="),
    ],
)
def test_invalid_arguments(tmp_path: Path, arguments: str, words: str) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1]})
    given = [place if word == "t" else word for word in arguments.split()]
    shown = run(*given, code=2).stderr
    assert words in shown
    assert not re.search("Value error|Input should|possible", shown, re.IGNORECASE)


def test_files_of_statements_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "image.sql").write_bytes(b"SELECT '\xff'")
    found = run("sql", "--file", tmp_path / "image.sql", code=2)
    assert found.stderr == f"error: cannot read '{tmp_path}/image.sql': it is not a text in UTF-8\n"
    assert "directory" in run("sql", "--file", tmp_path, code=2).stderr


def test_an_archive_in_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    place = tmp_path / "no" / "a.tar.gz"
    shown = run("spark-archive", place, code=2).stderr
    assert shown == (
        f"error: cannot write the archive '{place}': there is no directory '{place.parent}'\n"
    )


def test_a_configuration_that_does_not_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run("share", "check", tmp_path / "no.yaml", code=2).stderr + capsys.readouterr().err
    assert shown == (
        f"error: cannot read the configuration {tmp_path}/no.yaml: it does not exist; "
        "expected a YAML or TOML file\n"
    )


def test_the_list_of_commands_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("--help").stdout
    assert "checkpoint" in shown
    assert "..." not in shown.partition("Read rows:")[2]


def test_a_version_may_begin_with_v(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1]})
    write_deltalake(place, {"id": [2]}, mode="append")
    run("restore", place, "v0")
    assert DeltaTable(place).count() == 1


def test_only_similar_options_are_suggested(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    assert "(Possible options: --help)" in run("head", place, "--hlep", code=2).stderr
    assert "Possible" not in run("show", place, "--verbose", code=2).stderr


def test_a_table_is_not_a_command(tmp_path: Path) -> None:
    assert f"as in deltalog show {tmp_path}" in run(tmp_path, code=2).stderr


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ("head t 5", "found '5'; use --limit 5"),
        ("history t 5", "use --limit 5"),
        ("head t id n", "use --columns id,n"),
        ("head t id=1", 'use --where "id=1"'),
        ("head t --columns id n", "found 'n'; commas separate names: use --columns id,n"),
        ("scan t -c id,n x -c y", "use --columns id,n,y,x"),
        ("optimize t --z-order id n", "commas separate names: use --z-order id,n"),
        ("write t f.csv -p id n", "commas separate names: use --partition-by id,n"),
        ("diff t 0 1 --key id n", "repeat the option: use --key id --key n"),
        ("doctor t --check a b c", "repeat the option: use --check a --check b --check c"),
        ("properties t --unset a b", "repeat the option: use --unset a --unset b"),
        ("count t --where id = 1", 'use --where "id = 1"'),
        ("head t -c id -w n IS NULL", 'use --where "n IS NULL"'),
        ("properties t k=v", "use --set k=v"),
        ("count a b", "the command takes one table: run deltalog count for each"),
        ("show t 3", "write a version after the table, as in TABLE@v3"),
        ("vacuum t 168", "use --retention-hours 168"),
        ("optimize t id", "use --z-order id"),
        ("optimize t --compact", "without an option, the command combines small files"),
        ("head -t x", "the table is an argument without an option"),
        ("scan t --format parquet", "arrow keeps all types, and to_pandas().to_parquet(…) writes"),
    ],
)
def test_extra_arguments_are_meant_for_options(arguments: str, advice: str) -> None:
    assert advice in run(*arguments.split(), code=2).stderr


def test_results_are_shown_in_words(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1]})
    write_deltalake(place, {"id": [2]}, mode="append")
    assert run("diff", place, 0, 1).stdout.startswith(f"Differences of '{place}' from version 0")
    assert run("show", place).stdout.splitlines()[0].split() == ["format", "delta"]


@pytest.mark.parametrize("size", ["1gb", "512MB", "64MiB", "1000000"])
def test_a_target_size_may_have_a_unit(tmp_path: Path, size: str) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1]})
    run("optimize", place, "--target-size", size)


@pytest.mark.parametrize(
    "arguments", ["vacuum t --nothing", "count", "nothing", "scan t --limit x", "share serve"]
)
def test_errors_of_usage_look_like_other_errors(arguments: str) -> None:
    shown = run(*arguments.split(), code=2).stderr
    assert shown.startswith("error: ")
    assert "Usage:" not in shown
    assert "Try " not in shown
    assert "--help shows what it accepts" in shown


def test_the_help_of_commands_that_change_a_table_names_no_versions() -> None:
    assert "table@v3" in run("scan", "--help").stdout
    for command in ("write", "optimize", "vacuum"):
        assert "table@v3" not in run(command, "--help").stdout


def test_a_condition_that_the_shell_has_cut(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1], "name": ["a"], "flag": [True]})
    DeltaTable(place).branch("b")
    quoted = "a shell takes > and < as redirections: quote the condition, as in {} '{} > 1'"
    for command in ("count", "head", "scan", "explain", "files"):
        shown = run(command, place, "--where", "id", code=2).stderr
        assert "id is of type long, but a condition is expected here; " in shown
        assert quoted.format("--where", "id") in shown
    assert quoted.format("--where", "name") in run("count", place, "-w", "name", code=2).stderr
    shown = run("publish", f"{place}@b", "--check", "id", code=2).stderr
    assert quoted.format("--check", "id") in shown
    assert run("count", place, "--where", "flag").stdout == "1\n"
    assert "redirections" not in run("count", place, "--where", "id + 1", code=2).stderr
    with pytest.raises(DeltaError) as caught:
        DeltaTable(place).count(predicate="id")
    assert "redirections" not in str(caught.value)


def test_versions_that_are_misspelt(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, {"id": [1]})
    for version in ("vone", "version0", "V0", "v-1"):
        shown = run("head", f"{place}@{version}", code=3).stderr
        assert f"a version is written with v and its number, as in {place}@v0" in shown
    for version in ("-1", "1.0"):
        shown = run("head", f"{place}@{version}", code=3).stderr
        assert f"versions are v and a whole number from 0, as in {place}@v0" in shown
    assert run("head", f"{place}@nightly", code=3).stderr.endswith("the table has no branches\n")


def test_a_directory_of_csv_files_is_not_converted(tmp_path: Path) -> None:
    (tmp_path / "a b.csv").write_text("id\n1\n")
    shown = run("convert", tmp_path, code=2).stderr
    assert shown == (
        f"error: cannot convert {tmp_path}: it contains no Parquet files, but a b.csv; "
        f"deltalog write TABLE '{tmp_path}/a b.csv' makes a table with its rows\n"
    )
