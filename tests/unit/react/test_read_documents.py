"""react.read of documents: their text is shown, read on and searched by lines; what cannot be read says why."""

import io
import json

import docx
import openpyxl
import pytest

from proofbox.service.calls.admission import Admission
from proofbox.service.errors import EngineUnavailableError
from proofbox.service.jobs.input_resolver import InputResolver, WorkspaceBounds
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.react.document_reader import DOCUMENT_KINDS, DocumentReader
from proofbox.service.sandbox.limits import CallLimits, CallPolicy
from proofbox.service.timeline.artifact_versions import find_versions
from proofbox.service.web.page_reader import ReadingPolicy
from tests.support.conversations import opened_conversation, sha256, status, told
from tests.support.reading_engine import ReadingEngine

MIB = 1024 * 1024
LIMITS = CallLimits(60, 1, 512 * MIB, 64, 128 * MIB, 1000, 64 * MIB, 100, 8, MIB, 64 * MIB)
DOCX, XLSX, PDF = ({kind: mime for mime, kind in DOCUMENT_KINDS.items()}[kind] for kind in ("docx", "xlsx", "pdf"))


class NoEngine:
    """The port ``SandboxEngine``, without any sandbox."""

    def open(self, spec):
        raise EngineUnavailableError(f"no sandbox for {spec.call_name}")


@pytest.fixture
def engine(tmp_path):
    return ReadingEngine(tmp_path / "engine")


@pytest.fixture
async def conversation(tmp_path, engine):
    async with opened_conversation(tmp_path) as opened:
        opened.documents = reading(opened, engine)
        yield opened


def reading(conversation, engine):
    rehosting = InputResolver(conversation.files, conversation.sources, WorkspaceBounds(0, 0))
    admission = Admission(running_max=1, queue_max=1)
    runs = JobRunner(admission, rehosting, engine, conversation.artifacts, conversation.sources)
    return DocumentReader(runs, ReadingPolicy(CallPolicy(LIMITS, 10, 10, MIB), 60, 30))


def saved(document) -> bytes:
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def letter(*paragraphs: str) -> bytes:
    document = docx.Document()
    for text in paragraphs:
        document.add_paragraph(text)
    return saved(document)


async def test_a_document_is_shown_as_its_digest_its_block_and_its_text(conversation):
    data = letter("Dear Ann,", "all is well.")
    await conversation.attach("turn_1", "letter.docx", data)
    path = "fi:turn_1.user.attachments/letter.docx"
    response = await conversation.read(path)
    assert told(response)[2:] == [
        ("react.tool.result", "tc:turn_9.r1.result", "text"),
        ("react.tool.result", path, None),
        ("react.tool.result", path, "text"),
    ]
    shown = response.blocks[-1]
    assert (shown.mime, shown.text, shown.meta["extracted"]) == ("text/markdown", "Dear Ann,\n\nall is well.", True)
    assert "partly_shown" not in status(response)
    assert response.sandbox is not None


async def test_what_is_in_view_is_not_shown_twice_and_is_not_taken_for_the_file(conversation, engine):
    data = letter("Dear Ann,")
    await conversation.attach("turn_1", "letter.docx", data)
    path = "fi:turn_1.user.attachments/letter.docx"
    await conversation.read(path)
    second = await conversation.read(path)
    assert status(second)["exists_in_visible_context"] == [path]
    assert len(engine.jobs) == 1
    versions = await find_versions(conversation.files.of_call(conversation.scope).memory, path)
    assert [version.sha256 for version in versions] == [sha256(data)]
    contents, gathered = await conversation.gather("'turn_1/attachments/letter.docx'")
    assert (contents["turn_1/attachments/letter.docx"], gathered.missing) == (data, [])


