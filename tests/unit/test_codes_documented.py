"""docs/errors.md has every code that an answer can have."""

import re
from pathlib import Path

import pytest

from proofbox.contracts.codes import (
    ContractCode,
    NoticeCode,
    ProblemCode,
    RuntimeCode,
    ToolCode,
    VerdictCode,
    WebCode,
)
from proofbox.contracts.gateway.codes import ConfigurationCode, GatewayCode, WarningCode

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
RENDER_ERROR = re.compile(r"(?:RenderError|_failed)\(\s*\"([a-z_]+)\"")
"""How the programs of the sandbox image raise a code."""


@pytest.mark.parametrize(
    "codes",
    [
        ContractCode,
        RuntimeCode,
        VerdictCode,
        ToolCode,
        NoticeCode,
        WebCode,
        ProblemCode,
        GatewayCode,
        WarningCode,
        ConfigurationCode,
    ],
)
def test_every_code_of_the_wire_is_documented(codes):
    assert [code for code in codes if f"`{code}`" not in PAGE] == []


def test_every_code_of_the_renderer_is_documented():
    sources = (ROOT / "sandbox_images" / "render").rglob("*.py")
    raised = {code for source in sources for code in RENDER_ERROR.findall(source.read_text(encoding="utf-8"))}

    assert "invalid_page_size" in raised
    assert sorted(code for code in raised if f"`{code}`" not in PAGE) == []
