"""How much code one exec call enters: the bound on the files that a reader of the main path has to open."""

import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import httpx

from proofbox.service.api.app import create_app
from tests.support.pipeline import EXEC, opened_pipeline, services_over

ROOT = Path(__file__).parents[3]
OURS = (f"{ROOT}/proofbox/service/", f"{ROOT}/proofbox/contracts/")
FILES_MAX = 98


class Entered:
    """The files and functions of ours that are entered, in every thread that begins after ``installed``."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        self.functions: set[tuple[str, str, int]] = set()
        self.is_counting = False

    def __call__(self, frame, event, _argument) -> None:
        name = frame.f_code.co_filename
        if self.is_counting and event == "call" and name.startswith(OURS):
            relative = name.removeprefix(f"{ROOT}/proofbox/")
            self.files[relative] += 1
            self.functions.add((relative, frame.f_code.co_qualname, frame.f_code.co_firstlineno))

    @contextmanager
    def installed(self):
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


async def test_an_exec_call_enters_a_bounded_number_of_files(tmp_path):
    entered = Entered()
    request = {
        "tool_id": EXEC,
        "conversation_id": "conv-1",
        "turn_id": "turn_1",
        "params": {"contract": [{"filename": "a.csv", "description": "a table"}]},
        "code": "print(1)",
    }
    with entered.installed():
        async with opened_pipeline(tmp_path) as pipeline:
            pipeline.engine.program = lambda run: run.write("a.csv", b"a,b\n1,2\n")
            transport = httpx.ASGITransport(create_app(services_over(pipeline)))
            async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
                first = await client.post("/v1/tool-calls", json={**request, "tool_call_id": "call_1"})
                entered.is_counting = True
                second = await client.post("/v1/tool-calls", json={**request, "tool_call_id": "call_2"})
                entered.is_counting = False
    assert (first.json()["ok"], second.json()["ok"]) == (True, True)
    listed = "\n".join(f"{count:5} {name}" for name, count in sorted(entered.files.items()))
    sys.stdout.write(f"\n{listed}\n{len(entered.files)} files of ours, {len(entered.functions)} functions\n")
    assert len(entered.files) <= FILES_MAX
