"""Secrets in what MCP servers send: whole ones are removed before anything is cut, also from media types."""

import base64

import pytest

from proofbox.contracts.media_types import OCTET_STREAM
from proofbox.service.gateway.mcp.elicitation import FORMS_MAX, questions_of
from proofbox.service.gateway.mcp.pinned_tool import PinnedTool
from proofbox.service.gateway.mcp.port import AskedForm, AskedInput, EncodedFile, McpFailedError, ServerAnswer
from proofbox.service.gateway.mcp.results import read_answer, shown_reason
from proofbox.service.gateway.redaction import Redactor

SECRET = "s3cret-of-the-operator-with-many-characters"
PART = SECRET[:12]


def tool(output_schema=None):
    return PinnedTool("desk", "say", "i", "n", "d", {"type": "object"}, output_schema, {}, "a" * 64)


def answer(**fields):
    empty = {"is_error": False, "has_structured": False, "structured": None, "texts": [], "files": [], "links": []}
    return ServerAnswer(**{**empty, **fields})


@pytest.mark.parametrize("before", range(0, 2_100, 7))
def test_a_reason_that_is_cut_has_no_part_of_a_secret(before):
    assert PART not in shown_reason("x" * before + SECRET, Redactor([SECRET]))


def test_a_reason_has_no_controls_and_no_secret_behind_them():
    assert shown_reason(f"a\x00b {PART}\x07{SECRET[12:]}", Redactor([SECRET])) == "ab [redacted]"


@pytest.mark.parametrize("before", range(0, 400, 5))
def test_what_does_not_fit_is_named_without_a_part_of_a_secret(before):
    schema = {"type": "object", "properties": {"a": {"enum": ["b"]}}, "additionalProperties": False}
    for structured in ({"a": "x" * before + SECRET}, {"x" * before + SECRET: 1}):
        with pytest.raises(McpFailedError) as failed:
            read_answer(answer(has_structured=True, structured=structured), tool(schema), Redactor([SECRET]), 9_999)
        assert failed.value.message.startswith("the result does not fit the tool's output schema")
        assert PART not in failed.value.message


def test_a_result_that_fits_before_its_secret_is_removed_fits():
    schema = {"type": "object", "properties": {"a": {"const": SECRET}}}
    read = read_answer(
        answer(has_structured=True, structured={"a": SECRET}), tool(schema), Redactor([SECRET]), 9_999
    )
    assert read.data == {"a": "[redacted]"}


@pytest.mark.parametrize("mime", [f"text/{SECRET}", f"text/{SECRET.upper()}", f"text/plain; a={SECRET}"])
def test_a_media_type_with_a_secret_is_not_shown(mime):
    file = EncodedFile(base64.b64encode(b"a").decode(), mime)
    [read] = read_answer(answer(files=[file]), tool(), Redactor([SECRET]), 9_999).files
    assert read.mime == OCTET_STREAM


@pytest.mark.parametrize("is_declined", [True, False])
def test_keys_and_what_is_declined_are_bounded(is_declined):
    form = AskedForm("?", {"type": "object"})
    for forms, others in (
        ({"a" * 201: form}, []),
        ({}, ["a" * 201]),
        ({}, [str(number) for number in range(FORMS_MAX + 1)]),
        ({"a": form}, [str(number) for number in range(FORMS_MAX)]),
    ):
        with pytest.raises(McpFailedError) as failed:
            questions_of(AskedInput(forms, others, None), Redactor(), 1, is_declined=is_declined)
        assert failed.value.code == "mcp_tool_error"
    asked = AskedInput({"a" * 200: form}, [str(number) for number in range(FORMS_MAX - 1)], None)
    assert len(questions_of(asked, Redactor(), 1, is_declined=True).actions) == FORMS_MAX
