"""What `deploy/` says is what the server does: image, unit, configuration, dashboard."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deltalog import write_deltalake
from deltalog.sharing.server.config_file import load_config
from tests.support.asgi import ask
from tests.support.sharing import TOKEN, actions, sharing

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
KEY = "the key of all processes"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The example's configuration for a table that is there, with its secret in a file."""
    rows = pa.table({"carrier": ["UA", "AA"]})
    write_deltalake(tmp_path / "flights", rows)
    text = (DEPLOY / "sharing.yaml").read_text("utf-8")
    path = tmp_path / "sharing.yaml"
    path.write_text(text.replace("/srv/tables/flights", str(tmp_path / "flights")))
    path.chmod(0o640)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "secrets" / "signing-key").write_text(f"{KEY}\n")
    (tmp_path / "secrets" / "signing-key").chmod(0o400)
    return tmp_path


def _environment(home: Path) -> dict[str, str]:
    return {
        "CREDENTIALS_DIRECTORY": str(home / "secrets"),
        "CACHE_DIRECTORY": str(home / "cache"),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT / "src"),
    }


def _instructions() -> list[tuple[str, str]]:
    """The instructions of the image, continued lines joined."""
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def _of_image(name: str) -> list[str]:
    return [rest for instruction, rest in _instructions() if instruction == name]


def _unit() -> dict[str, dict[str, list[str]]]:
    """The sections of the unit; a key may stand more than once."""
    sections: dict[str, dict[str, list[str]]] = {}
    section = ""
    for line in (DEPLOY / "deltalog-sharing@.service").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            sections[section] = {}
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            sections[section].setdefault(key, []).append(value)
    return sections


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def _running(
    command: list[str], environment: Mapping[str, str], port: int, log: Path
) -> Iterator[str]:
    """The URL of a process that was started by a command line as it stands in a file."""
    with log.open("wb") as errors:
        process = subprocess.Popen(command, env=dict(environment), stderr=errors, cwd="/")
    try:
        for _ in range(1200):
            assert process.poll() is None, log.read_text()
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health/live", timeout=5).close()
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        assert process.wait(30) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def _status(url: str) -> int:
    with urllib.request.urlopen(url, timeout=20) as reply:  # noqa: S310 - loopback
        return int(reply.status)


def test_the_example_is_a_configuration(home: Path) -> None:
    config = load_config(home / "sharing.yaml", _environment(home))
    assert config.signing_keys == (KEY.encode(),)
    assert config.cache_directory == str(home / "cache")
    assert config.readiness.tables == ("travel.default.flights",)


def test_the_image_is_made_of_what_is_here() -> None:
    for sources in _of_image("COPY"):
        *names, _ = sources.split()
        if not names[0].startswith("--from"):
            assert [name for name in names if not (ROOT / name).exists()] == []
    (install,) = [line for line in _of_image("RUN") if "pip install" in line]
    (extras,) = re.findall(r'"\.\[([\w,]+)\]"', install)
    known = (ROOT / "pyproject.toml").read_text("utf-8")
    assert [name for name in extras.split(",") if f"\n{name} = [" not in known] == []
    assert "-c constraints.txt" in install


def test_the_image_runs_nothing_as_root() -> None:
    (user,) = _of_image("USER")
    assert user.isdecimal()
    assert int(user) > 0
    assert any(f"--uid {user} " in line for line in _of_image("RUN"))
    names = [name for name, _ in _instructions()]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert not re.search(r"(?i)(?:token|secret|password|key)=", " ".join(_of_image("ENV")))


def test_the_command_of_the_image_serves(home: Path) -> None:
    (entry,), (command,), (exposed,) = (_of_image(one) for one in ("ENTRYPOINT", "CMD", "EXPOSE"))
    line: list[str] = [*json.loads(entry), *json.loads(command)]
    assert line[0] == "python"
    assert line[line.index("--port") + 1] == exposed
    assert line[line.index("--host") + 1] == "0.0.0.0"  # noqa: S104 - of a container
    place = line[line.index("serve") + 1]
    port = _free_port()
    swapped = {"python": sys.executable, exposed: str(port), place: str(home / "sharing.yaml")}
    swapped["0.0.0.0"] = "127.0.0.1"  # noqa: S104
    command_line = [swapped.get(word, word) for word in line]
    with _running(command_line, _environment(home), port, home / "log") as url:
        assert _status(f"{url}/health/ready") == 200
        (probe,) = _of_image("HEALTHCHECK")
        words: list[str] = json.loads(probe.partition(" CMD ")[2])
        words = [sys.executable, *words[1:-1], words[-1].replace(f":{exposed}/", f":{port}/")]
        assert subprocess.run(words, check=False).returncode == 0
    dead = subprocess.run(words, check=False, stderr=subprocess.DEVNULL)
    assert dead.returncode != 0  # nobody answers any more


def test_the_command_of_the_unit_serves(home: Path) -> None:
    (line,) = _unit()["Service"]["ExecStart"]
    port = _free_port()
    words = shlex.split(line.replace("%i", str(port)))
    assert words[0].endswith("/bin/python")
    place = words[words.index("serve") + 1]
    swapped = {words[0]: sys.executable, place: str(home / "sharing.yaml")}
    command_line = [swapped.get(word, word) for word in words]
    with _running(command_line, _environment(home), port, home / "log") as url:
        assert _status(f"{url}/health/ready") == 200


