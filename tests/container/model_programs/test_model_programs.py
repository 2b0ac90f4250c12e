"""Programs as models write them: each gets the report that is committed for it.

``PROOFBOX_TEST_GOLDEN=write`` writes the reports anew; read the difference before you commit it.
"""

import os
import re
from typing import Any

import pytest

from proofbox.contracts.tools import Language
from proofbox.service.app.bootstrap import Service
from tests.container.calling import Caller
from tests.container.model_programs.corpus import (
    FOLDER,
    ModelProgram,
    Step,
    read_programs,
    read_reports,
    write_reports,
)

pytestmark = pytest.mark.docker

PROGRAMS = read_programs()
SAMPLE_STEP = 3
"""Every so manieth program of the corpus is part of each run; `make tests-slow` runs the others."""


def parameters() -> list[Any]:
    return [
        pytest.param(
            program,
            id=f"{program.area}-{program.name}",
            marks=[pytest.mark.slow] if number % SAMPLE_STEP else [],
        )
        for number, program in enumerate(PROGRAMS)
    ]


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("program", parameters())
async def test_program_gets_the_committed_report(service: Service, program: ModelProgram) -> None:
    call = Caller(service, conversation=f"{program.area}-{program.name}", turn="turn_2")
    # A report may name its call.
    reports = [await report_of(call, step, f"tc_{number}") for number, step in enumerate(program.steps, 1)]
    if os.environ.get("PROOFBOX_TEST_GOLDEN") == "write":
        write_reports(program.area, read_reports(program.area) | {program.name: reports})
    assert reports == read_reports(program.area)[program.name]


async def report_of(call: Caller, step: Step, call_id: str) -> str:
    request = dict(step.request)
    for name in request.pop("attach", ()):
        await call.attach(name, (FOLDER / "data" / name).read_bytes(), turn_id="turn_1")
    variable = request.pop("variable", ())
    response = await call(step.code, **{"tool_call_id": call_id, **call_fields(request)})
    report = response.report
    for pattern in variable:
        report = re.sub(pattern, "<…>", report)
    return report


def call_fields(request: dict[str, Any]) -> dict[str, Any]:
    """The request as `Caller` takes it: without a contract, none is sent."""
    fields = {"contract": None, **request}
    if "language" in fields:
        fields["language"] = Language(fields["language"])
    return fields


def test_every_report_belongs_to_a_program() -> None:
    programs = {(program.area, program.name) for program in PROGRAMS}
    reports = {(path.stem, name) for path in (FOLDER / "reports").glob("*.md") for name in read_reports(path.stem)}
    assert reports == programs
