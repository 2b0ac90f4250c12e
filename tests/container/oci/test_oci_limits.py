"""The limits that the engine oci keeps itself are tripped as they are under the Docker engine."""

import asyncio
import contextlib

import pytest

from proofbox.service.app.bootstrap import Service
from tests.container.calling import Caller

pytestmark = [pytest.mark.oci, pytest.mark.asyncio(loop_scope="session")]

MIB = 1024 * 1024
HOG = "block = bytearray(500 * 1024 * 1024); block[::4096] = b'x' * len(block[::4096])"


@pytest.mark.parametrize(
    ("code", "limits", "error"),
    [
        (HOG, {"memory_bytes": 64 * MIB}, "out_of_memory"),
        (HOG.replace("500", "700"), {"memory_bytes": 600 * MIB}, "out_of_memory"),
        ("import os\nwhile True: os.fork()", {"pids": 32}, "process_limit"),
        ("open('files/a.bin', 'wb').write(bytes(2 * 1024 * 1024))", {"out_dir_bytes": MIB}, "disk_limit"),
        ("for n in range(1000): open(f'files/{n}', 'w')", {"out_dir_inodes": 100}, "disk_limit"),
        ("import time\ntime.sleep(1000)", {"wall_s": 0.5}, "timeout"),
        ("while True: print('x' * 999)", {"output_bytes": 100_000}, "output_limit"),
    ],
    ids=["little memory", "memory", "pids", "disk", "inodes", "wall", "output"],
)
async def test_a_limit_of_a_request_is_kept_and_told(call: Caller, code: str, limits: dict, error: str) -> None:
    response = await call(code, limits=limits)
    assert response.error is not None, response.report
    assert response.error.code == error


async def test_files_that_fill_the_memory_until_nothing_can_run_are_out_of_memory(call: Caller) -> None:
    code = "for n in {1..60}; do head -c 1000000 /dev/zero > /tmp/$n; done; exit 0"
    response = await call(code, language="bash", limits={"memory_bytes": 32 * MIB, "out_dir_bytes": MIB})
    assert response.error is not None
    assert response.error.code == "out_of_memory"


async def test_memory_and_cpu_of_a_call_are_measured(call: Caller) -> None:
    response = await call("block = b'x' * 100_000_000\nfor n in range(3_000_000): pass")
    assert response.usage.memory_peak_bytes is not None
    assert response.usage.memory_peak_bytes > 100_000_000
    assert response.usage.cpu_ms > 10


async def test_names_of_the_machine_are_found_without_a_network(call: Caller) -> None:
    response = await call("import socket\nprint(socket.gethostbyname('localhost'), socket.gethostname())")
    assert (response.ok, await call.output()) == (True, "127.0.0.1 sandbox\n")


async def test_nothing_of_a_call_is_left_after_it(call: Caller, service: Service) -> None:
    response = await call("print(1)", limits={"out_dir_bytes": MIB})
    assert (response.ok, response.sandbox.acquired, response.sandbox.engine) == (True, "cold", "oci")
    assert await service.engine.sweep() == 0


async def test_limits_of_a_control_group_are_set_on_a_container_that_waited(call: Caller, service: Service) -> None:
    while not service.engine.pool.ready:  # noqa: ASYNC110 - the pool tells nobody when it has filled itself
        await asyncio.sleep(0.02)
    code = (
        "import time\nbegan, used = time.monotonic(), time.process_time()\n"
        "while time.monotonic() - began < 1: pass\nprint(time.process_time() - used)"
    )
    response = await call(code, limits={"cpus": 0.2, "memory_bytes": 600 * MIB, "pids": 32})
    assert (response.ok, response.sandbox.acquired) == (True, "warm")
    assert float(await call.output()) < 0.5


async def test_the_call_that_a_container_serves_stands_in_its_folder(call: Caller, service: Service) -> None:
    ticket = await call.submit("import time; time.sleep(1000)", tool_call_id="call:oci")
    folder = service.settings.oci_run_dir
    found: list[str] = []
    while "call_oci" not in found:
        await asyncio.sleep(0.1)
        found.clear()
        for path in folder.glob("*/bundles/*/call"):
            with contextlib.suppress(FileNotFoundError):  # that of a call before, which has just gone
                found.append(path.read_text())
    await service.calls.cancel(service.principal, call.last_id, call.conversation)
    await ticket.answer()