def test_the_unit_gives_what_the_configuration_asks_for() -> None:
    service, text = _unit()["Service"], (DEPLOY / "sharing.yaml").read_text("utf-8")
    (credential,) = service["LoadCredential"]
    assert f"${{CREDENTIALS_DIRECTORY}}/{credential.partition(':')[0]}}}" in text
    assert service["CacheDirectory"] == ["deltalog-sharing-%i"]
    assert "cacheDirectory: ${CACHE_DIRECTORY}" in text
    (line,) = service["ExecStart"]
    assert not re.search(r"(?i)token|secret|password", line)  # arguments are seen by everybody
    stop = int(service["TimeoutStopSec"][0])
    assert stop > 10 + 5  # limits.graceSeconds and what follows it


def test_the_unit_is_what_systemd_takes(tmp_path: Path) -> None:
    unit = tmp_path / "deltalog-sharing@8081.service"
    text = (DEPLOY / "deltalog-sharing@.service").read_text("utf-8")
    unit.write_text(text.replace("/opt/deltalog/bin/python", sys.executable))
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    assert parser["Service"]["NoNewPrivileges"] == "yes"
    assert parser["Service"]["ProtectSystem"] == "strict"
    assert parser["Service"]["CapabilityBoundingSet"] == ""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:  # not of Linux, or another init: what can be read was read above
        return
    checked = subprocess.run(
        [analyze, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False
    )
    said = [line for line in checked.stderr.splitlines() if unit.name in line]
    assert (checked.returncode, said) == (0, []), checked.stderr
    rated = subprocess.run(
        [analyze, "security", "--offline=yes", "--threshold=25", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert rated.returncode == 0, rated.stdout[-600:] + rated.stderr


@pytest.fixture
def exposed(home: Path) -> str:
    """The metrics of a server of which everything was asked once."""
    part = {"location": str(home / "flights"), "rowFilter": "carrier = 'UA'"}
    caller = sharing(
        {"s.d.t": str(home / "flights"), "s.d.part": part},
        metricsToken={"token": TOKEN},
        ownUrls=True,
    )
    caller.get("/shares")
    for table in ("s.d.t", "s.d.part"):
        for file in actions(caller.query(table), "file"):
            assert caller.download(file["url"]).status == 200
    assert ask(caller.app, "GET", "/health/ready").status == 200
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return ask(caller.app, "GET", "/metrics", headers=headers).body.decode()


def _dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana-sharing.json").read_text("utf-8"))
    return found


def _asked_of_prometheus() -> list[str]:
    dashboard = _dashboard()
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    variables = dashboard["templating"]["list"]
    return queries + [one["query"] for one in variables if one["type"] == "query"]


def test_the_dashboard_asks_for_metrics_that_are_there(exposed: str) -> None:
    samples = set(re.findall(r"^(deltalog_sharing_\w+)", exposed, re.MULTILINE))
    asked = {
        name for query in _asked_of_prometheus() for name in re.findall(r"deltalog_\w+", query)
    }
    assert asked - samples == set()
    # And nothing that is exposed is forgotten, but what belongs to a histogram.
    heads = set(re.findall(r"^# TYPE (\w+)", exposed, re.MULTILINE))
    assert {name for name in heads if not any(one.startswith(name) for one in asked)} == set()


def test_the_dashboard_asks_for_labels_and_values_that_are_there(exposed: str) -> None:
    labels = set(re.findall(r'[{,](\w+)="', exposed)) | {"job", "instance"}
    actions_there = set(re.findall(r'action="(\w+)"', exposed))
    for query in _asked_of_prometheus():
        for name in re.findall(r'(\w+)\s*[!=]~?"', query):
            assert name in labels, query
        for group in re.findall(r"by \(([\w, ]+)\)", query):
            assert set(group.split(", ")) <= labels, query
        assert query.count("(") == query.count(")")
        assert query.count("{") == query.count("}")
    assert {"list_shares", "query", "get_file", "ready"} <= actions_there


def test_the_dashboard_is_one_of_grafana() -> None:
    """What Grafana needs of a dashboard's JSON: panels in a grid of 24, targets, variables."""
    dashboard = _dashboard()
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= dashboard.keys()
    assert "id" not in dashboard  # Grafana gives one; a foreign one replaces another dashboard
    variables = {one["name"] for one in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(dashboard)))
    assert used - variables <= {"__rate_interval", "__all"}
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in dashboard["panels"]:
        assert panel["type"] in {"stat", "timeseries"}
        assert panel["title"]
        assert panel["description"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24
        cells = {
            (x, y)
            for x in range(grid["x"], grid["x"] + grid["w"])
            for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        references = [target["refId"] for target in panel["targets"]]
        assert references == [chr(ord("A") + number) for number in range(len(references))]
        for target in panel["targets"]:
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_metrics_of_operators_name_nobody(home: Path, exposed: str) -> None:
    for word in ("alice", "flights", str(home), "carrier"):
        assert word not in exposed
