"""Every limit, lowered by a request and tripped: the code that the model is told, and that files are judged."""

import json

import pytest

from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.app.bootstrap import Service
from proofbox.service.errors import LimitNotAllowedError
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

MIB = 1024 * 1024
HOG = "block = bytearray(500 * 1024 * 1024); block[::4096] = b'x' * len(block[::4096]); "
SIXTY_FOUR = {"memory_bytes": 64 * MIB}
OUT_OF_MEMORY = (
    " was killed: more than 67108864 bytes of memory were needed, files in OUT_DIR, /tmp and /dev/shm counted in"
)


def error_of(response: ToolCallResponse) -> tuple[str, str]:
    assert response.error is not None, response.report
    assert response.report.startswith(f"Runtime error: {response.error.code} — {response.error.message}")
    return response.error.code, response.error.message


# ---- wall_s ----


async def test_wall_clock_ends_a_program_and_what_it_wrote_is_judged(call: Caller) -> None:
    code = "import time\nopen('files/a.txt', 'w').write('whole')\nprint('written')\ntime.sleep(1000)"
    response = await call(code, ["a.txt"], limits={"wall_s": 2.5})
    assert response.report == (
        "Runtime error: timeout — Timeout after 2.5s\n"
        "Succeeded:\n"
        "- turn_1/files/a.txt\n"
        "Program log (tail):\n"
        "written"
    )
    assert (await call.text("a.txt"), response.usage.signal) == ("whole", 9)


async def test_half_written_file_of_a_timed_out_program_is_judged_as_it_is(call: Caller) -> None:
    code = "import time\nopen('files/a.json', 'w').write('{\"a\": 1,')\ntime.sleep(1000)"
    response = await call(code, ["a.json", "b.txt"], timeout_s=2)
    assert error_of(response) == ("timeout", "Timeout after 2s")
    assert [str(a.verdict) for a in response.artifacts] == ["artifact_invalid", "missing_file"]


@pytest.mark.parametrize(
    ("timeout_s", "wall_s", "told"), [(1, 30, "1s"), (1000, 1, "1s"), (0.5, None, "0.5s"), (0.001, None, "0.001s")]
)
async def test_smaller_of_timeout_and_wall_clock_holds(
    call: Caller, timeout_s: float, wall_s: float | None, told: str
) -> None:
    limits = {} if wall_s is None else {"wall_s": wall_s}
    response = await call("while True: pass", timeout_s=timeout_s, limits=limits)
    assert error_of(response) == ("timeout", f"Timeout after {told}")


@pytest.mark.parametrize(
    "code",
    [
        "import signal\nfor n in set(range(1, 32)) - {9, 19}: signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
        "import os\nwhile True:\n    try: input()\n    except BaseException: pass",
    ],
    ids=["ignores_every_signal", "stops_itself", "holds_the_interpreter_lock", "catches_everything"],
)
async def test_program_that_does_not_listen_is_ended_at_its_timeout(call: Caller, code: str) -> None:
    response = await call(code, timeout_s=1)
    assert error_of(response) == ("timeout", "Timeout after 1s")


# ---- memory_bytes ----


async def test_program_that_takes_too_much_memory_is_out_of_memory(call: Caller) -> None:
    response = await call(f"open('files/a.txt', 'w').write('a')\n{HOG}", ["a.txt"], limits=SIXTY_FOUR)
    assert error_of(response) == ("out_of_memory", "the program" + OUT_OF_MEMORY)
    assert (response.usage.signal, [str(a.verdict) for a in response.artifacts]) == (9, ["produced"])


async def test_child_that_takes_too_much_memory_is_told_apart_from_the_program(call: Caller) -> None:
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {HOG!r}], check=True)"
    response = await call(code, limits=SIXTY_FOUR)
    assert error_of(response) == ("out_of_memory", "a child process of the program" + OUT_OF_MEMORY)
    assert response.usage.exit_code == 1


async def test_child_out_of_memory_that_the_program_copes_with_is_no_failure(call: Caller) -> None:
    # What asks for memory while a killed process is taken apart may be killed too: the program is to sleep by then.
    parent_state = "open(f'/proc/{os.getppid()}/stat').read().rpartition(') ')[2][0]"
    late = f"import os, time\nwhile {parent_state} != 'S': time.sleep(0.01)\n{HOG}"
    code = f"import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', {late!r}]).returncode)"
    response = await call(code, limits=SIXTY_FOUR)
    assert (response.ok, await call.output()) == (True, "-9\n"), response.report


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import sys; sys.exit(137)", ("nonzero_exit", "exit status 137")),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            ("killed", "the program was ended by SIGKILL (signal 9)"),
        ),
        ("raise MemoryError", ("nonzero_exit", "exit status 1: MemoryError")),
    ],
)
async def test_what_only_looks_like_out_of_memory_is_not(call: Caller, code: str, error: tuple[str, str]) -> None:
    assert error_of(await call(code, limits=SIXTY_FOUR)) == error


async def test_files_in_out_dir_count_as_memory(call: Caller) -> None:
    code = "block = bytearray(b'x' * 30_000_000); open('files/a.bin', 'wb').write(bytes(31 * 1024 * 1024)); " + HOG
    response = await call(code, limits=SIXTY_FOUR)
    assert error_of(response)[0] == "out_of_memory"


# ---- pids ----


async def test_fork_bomb_hits_the_process_limit_and_leaves_the_service_alive(call: Caller) -> None:
    code = "import os\nwhile True: os.fork()"
    response = await call(code, limits={"pids": 32}, timeout_s=60)
    code_of_error, message = error_of(response)
    assert code_of_error == "process_limit"
    assert message.startswith("at most 32 processes and threads are allowed: ")
    assert (await call("print('alive')")).ok


async def test_threads_count_as_processes(call: Caller) -> None:
    code = """
import threading
stop = threading.Event()
try:
    for count in range(1000):
        threading.Thread(target=stop.wait, daemon=True).start()
finally:
    print(count)
    stop.set()
"""
    response = await call(code, limits={"pids": 32})
    assert error_of(response) == (
        "process_limit",
        "at most 32 processes and threads are allowed: RuntimeError: can't start new thread",
    )
    assert 20 <= int(await call.output()) < 32


async def test_fork_bomb_of_a_shell_ends_at_the_timeout_at_the_latest(call: Caller) -> None:
    response = await call(":(){ :|:& };:\nwait", language="bash", limits={"pids": 32}, timeout_s=3)
    assert response.error is None or response.error.code in {"process_limit", "timeout"}
    assert (await call("print('alive')")).ok


# ---- out_dir_bytes, out_dir_inodes, file_bytes ----


async def test_full_out_dir_is_the_disk_limit(call: Caller, service: Service) -> None:
    code = "open('files/small.txt', 'w').write('x')\nopen('files/a.bin', 'wb').write(bytes(2 * 1024 * 1024))"
    response = await call(code, ["small.txt"], limits={"out_dir_bytes": MIB})
    full = f"OUT_DIR holds {MIB} bytes and {service.settings.out_dir_inodes} files and folders and is full"
    assert error_of(response) == ("disk_limit", f"{full}: OSError: [Errno 28] No space left on device")
    assert str(response.artifacts[0].verdict) == "produced"


async def test_full_out_dir_that_the_program_hides_is_the_disk_limit(call: Caller) -> None:
    code = """
import sys
try:
    open("files/a.bin", "wb").write(bytes(2 * 1024 * 1024))
except OSError:
    sys.exit("export failed")
"""
    response = await call(code, limits={"out_dir_bytes": MIB})
    code_of_error, message = error_of(response)
    assert (code_of_error, message.rpartition(": ")[2]) == ("disk_limit", "export failed")


@pytest.mark.parametrize("place", ["/out", "/tmp"])
@pytest.mark.parametrize("leaves", ["os.unlink(path); wait()", "wait(); os.unlink(path); os.close(fd)"])
@pytest.mark.parametrize("ends", ["pass", "sys.exit('export failed')"])
async def test_a_place_that_was_full_while_the_program_ran_is_the_disk_limit(
    call: Caller, place: str, leaves: str, ends: str
) -> None:
    code = f"""
import os, sys, time
def wait():
    try:
        while True: os.write(fd, bytes(65_536))
    except OSError: time.sleep(0.3)
path = "{place}/large"
fd = os.open(path, os.O_CREAT | os.O_WRONLY)
{leaves}
open("files/a.txt", "w")
{ends}
"""
    response = await call(code, ["a.txt"], limits={"out_dir_bytes": MIB})
    assert error_of(response)[0] == "disk_limit"
    assert error_of(response)[1].startswith(f"{'OUT_DIR' if place == '/out' else place} holds ")


async def test_too_many_files_for_the_file_system_are_the_disk_limit(call: Caller) -> None:
    code = "for n in range(1000): open(f'{n}', 'w')"
    response = await call(code, limits={"out_dir_inodes": 100})
    assert error_of(response)[0] == "disk_limit"
    assert error_of(response)[1].endswith("OSError: [Errno 28] No space left on device: '97'")


async def test_too_large_a_file_is_the_disk_limit(call: Caller) -> None:
    code = "with open('files/a.bin', 'wb', buffering=0) as file:\n    while True: file.write(bytes(60_000))"
    response = await call(code, limits={"file_bytes": 100_000})
    assert error_of(response) == (
        "disk_limit",
        "one file may have 100000 bytes: OSError: [Errno 27] File too large",
    )


async def test_sparse_file_is_bounded_as_any_other(call: Caller) -> None:
    response = await call("open('files/a.bin', 'wb').truncate(10**12)")
    assert error_of(response)[0] == "disk_limit"


async def test_child_ended_for_too_large_a_file_is_the_disk_limit(call: Caller) -> None:
    response = await call("head -c 200000 /dev/zero > files/a.bin", language="bash", limits={"file_bytes": 100_000})
    assert error_of(response)[0] == "disk_limit"


# ---- files, depth, artifact_bytes ----


async def test_more_files_than_allowed_are_the_disk_limit(call: Caller) -> None:
    code = "for n in range(11): open(f'files/{n:02}.txt', 'w').write('x')"
    response = await call(code, ["00.txt"], limits={"files": 10})
    message = "the program left more than 10 files; the rest was not looked at"
    assert error_of(response) == ("disk_limit", message)
    assert str(response.artifacts[0].verdict) == "produced"
    assert (await call(code, ["00.txt"], limits={"files": 11}, turn_id="turn_2")).ok


async def test_deeper_folders_than_allowed_are_the_disk_limit(call: Caller) -> None:
    code = "import os\nos.makedirs('files/a/b/c', exist_ok=True)\nopen('files/a/b/c/x.txt', 'w').write('x')"
    response = await call(code, ["a/b/c/x.txt"], limits={"depth": 3})
    message = "the program left folders more than 3 deep; what is below was not looked at"
    assert error_of(response) == ("disk_limit", message)
    assert (await call(code, ["a/b/c/x.txt"], limits={"depth": 4}, turn_id="turn_2")).ok


async def test_file_above_artifact_bytes_is_a_verdict_and_no_runtime_error(call: Caller) -> None:
    response = await call(
        "open('files/a.bin', 'wb').write(bytes(1001))", ["a.bin"], limits={"artifact_bytes": 1000}
    )
    assert (response.error and response.error.code) == "artifact_too_large"
    assert response.report.startswith("Runtime error: none\n")


# ---- output_bytes ----


async def test_too_much_output_ends_the_program(call: Caller) -> None:
    code = "open('files/a.txt', 'w').write('a')\nwhile True: print('x' * 999)"
    response = await call(code, ["a.txt"], limits={"output_bytes": 100_000})
    message = "the program wrote more than 100000 bytes to stdout and stderr and was ended"
    assert error_of(response) == ("output_limit", message)
    assert str(response.artifacts[0].verdict) == "produced"


async def test_as_much_output_as_allowed_is_fine_and_both_streams_count(call: Caller) -> None:
    code = "import os\nos.write(1, b'o' * 600)\nos.write(2, b'e' * 400)"
    assert (await call(code, limits={"output_bytes": 1000})).ok
    assert error_of(await call(code, limits={"output_bytes": 999}))[0] == "output_limit"


# ---- cpus ----

SPIN = """
import json, multiprocessing, time

def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

if __name__ == "__main__":
    began = time.monotonic()
    with multiprocessing.Pool(2) as pool:
        pool.map(spin, [2, 2], chunksize=1)
    print(json.dumps(time.monotonic() - began))
"""


async def test_two_spinners_get_no_more_than_the_cpu_share(call: Caller) -> None:
    response = await call(SPIN, limits={"cpus": 0.5})
    assert response.ok, response.report
    cpu_s = response.usage.cpu_ms / 1000
    # The quota is kept over periods of 0.1 s; starting and ending the pool is inside of both numbers.
    assert cpu_s / json.loads(await call.output()) < 0.75


# ---- what a request may ask for ----


async def test_least_that_the_schema_allows_is_enough_for_a_small_program(call: Caller) -> None:
    least = {"memory_bytes": 32 * MIB, "pids": 8, "out_dir_bytes": 4096, "out_dir_inodes": 16, "cpus": 0.1}
    counts = {"file_bytes": 1, "files": 1, "depth": 1, "output_bytes": 1, "artifact_bytes": 1}
    response = await call("open('files/a.txt', 'w').write('x')", ["a.txt"], limits={**least, **counts})
    assert response.report == "Runtime error: none\nProduced files:\n- turn_1/files/a.txt"


@pytest.mark.parametrize(
    ("name", "above"),
    [
        ("wall_s", 1),
        ("cpus", 0.5),
        ("memory_bytes", 1),
        ("pids", 1),
        ("out_dir_bytes", 1),
        ("out_dir_inodes", 1),
        ("file_bytes", 1),
        ("files", 1),
        ("depth", 1),
        ("output_bytes", 1),
        ("artifact_bytes", 1),
    ],
)
async def test_limit_above_the_operators_is_refused(
    call: Caller, service: Service, name: str, above: float
) -> None:
    allowed = getattr(service.settings, name)
    with pytest.raises(LimitNotAllowedError) as caught:
        await call.submit("print(1)", limits={name: allowed + above})
    assert caught.value.message == (
        f"limits.{name} is {allowed + above}, the operator allows {allowed} at most; ask for less or leave it out"
    )


async def test_limits_equal_to_the_operators_are_allowed_and_timeout_s_is_capped(
    call: Caller, service: Service
) -> None:
    names = ("wall_s", "cpus", "memory_bytes", "pids", "out_dir_bytes", "output_bytes")
    limits = {name: getattr(service.settings, name) for name in names}
    response = await call("print(1)", limits=limits, timeout_s=10**9)
    assert response.ok, response.report
