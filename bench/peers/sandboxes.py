"""Runs code with llm-sandbox or epicbox, in their own environment: requests and answers are lines of JSON.

``python sandboxes.py IMAGE SECCOMP.json``. A request is
``{"id", "side", "code", "inputs", "into", "out", "outputs"}``, ``inputs`` being a folder on this machine or
null, ``into`` where it goes below the working directory, ``out`` the folder below it that the program writes to,
and ``outputs`` a folder on this machine for what it wrote, or null. The answer is ``{"id", "stdout", "error"}``,
one of the last two null. Requests run at the same time, each in a container of its own.
"""

import io
import json
import logging
import os
import shlex
import sys
import tarfile
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker
import epicbox
from llm_sandbox import SandboxSession

WORKDIR = "/sandbox"
AT_ONCE = 32
USER = "10001"
LIMITS = {"cputime": 120, "realtime": 120, "memory": 1024, "processes": 256}
_answering = threading.Lock()


class LlmSandbox:
    """A session for each call, hardened as far as it lets itself be: it writes to the root file system as root."""

    def __init__(self, image: str, seccomp: str) -> None:
        self._client = docker.from_env()
        self._session: dict[str, Any] = {
            "client": self._client,
            "image": image,
            "lang": "python",
            # The image has all libraries; a fresh environment would need the network.
            "skip_environment_setup": True,
            "runtime_configs": {
                "command": ["sleep", "infinity"],
                "network_mode": "none",
                "cap_drop": ["ALL"],
                "security_opt": ["no-new-privileges", f"seccomp={seccomp}"],
                "mem_limit": "1g",
                "memswap_limit": "1g",
                "pids_limit": 256,
                # Else it waits ten seconds for a program that does not listen.
                "stop_signal": "SIGKILL",
            },
        }

    def run(self, request: dict[str, Any]) -> str:
        """One call; what it printed."""
        with SandboxSession(**self._session) as session:
            if request["inputs"]:
                session.copy_to_runtime(request["inputs"], f"{WORKDIR}/{request['into']}")
            code = request["code"]
            if request["outputs"]:
                code = f"import os\nos.makedirs({request['out']!r})\n{code}"
            done = session.run(code)
            if done.exit_code:
                raise RuntimeError(f"status {done.exit_code}: {done.stdout}{done.stderr}")
            if request["outputs"]:
                session.copy_from_runtime(f"{WORKDIR}/{request['out']}", request["outputs"])
            return str(done.stdout)


class Epicbox:
    """A container for each call. It has no way to take files out: the program sends them on standard output."""

    def __init__(self, image: str) -> None:
        epicbox.configure(profiles=[epicbox.Profile("speed", image, user=USER)])

    def run(self, request: dict[str, Any]) -> str:
        """One call; what it printed, if it writes no files."""
        given = []
        if request["inputs"]:
            given = [
                {"name": f"{request['into']}/{path.name}", "content": path.read_bytes()}
                for path in sorted(Path(request["inputs"]).iterdir())
            ]
        command = f"exec python3 -c {shlex.quote(request['code'])}"
        if request["outputs"]:
            # Its working directory belongs to root; ours is one that the program's user can write to.
            command = (
                f"mkdir -p /tmp/job/{request['out']}; ln -s {WORKDIR}/* /tmp/job; cd /tmp/job; "
                f"python3 -c {shlex.quote(request['code'])} >&2 && exec tar -C {request['out']} -cf - ."
            )
        done = epicbox.run("speed", command, files=given, limits=LIMITS)
        if done["exit_code"] != 0:
            raise RuntimeError(f"status {done['exit_code']}: {done['stderr'].decode(errors='replace')}")
        if not request["outputs"]:
            return str(done["stdout"].decode())
        with tarfile.open(fileobj=io.BytesIO(done["stdout"])) as tar:
            tar.extractall(request["outputs"], filter="data")
        return str(done["stderr"].decode())


def answer(side: LlmSandbox | Epicbox, request: dict[str, Any], to: io.TextIOBase) -> None:
    """Does a request and writes its answer."""
    said: dict[str, Any] = {"id": request["id"], "stdout": None, "error": None}
    try:
        said["stdout"] = side.run(request)
    except Exception:  # noqa: BLE001 - whatever a library raises is the call's error
        said["error"] = traceback.format_exc()
    with _answering:
        to.write(json.dumps(said) + "\n")
        to.flush()


def main() -> None:
    """Answers until its standard input ends."""
    logging.disable(logging.CRITICAL)
    # What libraries print goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    image, seccomp = sys.argv[1:]
    sides = {"llm-sandbox": LlmSandbox(image, Path(seccomp).read_text(encoding="utf-8")), "epicbox": Epicbox(image)}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for line in sys.stdin:
            request = json.loads(line)
            threads.submit(answer, sides[request["side"]], request, answers)


if __name__ == "__main__":
    main()
