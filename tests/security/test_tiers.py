"""The stronger tiers do the work: under gVisor, and with users that are nobody outside, calls give the same."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proofbox.service.app.bootstrap import Service, build, running
from proofbox.service.app.settings import Settings
from tests.container.calling import Caller
from tests.services.private_docker import PrivateDocker

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]

MIB = 1024 * 1024
GVISOR, REMAPPED = "gvisor", "remapped"
HOG = "block = bytearray(900 * 1024 * 1024); block[::4096] = b'x' * len(block[::4096])"


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=[GVISOR, REMAPPED])
async def tier(request, tmp_path_factory) -> AsyncIterator[tuple[str, Service]]:
    """A tier's name and a service on it."""
    name = request.param
    engine: PrivateDocker = request.getfixturevalue("private_docker" if name == GVISOR else "remapped_docker")
    service = build(
        Settings(
            data_dir=tmp_path_factory.mktemp(name),
            engine_host=engine.host,
            runtime="runsc" if name == GVISOR else "",
            pool_size=1,
            ready_s=120,
        )
    )
    async with running(service):
        yield name, service


@pytest.fixture
def call(tier: tuple[str, Service]) -> Caller:
    return Caller(tier[1])


async def test_every_answer_names_the_tier(tier, call: Caller) -> None:
    sandbox = (await call("pass")).sandbox
    assert sandbox is not None
    told = {
        GVISOR: ("runsc", "gvisor", False),
        REMAPPED: ("runc", "shared_kernel", True),
    }
    assert (sandbox.runtime, sandbox.tier, sandbox.user_namespace) == told[tier[0]]


async def test_files_go_in_and_come_back_whole(call: Caller) -> None:
    await call.attach("in.bin", bytes(range(256)) * 1000)
    code = (
        "import os, pathlib\n"
        "data = pathlib.Path('turn_1/attachments/in.bin').read_bytes()\n"
        "pathlib.Path('files/deep').mkdir()\n"
        "pathlib.Path('files/deep/out.bin').write_bytes(data[::-1])\n"
        "print('in', os.getuid(), os.stat('files/deep/out.bin').st_uid, os.access('/out', os.W_OK))"
    )
    response = await call(code, ["deep/out.bin"])
    assert response.ok, response.report
    assert await call.stored("turn_1/files/deep/out.bin") == (bytes(range(256)) * 1000)[::-1]
    _, user, owner, may_write = (await call.output()).split()
    assert (user, 20_000 <= int(user) < 22_000, may_write) == (owner, True, "True")


async def test_threads_processes_and_libraries_work(call: Caller) -> None:
    code = (
        "import concurrent.futures, multiprocessing, subprocess, sqlite3\n"
        "import numpy\n"
        "with concurrent.futures.ThreadPoolExecutor(8) as pool: print(sum(pool.map(abs, range(-100, 0))))\n"
        "with multiprocessing.Pool(2) as pool: print(sum(pool.map(abs, range(-10, 0))))\n"
        "print(subprocess.run(['sh', '-c', 'echo out; exit 3'], capture_output=True).returncode)\n"
        "print(numpy.ones((200, 200)).dot(numpy.ones((200, 200))).sum())\n"
        "base = sqlite3.connect('/tmp/x.db'); base.execute('create table t (a)')\n"
        "print(len(base.execute('select * from t').fetchall()))"
    )
    response = await call(code)
    assert (response.ok, (await call.output()).split()) == (True, ["5050", "55", "3", "8000000.0", "0"])


@pytest.mark.parametrize(
    ("code", "limits", "error"),
    [
        (HOG, {"memory_bytes": 128 * MIB}, "out_of_memory"),
        ("import os\nwhile True: os.fork()", {"pids": 32}, "process_limit"),
        ("open('files/a.bin', 'wb').write(bytes(2 * 1024 * 1024))", {"out_dir_bytes": MIB}, "disk_limit"),
        ("open('files/a.bin', 'wb').truncate(1 << 40)", {}, "disk_limit"),
        ("for n in range(1000): open(f'files/{n}', 'w')", {"files": 100}, "disk_limit"),
        ("import time\ntime.sleep(1000)", {"wall_s": 1.0}, "timeout"),
        ("while True: print('x' * 999)", {"output_bytes": 100_000}, "output_limit"),
        ("import os; os.abort()", {}, "killed"),
        ("input()", {}, "nonzero_exit"),
    ],
    ids=["memory", "pids", "disk", "sparse", "files", "wall", "output", "abort", "stdin"],
)
async def test_a_limit_is_kept_and_told(call: Caller, code: str, limits: dict, error: str) -> None:
    response = await call(code, limits=limits)
    assert response.error is not None, response.report
    assert response.error.code == error, response.report
    assert (await call("print('alive')")).ok


async def test_a_program_that_attacks_its_runner_only_fails_its_own_call(call: Caller) -> None:
    code = (
        "import os\n"
        "for number in range(64):\n"
        "    try: os.write(os.open(f'/proc/1/fd/{number}', os.O_WRONLY | os.O_NONBLOCK), b'forged' * 50)\n"
        "    except OSError: pass\n"
        "try: print(open('/proc/1/mem', 'rb').read(1))\n"
        "except OSError: pass\n"
        "os.kill(1, 9)\n"
        "open('files/a.txt', 'w').write('x')"
    )
    response = await call(code, ["b.txt"])
    assert response.error is not None
    assert response.error.code in {"sandbox_failed", "execution_failed"}
    assert (await call.output()) == ""
    assert (await call("print('alive')")).ok


async def test_a_document_is_rendered(call: Caller) -> None:
    code = "import weasyprint\nweasyprint.HTML(string='<h1>Tier</h1>').write_pdf('files/a.pdf')"
    response = await call(code, ["a.pdf"])
    assert response.ok, response.report
