"""Documents read in the real sandbox: what programs wrote comes back as text, hostile ones cost nothing."""

import io
import json
import zipfile

import pytest

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.identity import ConversationKey

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

CODE = """
import docx, openpyxl, pptx
d = docx.Document(); d.add_heading('Bericht', 1); d.add_paragraph('Alles ist gut, Straße für Straße.')
t = d.add_table(rows=1, cols=2); t.cell(0, 0).text = 'a'; t.cell(0, 1).text = 'b'
d.save('files/r.docx')
b = openpyxl.Workbook(); b.active.title = 'Sales'; b.active.append(['x', 1])
b.active.append(['sum', '=SUM(B1:B1)'])
b.save('files/b.xlsx')
p = pptx.Presentation(); s = p.slides.add_slide(p.slide_layouts[1]); s.shapes.title.text = 'Plan'
s.placeholders[1].text = 'Start'; p.save('files/p.pptx')
"""
NAMES = ["r.docx", "b.xlsx", "p.pptx"]


class Agent:
    """Calls of one conversation of the session's service."""

    def __init__(self, service, conversation: str) -> None:
        self.service = service
        self.conversation = conversation
        self.calls = 0

    async def __call__(self, tool_id: str, code: str | None = None, **params) -> ToolCallResponse:
        self.calls += 1
        request = ToolCallRequest(
            tool_id=tool_id,
            tool_call_id=f"d{self.calls}",
            conversation_id=self.conversation,
            turn_id="turn_1",
            params=params,
            code=code,
        )
        ticket = await self.service.calls.submit(
            self.service.principal, request, idempotency_key=None, request_id="test", detached=False
        )
        answer = await ticket.answer()
        assert not answer.is_problem, answer.body
        return ToolCallResponse.model_validate_json(answer.body)

    async def attach(self, name: str, data: bytes) -> None:
        async def pieces():
            yield data

        scope = ConversationKey(self.service.principal, self.conversation)
        await self.service.attachments.store(scope, "turn_1", name, pieces(), None)

    async def texts(self, *paths: str) -> dict[str, str]:
        answer = await self("react.read", paths=list(paths))
        return {block.path: block.text for block in answer.blocks if block.meta.get("extracted")}


async def test_what_programs_wrote_is_read_as_text(service):
    agent = Agent(service, "documents-1")
    contract = [{"filename": name, "description": "d"} for name in NAMES]
    made = await agent("exec_tools.execute_code_python", CODE, contract=contract)
    assert made.ok, made.report
    drawn = await agent("rendering_tools.write_pdf", path="q.pdf", content="# Kopf\n\nEin Satz.\n")
    assert drawn.ok, drawn.report
    texts = await agent.texts(*(f"fi:turn_1.files/{name}" for name in [*NAMES, "q.pdf"]))
    assert texts["fi:turn_1.files/r.docx"] == (
        "# Bericht\n\nAlles ist gut, Straße für Straße.\n\n| a | b |\n|---|---|"
    )
    assert texts["fi:turn_1.files/b.xlsx"] == "## Sheet Sales\n\nx\t1\nsum\t=SUM(B1:B1)"
    assert texts["fi:turn_1.files/p.pptx"] == "## Slide 1: Plan\n\nStart"
    assert texts["fi:turn_1.files/q.pdf"].startswith("## Page 1\n\nKopf\nEin Satz.")


def bomb() -> bytes:
    target = io.BytesIO()
    with (
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("[Content_Types].xml", "w") as to,
    ):
        for _ in range(1_000):
            to.write(b" " * 1_000_000)
    return target.getvalue()


@pytest.mark.slow
async def test_a_bomb_costs_its_own_text_and_the_next_document_is_read(service):
    agent = Agent(service, "documents-2")
    await agent.attach("bomb.docx", bomb())
    await agent.attach("broken.pdf", b"%PDF-1.7 nothing")
    answer = await agent("react.read", paths=["attachments/bomb.docx", "attachments/broken.pdf"])
    made = await agent(
        "exec_tools.execute_code_python", CODE, contract=[{"filename": "r.docx", "description": "d"}]
    )
    assert made.ok, made.report
    assert list(await agent.texts("fi:turn_1.files/r.docx")) == ["fi:turn_1.files/r.docx"]
    partly = json.loads(answer.blocks[1].text or "")["partly_shown"]
    assert ["its text cannot be extracted: " in why for why in partly.values()] == [True, True], partly
    assert answer.sandbox is not None
