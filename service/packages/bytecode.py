"""The bytecode of packages: compiled in a sandbox, since nobody here may parse what anybody may have written."""

import asyncio
import json
import logging
import time
import uuid
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_request import Limits, ToolCallRequest
from proofbox.contracts.tools import Language
from proofbox.service.calls.observer import CallObserver
from proofbox.service.concurrency import run_in_thread
from proofbox.service.errors import ServiceError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.jobs.inputs import JobInputs
from proofbox.service.jobs.runner import JobContext, JobRunner, Program
from proofbox.service.packages.bytecode_files import place_bytecode
from proofbox.service.sandbox.hardening import PACKAGES_AT
from proofbox.service.sandbox.limits import CallPolicy, room_bytes
from proofbox.service.sandbox.port import ExpectedFile, FileState, Job, OutputSpec

log = logging.getLogger("proofbox.packages")

_PROGRAM = Path(__file__).with_name("programs") / "compile_modules.py"
_NAME = "packages.compile"
_TURN = "turn_1"
_RESULT = "bytecode"
_PROGRAM_SHARE = 0.8  # of the wall clock: the rest is for starting, and for the module that it is at


@dataclass(frozen=True, slots=True)
class BytecodeCompiler:
    """Compiles the modules of packages in sandboxes. Stateless.

    Attributes:
        jobs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        principal: in whose name the program runs; no part of it is stored.
        time_s: wall clock of the program, and again the longest wait for a place.
    """

    jobs: JobRunner
    policy: CallPolicy
    principal: Principal
    time_s: float

    async def add_to(self, folder: Path, python: str, owner: str, bytes_max: int) -> int:
        """Adds bytecode to a folder of packages; never raises, because packages work without it.

        Args:
            folder: below the folder that sandboxes see; it has no bytecode of a program that has failed.
            python: the version of the Python of the image.
            owner: the caller, whose line the program waits in.
            bytes_max: what the bytecode may take on the disk.

        Returns:
            How many modules have bytecode now.
        """
        try:
            async with asyncio.timeout(2 * self.time_s + self.policy.overhead_s):
                return await self._compile(folder, python, owner, bytes_max)
        except (ServiceError, OSError, TimeoutError) as exc:
            log.warning("packages are used without bytecode: %s", str(exc).partition("\n")[0] or "no time left")
        except Exception:
            log.exception("packages are used without bytecode")
        return 0

    async def _compile(self, folder: Path, python: str, owner: str, bytes_max: int) -> int:
        bounds = replace(
            self.policy.bounds(Limits(), timeout_s=self.time_s), deadline=time.monotonic() + self.time_s
        )
        limits = bounds.limits
        bytes_max = min(bytes_max, limits.artifact_bytes, limits.file_bytes, room_bytes(limits))
        request = ToolCallRequest(
            tool_id=_NAME,
            tool_call_id=f"compile_{uuid.uuid4().hex[:24]}",
            conversation_id="packages",
            turn_id=_TURN,
            params={},
        )
        observer = CallObserver(owner)
        context = JobContext(ConversationKey(self.principal, request.conversation_id), request, bounds, observer)
        asked = {
            "folder": f"{PACKAGES_AT}/{folder.name}",
            "target": FilePath(_TURN, Namespace.FILES, _RESULT).physical,
            "time_s": limits.wall_s * _PROGRAM_SHARE,
            "bytes_max": bytes_max,
        }
        code = await asyncio.to_thread(_PROGRAM.read_bytes)
        job = Job(Language.PYTHON, code, _NAME, _TURN, limits, stdin=json.dumps(asked).encode())
        expected = ExpectedFile(_RESULT, is_glob=False, matches_max=1, checks={}, required=False)
        program = Program(job, OutputSpec(_TURN, (expected,), 0, limits), observer.on_output)
        async with self.jobs.slot(context) as slot:
            result = await slot.run(program, JobInputs())
            if result.failure is not None:  # what it has written up to then counts
                log.warning("compiling packages has ended early: %s", result.failure.message)
            for found in result.collected.found:
                if found.state is FileState.FILE and found.source is not None:
                    with found.source.open() as entries:
                        return await run_in_thread(
                            None, partial(place_bytecode, entries, folder, python, bytes_max)
                        )
        return 0
