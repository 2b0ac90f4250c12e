"""Measures a download by a program: plain, through CONNECT untouched, and with TLS that ends at the proxy.

Usage: python -m bench.network [--engines docker oci] [--mb 1000]. The server is this process, on loopback; the
program reads with `http.client` and drops what it reads. Prints MB a second, of the whole download as the program
measures it, and the memory of the service's process: before the downloads, and the most until the end of each.
"""

import argparse
import asyncio
import json
import os
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.serving import Service, service_running
from tests.support.certificates import make_issuer

HOST = "localhost"
PIECE = bytes(256 * 1024)
_MB = 1_000_000
_KIB = 1024
_PROGRAM = """
import http.client, os, ssl, time
kind, port = {kind!r}, {port}
began = time.perf_counter()
if kind == "plain":
    link = http.client.HTTPConnection("127.0.0.1", 3128)
    target = "http://{host}:{port}/"
else:
    link = http.client.HTTPSConnection("127.0.0.1", 3128, context=ssl.create_default_context())
    link.set_tunnel({host!r}, port)
    target = "/"
link.request("GET", target)
response = link.getresponse()
buffer, size = bytearray(1 << 20), 0
while taken := response.readinto(buffer):
    size += taken
print(size, time.perf_counter() - began)
"""


@asynccontextmanager
async def file_server(size_bytes: int, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    """A server of one large file; yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {size_bytes}\r\nConnection: close\r\n\r\n".encode())
        left = size_bytes
        while left:
            piece = PIECE[:left]
            writer.write(piece)
            await writer.drain()
            left -= len(piece)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


def memory_mb(pid: int, field: str) -> float:
    """A line of the status of a process, such as ``VmHWM``, in MB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) * _KIB / _MB


async def download(service: Service, kind: str, port: int, size_bytes: int) -> float:
    """Downloads once; MB a second.

    Raises:
        RuntimeError: the program failed.
    """
    body = {
        "tool_id": "exec_tools.execute_code_python",
        "tool_call_id": f"call_{kind}_{os.urandom(4).hex()}",
        "conversation_id": "bench",
        "turn_id": "turn_1",
        "params": {"explore": True},
        "network": {"allow": [f"{HOST}:{port}"]},
        "code": _PROGRAM.format(kind=kind, port=port, host=HOST),
    }
    answer = await service.lean.send("POST", "/v1/tool-calls", json.dumps(body).encode())
    printed = answer.json().get("output", {}).get("stdout", "").split() if answer.status == 200 else []  # noqa: PLR2004
    if len(printed) != 2 or int(printed[0]) != size_bytes:  # noqa: PLR2004
        raise RuntimeError(f"{kind}: {answer.text[:2000]}")
    return size_bytes / _MB / float(printed[1])


async def measure(engine: str, size_mb: int) -> None:
    """All three downloads, twice each."""
    size = size_mb * _MB
    with tempfile.TemporaryDirectory(prefix="proofbox-bench-") as folder:
        issuer = make_issuer(Path(folder))
        tls = issuer.server_tls(HOST)
        async with (
            file_server(size, None) as plain,
            file_server(size, tls) as passed,
            file_server(size, tls) as ended,
        ):
            os.environ["BENCH_SECRET"] = os.urandom(16).hex()
            secret = {"hosts": [f"{HOST}:{ended}"], "projects": ["*/*"], "variable": "BENCH_SECRET"}
            settings = {
                "engine": engine,
                "import_once": "off",  # what is measured needs no library
                "sandbox_network": json.dumps([f"{HOST}:{port}" for port in (plain, passed, ended)]),
                "sandbox_network_ranges": '["127.0.0.0/8", "::1/128"]',
                "sandbox_network_bytes_max": 4 * size,
                "sandbox_network_secrets": json.dumps({"API_KEY": secret}),
                "sandbox_network_ca_file": issuer.path,
            }
            async with service_running(**settings) as service:
                await download(service, "plain", plain, size)  # the first one starts what starts once
                print(f"{engine}: {memory_mb(service.pid, 'VmRSS'):.0f} MB of memory before")
                for kind, port in (("plain", plain), ("passed", passed), ("ended", ended)):
                    rates = [await download(service, kind, port, size) for _ in range(2)]
                    peak = memory_mb(service.pid, "VmHWM")
                    print(f"{engine} {kind:6}: {max(rates):6.0f} MB/s, at most {peak:.0f} MB of memory")


def main() -> None:
    """Measure on each engine."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engines", nargs="+", default=["docker", "oci"])
    parser.add_argument("--mb", type=int, default=1000)
    chosen = parser.parse_args()
    for engine in chosen.engines:
        asyncio.run(measure(engine, chosen.mb))


if __name__ == "__main__":
    main()
