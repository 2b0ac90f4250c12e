"""Exercises what programs use of the operating system and prints one result for each part."""
# ruff: noqa: T201 -- what a probe prints is its answer

import asyncio
import functools
import http.server
import json
import multiprocessing
import os
import resource
import shutil
import socket
import sqlite3
import subprocess
import threading
import urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import datetime
from multiprocessing import shared_memory
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

import numpy as np


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, *_: object) -> None:
        pass


def square(number: int) -> int:
    return number * number


def pool(method: str) -> list[int]:
    with multiprocessing.get_context(method).Pool(2) as workers:
        return workers.map(square, range(4))


async def subprocess_output() -> str:
    process = await asyncio.create_subprocess_exec("echo", "hello", stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


def shared_number() -> int:
    block = shared_memory.SharedMemory(create=True, size=16 * 2**20)
    block.buf[0] = 7
    other = shared_memory.SharedMemory(block.name)
    number = other.buf[0]
    other.close()
    block.close()
    block.unlink()
    return number


def answer_over(family: socket.AddressFamily, address: tuple[str, int] | str) -> str:
    with socket.socket(family) as server:
        server.bind(address)
        server.listen()

        def serve() -> None:
            with server.accept()[0] as connection:
                connection.sendall(b"pong")

        threading.Thread(target=serve).start()
        with socket.socket(family) as client:
            client.connect(server.getsockname())
            return client.recv(4).decode()


async def sent_by_asyncio(file: BinaryIO) -> int:
    """The bytes of a file that arrive over TCP; where the kernel cannot send files, asyncio reads and writes."""
    arrived = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set_result(len(await reader.read()))
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0, reuse_port=True)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    await asyncio.get_running_loop().sendfile(writer.transport, file)
    writer.close()
    size = await arrived
    server.close()
    return size


def sent_by_a_socket() -> int:
    ours, theirs = socket.socketpair()
    with Path("/tmp/large").open("rb") as file, ours, theirs, theirs.makefile("rb") as stream:

        def send() -> None:
            ours.sendfile(file)
            ours.shutdown(socket.SHUT_WR)

        threading.Thread(target=send).start()
        return len(stream.read())


def served_over_http() -> int:
    handler = functools.partial(Quiet, directory="/tmp")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/large") as answer:
            size = len(answer.read())
        server.shutdown()
    return size


def options_that_servers_set() -> list[str]:
    """Options of sockets that libraries set; those that were refused."""
    refused = []
    wanted = {
        socket.SOL_SOCKET: (
            "SO_REUSEADDR",
            "SO_REUSEPORT",
            "SO_KEEPALIVE",
            "SO_SNDBUF",
            "SO_RCVBUF",
            "SO_BROADCAST",
        ),
        socket.IPPROTO_TCP: ("TCP_NODELAY", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_QUICKACK"),
        socket.IPPROTO_IP: ("IP_TOS", "IP_TTL"),
    }
    with socket.socket() as connection:
        for level, names in wanted.items():
            for name in names:
                try:
                    connection.setsockopt(level, getattr(socket, name), 1)
                except PermissionError:
                    refused.append(name)
    return refused


def through_a_named_pipe() -> str:
    os.mkfifo("/tmp/pipe")
    threading.Thread(target=Path("/tmp/pipe").write_text, args=("through",)).start()
    return Path("/tmp/pipe").read_text(encoding="ascii")


def copy_with_attributes() -> list[int]:
    original = Path("/tmp/original")
    original.write_text("x", encoding="ascii")
    original.chmod(0o640)
    os.utime(original, (1_600_000_000, 1_600_000_000))
    shutil.copy2(original, "/out/copy")
    copied = Path("/out/copy").stat()
    return [copied.st_mode & 0o777, int(copied.st_mtime)]


def lowered_limit() -> list[int]:
    resource.setrlimit(resource.RLIMIT_CORE, (64, 64))
    return list(resource.getrlimit(resource.RLIMIT_CORE))


if __name__ == "__main__":
    told = {method: pool(method) for method in ("fork", "spawn", "forkserver")}
    with ThreadPoolExecutor(2) as threads:
        told["threads"] = list(threads.map(square, range(4)))
    with ProcessPoolExecutor(2) as processes:
        told["process_executor"] = list(processes.map(square, range(4)))
    told["asyncio_subprocess"] = asyncio.run(subprocess_output())
    script = (
        "seq 4 | sort -r | awk '{ s += $1 } END { print s }' | sed 's/10/12/' | grep -E '[0-9]' | xargs echo | cat"
    )
    told["shell"] = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    told["shared_memory"] = shared_number()
    told["matrix"] = float((np.ones((500, 500)) @ np.ones((500, 500)))[0, 0])
    with sqlite3.connect("/out/x.db") as database:
        database.execute("create table t as select 1 + 2 as n")
        told["sqlite"] = database.execute("select n from t").fetchone()[0]
    database.close()
    told["loopback"] = answer_over(socket.AF_INET, ("127.0.0.1", 0))
    told["unix_socket"] = answer_over(socket.AF_UNIX, "/tmp/socket")
    Path("/tmp/large").write_bytes(bytes(3_000_000))
    shutil.copyfile("/tmp/large", "/out/large")
    told["copied"] = Path("/out/large").stat().st_size
    with Path("/tmp/large").open("rb") as file:
        told["sent_by_asyncio"] = asyncio.run(sent_by_asyncio(file))
    told["sent_by_a_socket"] = sent_by_a_socket()
    told["served_over_http"] = served_over_http()
    told["refused_options"] = options_that_servers_set()
    told["named_pipe"] = through_a_named_pipe()
    told["copy_with_attributes"] = copy_with_attributes()
    told["lowered_limit"] = lowered_limit()
    told["time_zone"] = datetime(2024, 7, 1, tzinfo=ZoneInfo("Europe/Berlin")).tzname()
    told["nice"] = os.nice(5)
    print(json.dumps(told))
