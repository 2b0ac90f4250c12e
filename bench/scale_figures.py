"""Measures what one call costs the stores: statements, transactions, requests and bytes, for `bench.scale_model`.

Usage: python -m bench.scale_figures --postgres URL --s3 SETTINGS [--calls 200] [--write]. The service is on a new
database of a server and a new prefix of a bucket, and reaches both through relays that record what passes. What the
service asks for without calls is measured before, and subtracted.
"""

import argparse
import asyncio
import json
import os
import re
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

from bench.gateway.__main__ import describe_machine, temporary_database
from bench.gateway.process import ServiceProcess
from bench.scale_model import FIGURES, Figures

IDLE_S = 15.0  # longer than the service keeps an idle connection, so that none ends while it is used
_OF_MANY = ("queue_", "sql_running_s")  # figures that one process does not have
WARM_UP = 10
_WRITES, _READS = frozenset({b"PUT", b"POST"}), frozenset({b"GET", b"HEAD"})
_REQUEST = re.compile(rb"(PUT|POST|GET|HEAD|DELETE) /[^ \r\n]* HTTP/1\.1\r\n")
_READY, _IDLE = b"Z", b"I"  # of PostgreSQL's protocol: a statement was answered; no transaction is open


@dataclass(slots=True)
class Recorded:
    """What passed through one relay.

    Attributes:
        requests: the bytes of clients, by connection.
        answers: the bytes of the server, by connection.
        opened: connections that are open.
    """

    requests: list[bytearray] = field(default_factory=list)
    answers: list[bytearray] = field(default_factory=list)
    opened: int = 0

    @property
    def size_bytes(self) -> int:
        """All bytes."""
        return sum(map(len, [*self.requests, *self.answers]))

    def statements(self) -> tuple[int, int]:
        """Statements that PostgreSQL answered, and those of them after which no transaction was open."""
        states = [state for answer in self.answers for state in list(ready_states(answer))[1:]]  # first: signed in
        return len(states), states.count(_IDLE)

    def methods(self) -> list[bytes]:
        """The methods of HTTP requests."""
        return [method for request in self.requests for method in _REQUEST.findall(bytes(request))]


def ready_states(answer: bytes | bytearray) -> list[bytes]:
    """The states in which a PostgreSQL server was after each statement, from the bytes that it sent."""
    states, at = [], 0
    while at + 5 <= len(answer):
        size = int.from_bytes(answer[at + 1 : at + 5], "big")
        if answer[at : at + 1] == _READY:
            states.append(bytes(answer[at + 5 : at + 6]))
        at += 1 + size
    return states


@asynccontextmanager
async def recording_relay(host: str, port: int) -> AsyncIterator[tuple[int, Recorded]]:
    """A relay to a server: its port, and what passes."""
    recorded, tasks = Recorded(), set[asyncio.Task[Any]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        there_reader, there_writer = await asyncio.open_connection(host, port)
        recorded.requests.append(bytearray())
        recorded.answers.append(bytearray())
        recorded.opened += 1
        try:
            await asyncio.gather(
                _copy(reader, there_writer, recorded.requests[-1]),
                _copy(there_reader, writer, recorded.answers[-1]),
            )
        finally:
            recorded.opened -= 1
            writer.close()
            there_writer.close()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], recorded
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, record: bytearray) -> None:
    try:
        while data := await reader.read(64 * 1024):
            record += data
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


@dataclass(frozen=True, slots=True)
class _Sample:
    """All counts at one moment."""

    statements: float
    transactions: float
    sql_bytes: float
    writes: float
    reads: float
    s3_bytes: float
    cpu_ms: float

    def minus(self, other: "_Sample", scale: float = 1) -> "_Sample":
        return _Sample(*(mine - scale * its for mine, its in zip(_values(self), _values(other), strict=True)))

    def per_call(self, calls: int) -> dict[str, Any]:
        names = ("sql_statements", "sql_transactions", "sql_bytes", "s3_writes", "s3_reads", "s3_bytes")
        rates = dict(zip((*names, "service_cpu_ms"), _values(self), strict=True))
        return {name: round(max(0.0, value / calls), 2) for name, value in rates.items()}


def _values(sample: _Sample) -> tuple[float, ...]:
    return tuple(asdict(sample).values())


