"""Renders the golden documents through the service; the second readers open every file, all in one start."""

import asyncio
import itertools
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.app.bootstrap import Service
from proofbox.service.identity import ConversationKey
from tests.container.calling import Caller
from tests.container.golden_documents import DOCUMENTS, FOLDER, PICTURE, SOURCES_POOL, GoldenDocument

FORMATS = ("pdf", "png", "docx", "pptx")
ARCHIVES = ("pdf/a-2b", "pdf/a-3b")
WORKBOOK = "report.xlsx"
"""The tables of a document and the text around them."""
# Between them they have all that PDF/A forbids or demands: pictures, transparency, drawings, many fonts, links.
ARCHIVED = ("report", "science", "scripts")
IMAGE = "proofbox-readers:latest"
# As many as the machines of our tests have cores.
CALLS_AT_ONCE = 2


@dataclass(frozen=True)
class Read:
    """The rendered files and what the readers found.

    Attributes:
        folder: holds ``<document>.<format>``, and ``<document>.a-2b.pdf`` and so on.
        printed: holds what LibreOffice printed of them, ``<document>.<format>.pdf``.
        warnings: what each rendering warned of, by the file's name.
        found: the answer of the readers: ``{check: {file: …}}``.
    """

    folder: Path
    printed: Path
    warnings: dict[str, list[str]]
    found: dict[str, dict[str, Any]]

    def words(self, name: str, reader: str) -> list[str]:
        """The words of all pages of a file, as ``poppler``, ``pdfium`` or ``pypdf`` reads them."""
        check = "text" if name.endswith(".pdf") else "convert"
        return [word for page in self.found[check][name]["pages"] for word in page[reader]]


async def rendered_and_read(service: Service, folder: Path) -> Read:
    """Renders every document in every format, and the first one as PDF/A, and lets the readers read."""
    files, printed = folder / "files", folder / "printed"
    for place in (files, printed):
        place.mkdir(parents=True)
    printed.chmod(0o777)  # the readers have a user of their own
    caller = Caller(service, conversation="golden-documents")
    await caller.attach(Path(PICTURE).name, (FOLDER / Path(PICTURE).name).read_bytes(), "turn_1")
    wanted = [(document, f"{name}.{output}", {}) for name, document in DOCUMENTS.items() for output in FORMATS]
    wanted += [
        (document, f"{name}.{variant.removeprefix('pdf/')}.pdf", {"pdf_variant": variant})
        for name, document in DOCUMENTS.items()
        if name in ARCHIVED
        for variant in ARCHIVES
    ]
    wanted.append((DOCUMENTS["report"], WORKBOOK, {}))
    free = asyncio.Semaphore(CALLS_AT_ONCE)
    numbers = itertools.count(1)

    async def one(document: GoldenDocument, name: str, params: dict[str, Any]) -> list[str]:
        async with free:
            return await _render(caller, document, files / name, f"render_{next(numbers)}", params)

    warned = await asyncio.gather(*(one(*entry) for entry in wanted))
    warnings = {name: warnings for (_, name, _), warnings in zip(wanted, warned, strict=True)}
    found = await asyncio.to_thread(_read, folder)
    return Read(files, printed, warnings, found)


async def _render(
    caller: Caller, document: GoldenDocument, target: Path, call_id: str, params: dict[str, Any]
) -> list[str]:
    output = target.suffix.removeprefix(".")
    request = {
        "tool_id": f"rendering_tools.write_{output}",
        "tool_call_id": call_id,
        "conversation_id": caller.conversation,
        "turn_id": "turn_2",
        "params": {
            "path": target.name,
            "content": document.content,
            "format": document.source_format,
            "title": document.title,
            **({"include_sources_slide": True} if output == "pptx" else {}),
            **params,
        },
        "sources_pool": SOURCES_POOL,
    }
    service = caller.service
    ticket = await service.calls.submit(
        service.principal,
        ToolCallRequest.model_validate(request),
        idempotency_key=None,
        request_id="test",
        detached=False,
    )
    answer = await ticket.answer()
    assert not answer.is_problem, answer.body
    response = ToolCallResponse.model_validate_json(answer.body)
    assert response.ok, response.error
    (artifact,) = response.artifacts
    scope = ConversationKey(service.principal, caller.conversation)
    async with service.artifacts.staging() as staging:
        local = await service.artifacts.fetch_uri(scope, artifact.hosted_uri, staging)
        await asyncio.to_thread(shutil.copyfile, local, target)
    return [json.loads(block.text or "")["code"] for block in response.blocks if block.type == "react.notice"]


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    command = [
        *("docker", "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--memory", "3g", "--tmpfs", "/tmp:rw,size=512m,uid=10001"),
        *("--volume", f"{folder / 'files'}:/in:ro", "--volume", f"{folder / 'printed'}:/out"),
        # The limit is inside, so that no container outlives it.
        *("--entrypoint", "timeout", IMAGE, "600", "python3", "-m", "readers"),
        *("convert", "ooxml", "pdfua", "pdfa", "text", "tags", "--seconds", "300"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    answer: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return answer
