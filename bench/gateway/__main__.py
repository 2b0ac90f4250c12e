"""Measures the tool gateway: waiting calls across a restart, and event streams of spaces with many listeners.

Usage: python -m bench.gateway [--quick] [--postgres URL] [--only waiting streams]. With the URL of a PostgreSQL
server both are measured on it too, in a database that is made and dropped. The service, the clients that post and
the process that listens share the machine.
"""

import argparse
import asyncio
import os
import platform
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from bench.gateway.report import build_json, build_text
from bench.gateway.streams import Plan, StreamFigures, measure_streams
from bench.gateway.waiting import WaitingFigures, measure_restart
from bench.serving import ROOT

CALLS = 1_000
PLAN = Plan(spaces=100, per_space=50, rates=(1, 5, 20, 0), load_s=20, idle_s=30)
QUICK_CALLS = 40
QUICK_PLAN = Plan(spaces=4, per_space=25, rates=(5, 0), load_s=4, idle_s=4)
RESULTS = ROOT / "bench" / "results"


@contextmanager
def temporary_database(server: str) -> Iterator[dict[str, object]]:
    """The settings of a service with a new database of a server; none without a server."""
    if not server:
        yield {}
        return
    name = f"bench_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield {"database_url": urlsplit(server)._replace(path=f"/{name}").geturl()}
        finally:
            administrator.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def describe_machine(load_before: float) -> str:
    """What it was measured on."""
    kernel = platform.release().split("-")[0]
    return (
        f"{os.cpu_count()} cores, Linux {kernel}, Python {platform.python_version()}; load average "
        f"{load_before:.1f} before, clients on the same machine. The PostgreSQL server of the tests does not "
        "wait for the disk. "
        "MB are 10^6 bytes.\n"
    )


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes; nothing is written")
    parser.add_argument("--postgres", default="", metavar="URL", help="a server to measure on too")
    parser.add_argument("--only", nargs="+", choices=("waiting", "streams"), default=("waiting", "streams"))
    arguments = parser.parse_args()
    machine = describe_machine(os.getloadavg()[0])
    servers = {"SQLite": ""} | ({"PostgreSQL": arguments.postgres} if arguments.postgres else {})
    calls, plan = (QUICK_CALLS, QUICK_PLAN) if arguments.quick else (CALLS, PLAN)
    waiting: list[WaitingFigures] = []
    streams: list[StreamFigures] = []
    for name, server in servers.items():
        for part in arguments.only:
            with tempfile.TemporaryDirectory(prefix="proofbox-bench-") as folder, temporary_database(server) as own:
                if part == "waiting":
                    waiting.append(asyncio.run(measure_restart(Path(folder), name, calls, **own)))
                else:
                    streams.append(asyncio.run(measure_streams(Path(folder), name, plan, **own)))
            print(f"{name}, {part}: measured", flush=True)
    text = build_text(waiting, streams, machine)
    print(text)
    if arguments.quick or set(arguments.only) != {"waiting", "streams"}:
        return
    (RESULTS / "gateway.md").write_text(text, encoding="utf-8")
    (RESULTS / "gateway.json").write_text(build_json(waiting, streams, machine), encoding="utf-8")


if __name__ == "__main__":
    main()
