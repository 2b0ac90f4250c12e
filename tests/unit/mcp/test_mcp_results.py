"""Results of MCP tools stay within their bounds, and their data has no bytes."""

import base64
import json
import zlib
from struct import pack

import pytest
from mcp_types import ImageContent, ResourceLink, TextContent

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_response import ArtifactResult, ToolCallResponse
from proofbox.service.mcp.calls import CallOutcome, Handle
from proofbox.service.mcp.preview import Picture, size_of
from proofbox.service.mcp.results import (
    REPORT_BYTES_MAX,
    RESULT_BYTES_MAX,
    TEXT_BYTES_MAX,
    CallData,
    FileData,
    build_result,
    call_data,
    file_link,
    file_uri,
    output_schema,
    picture_block,
    text_block,
)

HANDLE = Handle("c1", "call_1")


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))

    head = pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\x80" * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////"
    "////////wAALCAACAAMBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AR//Z"
)


def size_bytes(result) -> int:
    return len(result.model_dump_json(by_alias=True, exclude_none=True))


def link(name: str) -> ResourceLink:
    return file_link("c1", FilePath("turn_1", Namespace.FILES, name), FileData(path=name, sha256="0" * 64))


@pytest.mark.parametrize(
    ("content", "size"),
    [
        (png(3, 2), (3, 2)),
        (png(1_501, 1), (1_501, 1)),
        (b"GIF89a" + pack("<HH", 7, 5) + b"\0\0\0;", (7, 5)),
        (JPEG, (3, 2)),
        (JPEG[:20], None),
        (png(3, 2)[:18], None),
        (b"\xff\xd8\xff" + b"\xe0\0\0" * 100, None),
        (b"GIF89a", None),
        (b"", None),
        (b"<svg/>", None),
    ],
)
def test_the_size_of_a_picture_is_read_from_its_head(content, size):
    assert size_of(content) == size


def test_a_text_is_cut_and_says_so():
    block = text_block("ü" * TEXT_BYTES_MAX)
    assert len(block.text.encode()) < TEXT_BYTES_MAX + 200
    assert f"the text has {2 * TEXT_BYTES_MAX} bytes" in block.text
    assert text_block("short").text == "short"


def test_a_result_with_all_parts_at_their_bounds_is_within_the_bound():
    blocks = [
        text_block("x" * 300_000),
        picture_block(Picture(b"\0" * 256 * 1024, "image/png")),
        *(link(f"{'n' * 200}-{number}.csv") for number in range(50)),
    ]
    result = build_result(blocks)
    assert {type(block) for block in result.content} == {TextContent, ImageContent, ResourceLink}
    assert size_bytes(result) <= RESULT_BYTES_MAX


def test_a_result_beyond_the_bound_loses_its_picture_then_its_links_and_never_its_text():
    text = text_block("\x01" * TEXT_BYTES_MAX)  # six times as long in JSON
    picture = picture_block(Picture(b"\0" * 256 * 1024, "image/png"))
    result = build_result([text, picture, *(link(f"{number}.csv") for number in range(400))])
    assert {type(block) for block in result.content} == {TextContent, ResourceLink}
    assert size_bytes(result) <= RESULT_BYTES_MAX
    many = [link(f"{'n' * 240}{number}/{'m' * 240}.csv") for number in range(800)]
    result = build_result([text, *many])
    assert [type(block) for block in result.content] == [TextContent]
    assert size_bytes(result) <= RESULT_BYTES_MAX


def test_structured_content_has_verdicts_and_output_in_its_report_only():
    artifacts = [
        ArtifactResult(
            logical_path=f"fi:turn_1.files/{number}.csv",
            physical_path=f"turn_1/files/{number}.csv",
            mime="text/csv",
            visibility="external",
            verdict="produced",
            message="m" * 5_000,
            size_bytes=10,
            sha256="0" * 64,
            hosted_uri="file:///secret/place",
        )
        for number in range(300)
    ]
    response = ToolCallResponse(
        ok=True, report="printed-text", blocks=[], artifacts=artifacts, output={"stdout": "printed-text"}
    )
    data = call_data(CallOutcome(HANDLE, "done", response), "printed-text")
    assert data.report == "printed-text"
    text = data.model_dump_json(exclude={"report"})
    assert (len(data.files), data.files_total, data.handle) == (100, 300, "c1/call_1")
    assert "printed-text" not in text
    assert "secret" not in text
    assert len(text) < 64 * 1024
    assert json.loads(text)["files"][0]["verdict"] == "produced"


@pytest.mark.parametrize("unit", ["x", "ü", "😀", "\x01", "\ud800"])
def test_a_report_in_structured_content_is_cut_and_has_a_mark(unit):
    outcome = CallOutcome(HANDLE, "done", ToolCallResponse(ok=True, report="", blocks=[]))
    for count in (1, REPORT_BYTES_MAX // len(unit.encode(errors="replace"))):
        assert call_data(outcome, unit * count).report == (unit * count).encode(errors="replace").decode()
    long = call_data(outcome, unit * REPORT_BYTES_MAX * 2).report
    assert long.startswith(unit.encode(errors="replace").decode())
    assert "[cut here: the report has " in long
    assert REPORT_BYTES_MAX - 4 < len(long.encode()) <= REPORT_BYTES_MAX


def test_a_result_with_a_report_at_its_bound_is_within_the_bound():
    text = "\x01" * TEXT_BYTES_MAX  # six times as long in JSON
    data = call_data(CallOutcome(HANDLE, "done", ToolCallResponse(ok=True, report="", blocks=[])), text)
    blocks = [text_block(text), picture_block(Picture(b"\0" * 256 * 1024, "image/png"))]
    result = build_result([*blocks, *(link(f"{'n' * 200}-{number}.csv") for number in range(50))], data)
    assert size_bytes(result) <= RESULT_BYTES_MAX
    assert result.content[0].text.startswith("\x01")


def test_the_schema_of_a_call_has_its_report():
    assert output_schema(CallData)["properties"]["report"]["type"] == "string"


def test_the_uri_of_a_file_escapes_what_a_uri_cannot_have():
    path = FilePath("turn_1", Namespace.FILES, "a b/ü#?.csv")
    assert file_uri("c:1", path) == "proofbox://c%3A1/turn_1/files/a%20b/%C3%BC%23%3F.csv"
