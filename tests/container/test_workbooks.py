"""``write_xlsx`` through the real service: the workbook, warnings, refusals, texts by reference, and over HTTP."""

import io
import json

import openpyxl
import pytest
from test_rendering_tools import Renderer

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
SALES = """\
## Sales

| Item | Units | Price | Sum |
|---|--:|--:|--:|
| Desk | 1,200 | $5.20 | =B2*C2 |
| Lamp | 900 | $7.00 | =B3*C3 |
| Total | =SUM(B2:B3) | | =SUM(D2:D3) |

## Ids

| ZIP | Note |
|---|---|
| 01234 | =WEBSERVICE("http://example.org") |
"""


@pytest.fixture
def render(service):
    return Renderer(service)


async def opened(render, response):
    return openpyxl.load_workbook(io.BytesIO(await render.bytes_of(response)))


async def test_a_workbook_is_checked_hosted_and_told_of_with_its_warnings(render):
    response = await render("xlsx", SALES, author="Ann")
    assert [(block.type, block.mime) for block in response.blocks] == [
        ("react.tool.call", "application/json"),
        ("react.tool.result", "text/markdown"),
        ("react.tool.result", "application/json"),
    ]
    digest = json.loads(response.blocks[2].text)
    assert (digest["artifact_path"], digest["mime"]) == ("fi:turn_2.files/report.xlsx", XLSX)
    assert str(response.artifacts[0].verdict) == "produced"
    assert [warning["code"] for warning in response.ret["warnings"]] == ["formula_refused"]
    assert "Ids!B2" in response.report
    book = await opened(render, response)
    assert book.sheetnames == response.ret["facts"]["sheets"] == ["Sales", "Ids"]
    assert [cell.value for cell in book["Sales"][4]] == ["Total", "=SUM(B2:B3)", None, "=SUM(D2:D3)"]
    assert (book["Ids"]["A2"].value, book["Ids"]["B2"].data_type, book.properties.creator) == ("01234", "s", "Ann")


async def test_a_csv_file_of_the_conversation_is_a_workbook(render, call):
    call.conversation = render.conversation
    await call("open('files/data.csv', 'w').write('id;sum\\n007;1,5\\n')", ["data.csv"], turn_id="turn_1")
    response = await render("xlsx", "fi:turn_1.files/data.csv", "files/out.xlsx", sheets="Data")
    book = await opened(render, response)
    assert (book.sheetnames, [cell.value for cell in book["Data"][2]]) == (["Data"], ["007", 1.5])
    assert response.ret["warnings"] == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("# Title\n\nOnly words.", "no_tables"),
        (f"<table><tr>{'<td>1' * 1_001}</table>", "too_many_columns"),
        ("a\n" * 200_001, "too_many_rows"),
    ],
    ids=["text", "wide", "long"],
)
async def test_what_cannot_be_a_workbook_is_refused(render, content, code):
    response = await render(
        "xlsx", content, format="html" if "<" in content else "csv" if code[0] == "t" else "markdown"
    )
    assert (response.ok, response.error.code) == (False, code)
    assert response.error.message.startswith("content: ")


async def test_a_workbook_over_http(http):
    body = {
        "tool_id": "rendering_tools__write_xlsx",
        "tool_call_id": "workbook_1",
        "conversation_id": "workbooks",
        "turn_id": "turn_1",
        "params": {"path": "sales", "content": SALES, "theme": "brand"},
    }
    answer = (await http.post("/v1/tool-calls", json=body)).json()
    assert (answer["ok"], answer["ret"]["facts"]["formulas"]) == (True, 4)
    assert answer["artifacts"][0]["logical_path"] == "fi:turn_1.files/sales.xlsx"
    wrong = {**body, "tool_call_id": "workbook_2", "params": {**body["params"], "sheetNames": ["a"]}}
    refused = (await http.post("/v1/tool-calls", json=wrong)).json()
    assert "did you mean sheets?" in refused["error"]["message"]
