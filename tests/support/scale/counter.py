"""A server outside of the sandboxes that programs report to: what it was sent is what they really did.

A program has no other way to have an effect outside: it runs in a sandbox and may reach this server only. The
connection comes from the worker that runs the program, so its address names the worker.
"""

import contextlib
import threading
import time
import zlib
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from tests.support.scale.network import Network

_PROGRAM = """\
import ctypes, time, urllib.request
ctypes.CDLL(None).prctl(15, b"{mark}")
def report(step):
    urllib.request.urlopen("http://{address}/{call}/" + step, timeout=30).close()
report("began")
time.sleep({sleep_s})
open("result.txt", "w").write("{call}")
report("ended")
"""


def find_processes(call: str) -> list[int]:
    """The processes of this machine that run the program of a call: it gives itself a name."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "comm").read_text().strip() == _mark(call):
                found.append(int(entry.name))
    return found


def _mark(call: str) -> str:
    return f"pbs{zlib.crc32(call.encode()):08x}"


@dataclass(frozen=True)
class Report:
    """What a program has reported.

    Attributes:
        call: the id of its call.
        step: ``began`` or ``ended``.
        worker: the host from which it came.
        at: when, on the monotonic clock, in seconds.
    """

    call: str
    step: str
    worker: str
    at: float


class EffectCounter:
    """The server; a context manager."""

    def __init__(self, network: Network) -> None:
        counter = self
        self._reports: list[Report] = []
        self._changed = threading.Condition()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                _, call, step = self.path.split("/")
                worker = network.host_of(self.client_address[0])
                counter.add(Report(call, step, worker, time.monotonic()))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.send_header("Connection", "close")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_: object) -> None:
                """A worker that was killed resets its connections."""

        self._server = Server((network.address, 0), Handler)
        self.endpoint = f"{network.address}:{self._server.server_port}"
        """Host and port, as calls ask for them."""
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def build_program(self, call: str, sleep_s: float) -> str:
        """A program that reports its begin, waits, writes ``result.txt`` and reports its end."""
        return _PROGRAM.format(address=self.endpoint, call=call, sleep_s=sleep_s, mark=_mark(call))

    def add(self, report: Report) -> None:
        """Note a report."""
        with self._changed:
            self._reports.append(report)
            self._changed.notify_all()

    def read(self) -> list[Report]:
        """All reports, in the order of their arrival."""
        with self._changed:
            return list(self._reports)

    def count_runs(self) -> Counter[str]:
        """How often the program of each call has begun."""
        return Counter(report.call for report in self.read() if report.step == "began")

    def wait_for(self, step: str, count: int, within_s: float) -> None:
        """Wait until so many programs have reported a step.

        Raises:
            TimeoutError: they have not in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._count(step) >= count, within_s):
                raise TimeoutError(f"{self._count(step)} of {count} programs {step} within {within_s:g} s")

    def wait_until_running(self, worker: str, within_s: float) -> None:
        """Wait until a program has begun on a worker and not ended.

        Raises:
            TimeoutError: none has in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_running_on(worker), within_s):
                raise TimeoutError(f"no program runs on {worker} within {within_s:g} s")

    def _is_running_on(self, worker: str) -> bool:
        steps: dict[str, set[str]] = {"began": set(), "ended": set()}
        for report in self._reports:
            if report.worker == worker:
                steps[report.step].add(report.call)
        return steps["began"] > steps["ended"]

    def _count(self, step: str) -> int:
        return sum(report.step == step for report in self._reports)

    def find_begun(self, worker: str = "") -> set[str]:
        """The calls whose programs have begun, on one worker or on any."""
        return {report.call for report in self.read() if not worker or report.worker == worker}
