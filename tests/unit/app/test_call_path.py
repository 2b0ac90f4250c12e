"""How much code one exec call enters: the bound on the files that a reader of the main path has to open."""

import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx

from proofbox.service.api.app import create_app
from tests.support.pipeline import EXEC, opened_pipeline, services_over

ROOT = Path(__file__).parents[3]
OURS = (f"{ROOT}/proofbox/service/", f"{ROOT}/proofbox/contracts/")
FILES_MAX = 101


class Entered:
    """The files and functions of ours that are entered, in every thread that begins after ``installed``.

    Attributes:
        files: of each count, the files.
        functions: of each count, the functions: file, name and line.
    """

    def __init__(self) -> None:
        self.files: list[set[str]] = []
        self.functions: list[set[tuple[str, str, int]]] = []
        self._is_counting = False

    def begin(self) -> None:
        """Begin a count."""
        self.files.append(set())
        self.functions.append(set())
        self._is_counting = True

    def end(self) -> None:
        """End it."""
        self._is_counting = False

    def __call__(self, frame, event, _argument) -> None:
        name = frame.f_code.co_filename
        if self._is_counting and event == "call" and name.startswith(OURS):
            relative = name.removeprefix(f"{ROOT}/proofbox/")
            self.files[-1].add(relative)
            self.functions[-1].add((relative, frame.f_code.co_qualname, frame.f_code.co_firstlineno))

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
                answers = [await client.post("/v1/tool-calls", json={**request, "tool_call_id": "call_1"})]
                for number in range(2, 5):
                    entered.begin()
                    answers.append(
                        await client.post("/v1/tool-calls", json={**request, "tool_call_id": f"call_{number}"})
                    )
                    entered.end()
    assert [answer.json()["ok"] for answer in answers] == [True] * 4
    # What runs beside one of the calls, as a task of every few seconds, is no part of its path.
    files, functions = set.intersection(*entered.files), set.intersection(*entered.functions)
    listed = "\n".join(f"{sum(name == found for found, *_ in functions):5} {name}" for name in sorted(files))
    sys.stdout.write(f"\n{listed}\n{len(files)} files of ours, {len(functions)} functions\n")
    assert len(files) <= FILES_MAX
