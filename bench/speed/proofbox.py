"""Our side: calls of a running service over HTTP."""

import itertools
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.lean_http import Answer
from bench.serving import Service
from bench.speed.model import CallFailedError, Job

PHASES = frozenset({"queue", "acquire", "rehost", "run", "validate", "host", "total"})
IN_SANDBOX = ("acquire", "run", "validate")
PAUSE_S = 0.7
_SAID = 2_000


@dataclass(slots=True)
class Proofbox:
    """Calls of one service, and what their answers said of where the time went.

    Attributes:
        service: the service.
        name: our side, by the engine that the service uses.
        warm: calls of each job that met a container that waited.
        answered: all calls of each job.
        overhead_ms: what a call took beyond its container: HTTP, protocol, stores.
        without_phases: answers that left out a phase or whether the container was warm.
    """

    service: Service
    name: str
    pause_s: float = PAUSE_S
    warm: dict[str, int] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    overhead_ms: dict[str, list[float]] = field(default_factory=dict)
    without_phases: int = 0
    _next: Callable[[], int] = field(default_factory=lambda: itertools.count(2).__next__)

    async def prepare(self, job: Job) -> None:
        """Uploads the inputs as attachments of an earlier turn."""
        for name, content in job.inputs.items():
            path = f"/v1/conversations/{job.name}/turns/turn_1/attachments/{name}"
            answer = await self.service.client.put(path, content=content)
            if answer.is_error:
                raise CallFailedError(f"{job.name}: {answer.text[:_SAID]}")

    async def run(self, job: Job) -> None:
        """One call; see `Side.run`."""
        began = time.perf_counter()
        answer = await self.post(job)
        took_ms = (time.perf_counter() - began) * 1000
        if answer.status != httpx.codes.OK:
            raise CallFailedError(f"{job.name}: {answer.status} {answer.text[:_SAID]}")
        response = answer.json()
        if not response["ok"]:
            raise CallFailedError(f"{job.name}: {response['report'][:_SAID]}")
        artifacts = response["artifacts"]
        sizes = {one["physical_path"].rsplit("/", 1)[-1]: one["size_bytes"] or 0 for one in artifacts}
        # Standard output is part of the report only if something went wrong.
        job.check(job.stdout, sizes)
        self._note(job, response, took_ms)

    async def post(self, job: Job, limits: dict[str, float] | None = None) -> Answer:
        """The answer to one call of a job, whatever it is."""
        number = self._next()
        body: dict[str, Any] = {
            "tool_id": "exec_tools.execute_code_python",
            "tool_call_id": f"call_{number}",
            "conversation_id": job.name,
            "turn_id": f"turn_{number}",
            "params": {"contract": list(job.contract)},
            "code": job.code,
            "limits": limits or {},
        }
        if job.document is not None:
            body["tool_id"] = "rendering_tools.write_pdf"
            body["params"] = {"path": "report.pdf", "format": "html", "content": job.document, "title": job.title}
            del body["code"]
        return await self.service.lean.send("POST", "/v1/tool-calls", json.dumps(body).encode())

    def _note(self, job: Job, response: dict[str, Any], took_ms: float) -> None:
        timings, sandbox = response.get("timings_ms") or {}, response.get("sandbox") or {}
        if not timings.keys() >= PHASES or "acquired" not in sandbox:
            self.without_phases += 1
            return
        self.answered[job.name] = self.answered.get(job.name, 0) + 1
        self.warm[job.name] = self.warm.get(job.name, 0) + (sandbox["acquired"] == "warm")
        inside = sum(timings[phase] for phase in IN_SANDBOX)
        self.overhead_ms.setdefault(job.name, []).append(took_ms - inside)
