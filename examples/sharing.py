"""Share the flights: a server on this machine, and two recipients with different rights.

One recipient sees the whole table. The other one sees only the flights of one airline, without the
tail numbers. The official client, deltalog's client and Spark read the shared tables.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import delta_sharing

from deltalog.errors import DeltaError
from deltalog.sharing import SharedTable, SharingClient
from examples import pipeline
from examples.saying import say, timed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOKENS = {
    "analyst": "a-token-for-the-demonstration-1",
    "airline": "a-token-for-the-demonstration-2",
}
CONFIG = """\
version: 1
host: 127.0.0.1
shares:
  - name: flights
    schemas:
      - name: nyc
        tables:
          - {{name: all, location: {location}, historyShared: true}}
  - name: hawaiian
    schemas:
      - name: nyc
        tables:
          - name: own
            location: {location}
            rowFilter: carrier = 'HA'
            columns: [carrier, flight, dest, time_hour]
recipients:
  - {{name: analyst, tokens: [{{token: {analyst}}}], shares: [flights]}}
  - {{name: airline, tokens: [{{token: {airline}}}], shares: [hawaiian]}}
"""


def share(directory: Path, table: Path) -> None:
    """Share a table, and read it as two recipients."""
    directory.mkdir()
    config = directory / "shares.yaml"
    config.write_text(CONFIG.format(location=table, **TOKENS), "utf-8")
    say("starting a sharing server with two recipients")
    with serving(config) as port:
        profiles = {name: write_profile(directory, name, port) for name in TOKENS}
        for name, profile in profiles.items():
            shown = [
                f"{t.share}.{t.schema}.{t.name}" for t in SharingClient(profile).list_all_tables()
            ]
            print(f"  {name} can read {', '.join(shown)}")
        whole, own = (
            f"{profiles['analyst']}#flights.nyc.all",
            f"{profiles['airline']}#hawaiian.nyc.own",
        )
        official = timed(
            "reading with the official client", lambda: delta_sharing.load_as_pandas(whole)
        )
        print(f"  {len(official):,} flights")
        shared = SharedTable(whole)
        ours = timed("reading with deltalog's client", shared.to_pyarrow_table)
        print(f"  {ours.num_rows:,} flights")
        june = timed(
            "reading only the longest delays of June with deltalog's client",
            lambda: shared.scan(
                ["carrier", "dep_delay"], "month = 6 AND dep_delay > 600"
            ).to_table(),
        )
        print(f"  {june.num_rows} flights")
        if pipeline.has_jvm():
            with pipeline.session(directory) as spark:
                timed("reading with Spark, without a jar", lambda: show_delays(spark, whole))
        say("the airline's share: only its rows, and only some columns")
        print(SharedTable(own).to_pandas().tail(3).to_string(index=False))
        try:
            SharedTable(f"{profiles['airline']}#flights.nyc.all").version()
        except DeltaError as error:
            print(f"  the airline cannot read the whole table: {error}")


def show_delays(spark: SparkSession, url: str) -> None:
    """Print the delays of airlines in June. Spark pushes the month down, which may skip files."""
    import deltalog.spark  # noqa: PLC0415  # only with a JVM

    deltalog.spark.register(spark)
    found = spark.read.schema("month LONG, carrier STRING, dep_delay DOUBLE")
    june = found.format("deltalog_sharing").load(url).where("month = 6")
    late = june.groupBy("carrier").avg("dep_delay").orderBy("avg(dep_delay)", ascending=False)
    for carrier, minutes in late.limit(3).collect():
        print(f"  {carrier}: {minutes:.1f} minutes late")


@contextmanager
def serving(config: Path) -> Iterator[int]:
    """Run a server in a process of its own, for the duration of the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "deltalog.sharing", "serve", str(config), "--port", str(port)]
    with (
        config.with_suffix(".log").open("wb") as audit,
        subprocess.Popen(command, stderr=audit) as server,  # noqa: S603  # our own
    ):
        try:
            wait_for(port, server)
            yield port
        finally:
            server.terminate()


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server responds."""
    for _ in range(300):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            if server.poll() is not None:
                raise RuntimeError("the sharing server did not start") from None
            time.sleep(0.1)
        finally:
            connection.close()
    raise RuntimeError("the sharing server does not respond")


def write_profile(directory: Path, name: str, port: int) -> Path:
    """Write the profile of a recipient."""
    path = directory / f"{name}.share"
    endpoint = f"http://127.0.0.1:{port}/delta-sharing"
    profile = {"shareCredentialsVersion": 1, "endpoint": endpoint, "bearerToken": TOKENS[name]}
    path.touch(mode=0o600)  # it contains a secret
    path.write_text(json.dumps(profile), "utf-8")
    return path