def _sample(sql: Recorded, s3: Recorded, pid: int) -> _Sample:
    methods = s3.methods()
    cpu = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return _Sample(
        *sql.statements(),
        sql.size_bytes,
        sum(method in _WRITES for method in methods),
        sum(method in _READS for method in methods),
        s3.size_bytes,
        (int(cpu[11]) + int(cpu[12])) * 1_000 / os.sysconf("SC_CLK_TCK"),
    )


def _call(number: int) -> dict[str, Any]:
    return {
        "tool_id": "exec_tools.execute_code_python",
        "tool_call_id": f"call-{number}",
        "conversation_id": f"conversation-{number // 10}",
        "turn_id": f"turn_{number}",
        "params": {"contract": [{"filename": "out.txt", "description": "a text"}]},
        "code": f"open('files/out.txt', 'w').write({secrets.token_hex(500)!r})",
    }


async def measure(postgres: str, s3: dict[str, str], calls: int, folder: Path) -> Figures:
    """Measure on a new database.

    Args:
        postgres: the URL of a server.
        s3: settings of a bucket, by the names of variables.
        calls: how many calls.
        folder: an empty folder for the service.
    """
    machine = describe_machine(os.getloadavg()[0]).strip()
    endpoint = urlsplit(s3["PROOFBOX_S3_ENDPOINT"])
    with temporary_database(postgres) as made:
        url = urlsplit(str(made["database_url"]))
        async with (
            recording_relay(url.hostname or "", url.port or 5432) as (sql_port, sql),
            recording_relay(endpoint.hostname or "", endpoint.port or 80) as (s3_port, objects),
        ):
            netloc = f"{url.username}:{url.password}@127.0.0.1:{sql_port}"
            service = ServiceProcess(
                folder,
                database_url=url._replace(netloc=netloc, query="sslmode=disable&gssencmode=disable").geturl(),
                s3_endpoint=f"http://127.0.0.1:{s3_port}",
                s3_bucket=s3["PROOFBOX_S3_BUCKET"],
                s3_prefix=f"bench/{secrets.token_hex(8)}",
                s3_access_key=s3["PROOFBOX_S3_ACCESS_KEY"],
                s3_secret_key=s3["PROOFBOX_S3_SECRET_KEY"],
                pool_size=4,
                audit_head_s=5,
            )
            await service.start()
            try:
                for number in range(WARM_UP):
                    await service.send("POST", "/v1/tool-calls", _call(number))
                before = _sample(sql, objects, service.pid)
                await asyncio.sleep(IDLE_S)
                idle = _sample(sql, objects, service.pid).minus(before)
                size, began = _database_bytes(url.geturl()), asyncio.get_running_loop().time()
                before = _sample(sql, objects, service.pid)
                for number in range(WARM_UP, WARM_UP + calls):
                    answer = await service.send("POST", "/v1/tool-calls", _call(number))
                    if not answer["ok"]:
                        raise RuntimeError(f"a call failed: {answer['error']}")
                took_s = asyncio.get_running_loop().time() - began
                used = _sample(sql, objects, service.pid).minus(before).minus(idle, took_s / IDLE_S)
                grown = _database_bytes(url.geturl()) - size
                connections = sql.opened
            finally:
                await service.stop()
    return Figures(
        **used.per_call(calls),
        database_bytes=round(grown / calls),
        connections=connections,
        sql_idle_s=round(idle.statements / IDLE_S, 2),
        machine=f"{calls} calls of one client; {machine}",
    )


def _database_bytes(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])


def main() -> None:
    """Measure and print; with ``--write`` also write the file of the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", required=True, metavar="URL", help="a server (postgres.sh --print-url)")
    parser.add_argument("--s3", required=True, metavar="TEXT", help="settings (s3.sh --print-settings)")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--write", action="store_true", help=f"write {FIGURES.name}")
    given = parser.parse_args()
    settings = dict(line.split("=", 1) for line in given.s3.split())
    with tempfile.TemporaryDirectory(prefix="proofbox-bench-") as folder:
        figures = asyncio.run(measure(given.postgres, settings, given.calls, Path(folder)))
    own = {name: value for name, value in asdict(figures).items() if not name.startswith(_OF_MANY)}
    text = json.dumps(own, indent=2) + "\n"
    print(text, end="")
    if given.write:
        FIGURES.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