async def test_a_long_document_is_read_on_by_lines_and_by_bytes(conversation):
    book = openpyxl.Workbook()
    for number in range(3_000):
        book.active.append([f"row {number}", number])
    await conversation.save("turn_1/files/b.xlsx", saved(book), XLSX)
    path = "fi:turn_1.files/b.xlsx"
    response = await conversation.read(path)
    assert response.blocks[-1].text.startswith("## Sheet Sheet\n\nrow 0\t0\nrow 1\t1\n")
    onward = status(response)["partly_shown"][path].rpartition("read on with ")[2]
    assert onward.startswith(f"{path}#L1")
    rest = await conversation.read(onward)
    number = int(onward.partition("#L")[2].rstrip("-"))
    assert rest.blocks[-1].text.split("\n")[1] == f"row {number - 3}\t{number - 3}"
    assert (await conversation.read(f"{path}#B3-7")).blocks[-1].text == "[bytes 3-7 of 39795]\nSheet"
    digest = json.loads(rest.blocks[-2].text)
    assert (digest["artifact_path"], digest["lines_total"]) == (path, 3_002)


async def test_a_pdf_comes_with_its_pages_and_its_text(conversation):
    data = (await _pdf()).getvalue()
    await conversation.save("turn_1/files/a.pdf", data, PDF)
    response = await conversation.read("fi:turn_1.files/a.pdf", "fi:turn_1.files/a.pdf#L1")
    kinds = [what for _, path, what in told(response) if path == "fi:turn_1.files/a.pdf"]
    assert kinds == ["base64", "text"]
    assert response.blocks[-1].text == "[lines 1-1 of 3]\n## Page 1\n"


async def _pdf() -> io.BytesIO:
    import pypdf  # noqa: PLC0415

    writer = pypdf.PdfWriter()
    writer.add_blank_page(200, 200)
    target = io.BytesIO()
    writer.write(target)
    return target


async def test_a_damaged_document_is_shown_without_its_text_and_says_why(conversation):
    await conversation.save("turn_1/files/a.docx", b"PK no archive", DOCX)
    path = "fi:turn_1.files/a.docx"
    response = await conversation.read(path)
    assert response.ok
    assert "its text cannot be extracted: " in status(response)["partly_shown"][path]
    lines = await conversation.read(f"{path}#L1-5")
    assert "its text cannot be extracted: " in status(lines)["reasons"][f"{path}#L1-5"]


async def test_without_a_sandbox_the_rest_is_read_all_the_same(conversation):
    conversation.documents = reading(conversation, NoEngine())
    await conversation.save("turn_1/files/a.docx", letter("x"), DOCX)
    await conversation.save("turn_1/files/a.txt", b"text")
    response = await conversation.read("fi:turn_1.files/a.docx", "fi:turn_1.files/a.txt")
    assert response.blocks[-1].text == "text"
    assert "no free sandbox" in status(response)["partly_shown"]["fi:turn_1.files/a.docx"]


@pytest.mark.parametrize(
    "written", [b"", b"[]", b'{"pages": 1}', b'{"pages": [5]}', b'{"pages": [{"text": 5}]}', b"\xff"]
)
async def test_what_a_document_that_took_the_program_over_writes_is_not_believed(conversation, engine, written):
    engine.writes = written
    await conversation.save("turn_1/files/a.docx", letter("x"), DOCX)
    response = await conversation.read("fi:turn_1.files/a.docx")
    assert "the reader gave no answer" in status(response)["partly_shown"]["fi:turn_1.files/a.docx"]


async def test_text_loses_what_no_prompt_can_carry(conversation, engine):
    engine.writes = json.dumps({"pages": [{"text": "a\x00b\ud800c", "title": "", "truncated": True}]}).encode()
    await conversation.save("turn_1/files/a.docx", letter("x"), DOCX)
    text = (await conversation.read("fi:turn_1.files/a.docx")).blocks[-1].text
    assert text == "ab?c\n\n(the text is cut here, after 4 characters)"


async def test_another_conversation_of_another_tenant_reads_the_document_itself(conversation):
    scope = conversation.scope
    data = letter("x")
    await conversation.save("turn_1/files/a.docx", data, DOCX)
    await conversation.read("fi:turn_1.files/a.docx")
    assert conversation.documents.known_text(scope, sha256(data)) == "x"
    foreign = type(scope)(type(scope.principal)("other", "books", "registered", "eve"), scope.conversation_id)
    assert conversation.documents.known_text(foreign, sha256(data)) is None
