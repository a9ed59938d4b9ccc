"""A standalone Spark cluster on this machine, whose workers share only a store with the driver.

A master and two workers are processes. The Python of the workers is a bare one: it has neither
deltalog nor a library. Whatever ends the tests ends the cluster and its drivers.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import pyspark

from tests.support.watchdog import Watchdog

ROOT: Final = Path(__file__).resolve().parents[2]
SPARK_HOME: Final = Path(pyspark.__file__).parent
DRIVER: Final = Path(__file__).with_name("cluster_driver.py")
WORKERS: Final = 2
_LIGHT: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_DEFAULTS: Final = {
    # What drivers of the tests need not say: the tables are small, and there are many JVMs.
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": _LIGHT,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": _LIGHT,
    "spark.cores.max": str(WORKERS),
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    # An executor that was killed is replaced; so are many, in tests that kill many.
    "spark.task.maxFailures": "8",
    "spark.excludeOnFailure.enabled": "false",
}


@dataclass
class Process:
    """A process of this machine, as `ps` knows it."""

    pid: int
    parent: int
    group: int
    command: str


def processes() -> list[Process]:
    """All processes."""
    told = subprocess.run(
        ["ps", "-Aww", "-o", "pid=,ppid=,pgid=,args="],  # noqa: S607  # whichever is there
        check=True,
        capture_output=True,
        text=True,
        errors="replace",
    ).stdout
    rows = (line.split(None, 3) for line in told.splitlines())
    return [Process(int(row[0]), int(row[1]), int(row[2]), row[3]) for row in rows if len(row) == 4]


@dataclass
class Cluster:
    """A running cluster.

    Args:
        place: a directory for its files.
        url: of the master.
    """

    place: Path
    url: str
    watchdog: Watchdog
    status_url: str

    def status(self) -> dict[str, Any]:
        """What the master says of itself."""
        with urllib.request.urlopen(f"{self.status_url}/json/", timeout=10) as answer:  # noqa: S310  # http
            told: dict[str, Any] = json.loads(answer.read())
        return told

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a user who has activated the tests' Python, and uses this cluster."""
        kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
        return {
            **kept,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "SPARK_CONF_DIR": str(self.place / "conf"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(self.place / "tmp"),
            **more,
        }

    def executors(self) -> list[int]:
        """The JVMs that run tasks."""
        return [
            one.pid
            for one in processes()
            if one.group == self.watchdog.group and "CoarseGrainedExecutorBackend" in one.command
        ]

    def python_workers(self) -> list[int]:
        """The Python processes that run tasks: children of a daemon that an executor started."""
        listed, executors = processes(), set(self.executors())
        daemons = {one.pid for one in listed if one.parent in executors}
        return [one.pid for one in listed if one.parent in daemons]

    def kill_executors(self) -> list[int]:
        """Kill them all, as machines that fail do; their processes."""
        return _killed(self.executors())

    def kill_python_workers(self) -> list[int]:
        """Kill them all, as machines without memory do; their processes."""
        return _killed(self.python_workers())


def _killed(victims: list[int]) -> list[int]:
    for victim in victims:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    return victims


@contextmanager
def running_cluster(place: Path, *, environment: Mapping[str, str]) -> Iterator[Cluster]:
    """Start a cluster.

    Args:
        place: an empty directory.
        environment: what the workers' machines have, such as credentials.
    """
    for name in ("conf", "tmp"):
        (place / name).mkdir()
    venv.create(place / "bare", with_pip=False)
    ports = _free_ports(2)
    url = f"spark://127.0.0.1:{ports[0]}"
    defaults = {**_DEFAULTS, "spark.master": url, "spark.local.dir": str(place / "tmp")}
    lines = [f"{name} {value}" for name, value in defaults.items()]
    (place / "conf" / "spark-defaults.conf").write_text("\n".join(lines), "utf-8")
    watchdog = Watchdog()
    cluster = Cluster(place, url, watchdog, f"http://127.0.0.1:{ports[1]}")
    try:
        _start(cluster, environment, ports)
        _wait_for_workers(cluster)
        yield cluster
    finally:
        watchdog.close()


def _start(cluster: Cluster, environment: Mapping[str, str], ports: list[int]) -> None:
    given = {
        **{name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ},
        "PATH": f"{cluster.place / 'bare' / 'bin'}:{os.defpath}:{_java()}",
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _LIGHT,
        "TMPDIR": str(cluster.place / "tmp"),
        **environment,
    }
    run = [str(SPARK_HOME / "bin" / "spark-class")]
    deploy = "org.apache.spark.deploy"
    master = [*run, f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(ports[0])]
    master += ["--webui-port", str(ports[1])]
    cluster.watchdog.start(master, given, cluster.place / "master.log")
    for number in range(WORKERS):
        work = cluster.place / f"worker-{number}"
        work.mkdir()
        # Spark speculates only on another host, and reads the files of its own host directly.
        host = f"127.0.0.{number + 1}" if sys.platform == "linux" else "127.0.0.1"
        worker = [*run, f"{deploy}.worker.Worker", "--host", host, "--webui-port", "0"]
        worker += ["--cores", "4", "--memory", "4g", "--work-dir", str(work), cluster.url]
        log = cluster.place / f"worker-{number}.log"
        cluster.watchdog.start(worker, {**given, "SPARK_LOCAL_IP": host}, log)


def _java() -> str:
    """The directory of `java`, for machines that have it elsewhere than other programs."""
    found = subprocess.run(
        ["sh", "-c", "command -v java || true"],  # noqa: S607  # whichever is there
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    return str(Path(found or "/usr/bin/java").parent)


def _wait_for_workers(cluster: Cluster) -> None:
    for _ in range(600):
        try:
            if cluster.status()["aliveworkers"] == WORKERS:
                return
        except (OSError, json.JSONDecodeError):
            pass  # before its paths are known, the master answers each of them with its first page
        time.sleep(0.1)
    logs = "\n".join(
        log.read_text("utf-8", "replace")[-3000:] for log in cluster.place.glob("*.log")
    )
    raise AssertionError(f"the cluster did not start within a minute:\n{logs}")


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Driver:
    """A driver that does what it is asked: see `tests/support/cluster_driver.py`.

    Args:
        cluster: the cluster on which its tasks run.
        archive: what `deltalog spark-archive` has written.
        program: what the driver runs.
        settings: more settings of its session.
    """

    def __init__(
        self,
        cluster: Cluster,
        archive: Path,
        program: Path = DRIVER,
        /,
        *,
        name: str,
        environment: Mapping[str, str],
        **settings: str,
    ) -> None:
        self._log = cluster.place / f"driver-{name}.log"
        given = {
            "spark.app.name": name,
            "spark.archives": f"{archive}#packages",
            "spark.executorEnv.PYTHONPATH": "packages",
            **settings,
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(program), json.dumps(given)],
                env=cluster.environment(**environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                process_group=cluster.watchdog.group,
            )

    def begin(self, work: str, **arguments: Any) -> None:
        """Ask for some work; `end` waits for it."""
        self._input.write(json.dumps([work, arguments]).encode() + b"\n")
        self._input.flush()

    def end(self) -> Any:
        """The answer to what was begun.

        Raises:
            AssertionError: it failed.
        """
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b"> "):
                report = json.loads(line[2:])
                assert "error" not in report, report["error"]
                return report["answer"]
        raise AssertionError(
            f"the driver has ended:\n{self._log.read_text('utf-8', 'replace')[-4000:]}"
        )

    def do(self, work: str, **arguments: Any) -> Any:
        """Ask for some work, and wait for it."""
        self.begin(work, **arguments)
        return self.end()

    def kill(self) -> None:
        """Kill it with its JVM, as a machine that fails does."""
        pid = self._process.pid
        _killed([*(child.pid for child in processes() if child.parent == pid), pid])
        self._process.wait(timeout=60)

    def close(self) -> None:
        """End it, if it has not ended; a session that stops in order takes seconds."""
        if self._process.poll() is None:
            self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin
