"""Runs a bash script whose tools are functions: each asks this process for its result and waits for it."""

import contextlib
import glob
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

SETTLE_S = 0.15
"""How long a script may go on to make further calls beside one that waits, such as those of other jobs."""
_SETTLE_S_MAX = 5.0
"""The same while a process of it has work: on a busy machine, the next caller may still wait for a processor."""
_POLL_S = 0.02
# A tool may have the name of any command.
_FUNCTIONS = """
_proofbox_tool() {
    local call status
    call=$(command mktemp -d "$PROOFBOX_TOOLS/call.XXXXXXXX") && command mkfifo "$call/reply"
    builtin printf '%s' "$1" >"$call/tool"
    builtin printf '%s' "${2-}" >"$call/input"
    builtin printf '%s\\n' "${call##*/}" >"$PROOFBOX_TOOLS/requests"
    builtin read -r status <"$call/reply"
    if [ "$status" = 0 ]; then command cat "$call/output"; else command cat "$call/output" >&2; fi
    [ "$status" = 0 ]
}
"""


def run_script(source: str, functions: dict[str, str], replay: Any) -> None:
    """Run a script and end with its exit status, or with the calls that it waits for.

    Args:
        source: its text.
        functions: the names of tools by the names of their functions.
        replay: the results that are known.
    """
    with tempfile.TemporaryDirectory(prefix="tools-") as folder:
        status = _run(source, functions, replay, folder)
    if status < 0 and -status not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status if status >= 0 else 128 - status)


def _run(source: str, functions: dict[str, str], replay: Any, folder: str) -> int:
    definitions = [
        f'{function}() {{ _proofbox_tool {_quoted(tool)} "$@"; }}' for function, tool in functions.items()
    ]
    _write(f"{folder}/functions.sh", "\n".join([_FUNCTIONS, *definitions, ""]))
    _write(f"{folder}/main.sh", source)
    os.mkfifo(f"{folder}/requests")
    requests = os.open(f"{folder}/requests", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    environment = {**os.environ, "BASH_ENV": f"{folder}/functions.sh", "PROOFBOX_TOOLS": folder}
    script = subprocess.Popen(["/bin/bash", f"{folder}/main.sh"], env=environment, start_new_session=True)
    pending, called_at = b"", 0.0
    while True:
        ended = script.poll() is not None
        if select.select([requests], [], [], 0 if ended else _POLL_S)[0]:
            *names, pending = (pending + os.read(requests, 65_536)).split(b"\n")
            for name in names:
                if not _answer(f"{folder}/{name.decode()}", replay):
                    called_at = time.monotonic()
            continue
        if replay.is_waiting and (ended or _is_settled(script.pid, time.monotonic() - called_at)):
            os.killpg(script.pid, signal.SIGKILL)
            script.wait()
            replay.end()
        if ended:
            return script.returncode


def _is_settled(session: int, silent_s: float) -> bool:
    """Whether no further call is to be expected of the processes of a session."""
    return silent_s >= SETTLE_S and (silent_s >= _SETTLE_S_MAX or not _has_work(session))


def _has_work(session: int) -> bool:
    for stat in glob.iglob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            state, _, _, of_session = _read(stat).rpartition(")")[2].split()[:4]
            if int(of_session) == session and state in "RD":
                return True
    return False


def _answer(call: str, replay: Any) -> bool:
    """Answer a call if its result is known; whether it is."""
    tool, given = _read(f"{call}/tool"), _read(f"{call}/input").strip() or "{}"
    try:
        values = json.loads(given)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        _reply(call, 1, f"{tool}: the argument is not a JSON object: {given[:200]}")
        return True
    entry = replay.take(tool, values)
    if entry is None:
        return False
    if entry["is_error"]:
        _reply(call, 1, f"{tool}: {entry['error_message'] or 'tool execution failed'}")
    else:
        _reply(call, 0, json.dumps(entry["result"], ensure_ascii=False, separators=(",", ":")))
    return True


def _reply(call: str, status: int, text: str) -> None:
    _write(f"{call}/output", text + "\n")
    # For reading, too: it does not wait for the reader, and what is written stays until that comes.
    os.write(os.open(f"{call}/reply", os.O_RDWR), f"{status}\n".encode())


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
