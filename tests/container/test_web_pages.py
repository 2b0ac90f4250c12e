"""Web pages read in the real sandbox: what is found in them, and what hostile ones cost."""

import asyncio

import pytest

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from proofbox.service.identity import ConversationKey
from tests.support.web_server import response, web_server

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

ARTICLE = """<html lang="de-DE"><head><title>Gezeiten</title></head>
<body><nav>Start</nav><article><h1>Ebbe und Flut</h1>
<p>Der Mond zieht das Wasser der Meere an, und darum steigt die See an den meisten Küsten zweimal am Tag.</p>
<p>Bei Neumond und bei Vollmond hilft die Sonne mit, und das Wasser steigt höher als an anderen Tagen.</p>
<table><tr><th>Ort</th><th>Hub</th></tr><tr><td>Husum</td><td>3,5 m</td></tr></table></article></body></html>"""
HOSTILE = {
    "deep": "<html><body>" + "<div>" * 100_000 + "<p>inside</p>",
    "entities": '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><html><p>&b;</p></html>',
    "outside": '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><html><p>&f; some words</p></html>',
    "attributes": "<html><p " + "a='b' " * 200_000 + ">words</p></html>",
    "tables": "<html><body>" + "<table><tr><td>" * 3_000 + "words",
    "binary": "\x00\x01\x02" * 100_000,
    "empty": "",
    "frames": '<html><frameset><frame src="http://127.0.0.1/"></frameset></html>',
    "scripts": "<html><body><script>document.write('x')</script></body></html>",
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("web")


class Web:
    """A service that may fetch from one server of the test."""

    def __init__(self, service, server):
        self.service = service
        self.server = server
        self.calls = 0

    async def fetch(self, *urls, conversation="web") -> ToolCallResponse:
        self.calls += 1
        request = ToolCallRequest(
            tool_id="web_tools.web_fetch",
            tool_call_id=f"f{self.calls}",
            conversation_id=conversation,
            turn_id="turn_1",
            params={"urls": list(urls)},
        )
        ticket = await self.service.calls.submit(
            self.service.principal, request, idempotency_key=None, request_id="test", detached=False
        )
        answer = await ticket.answer()
        assert not answer.is_problem, answer.body
        return ToolCallResponse.model_validate_json(answer.body)


async def with_web(data_dir, use):
    async with web_server() as server:
        settings = Settings(
            data_dir=data_dir,
            pool_size=1,
            web_allowed_networks=("127.0.0.0/8",),
            web_ports=(server.port,),
            web_read_page_s=10,
        )
        service = build(settings)
        async with running(service):
            return await use(Web(service, server))


async def test_a_page_is_read_in_the_sandbox_and_becomes_a_source_and_blocks(data_dir):
    async def use(web):
        web.server.answers["/tides"] = response(ARTICLE.encode("latin-1"), "text/html; charset=iso-8859-1")
        url = web.server.url("/tides")
        answer = await web.fetch(url)
        rows = await web.service.sources.rows(ConversationKey(web.service.principal, "web"))
        page = await web.service.timeline.page(ConversationKey(web.service.principal, "web"), 0, 10)
        return answer, url, rows, page

    answer, url, [row], page = await with_web(data_dir / "article", use)
    assert answer.ok
    assert answer.sandbox is not None
    assert answer.ret[url] == {
        "content": "# Ebbe und Flut\n\nDer Mond zieht das Wasser der Meere an, und darum steigt die See an den "
        "meisten Küsten zweimal am Tag.\n\nBei Neumond und bei Vollmond hilft die Sonne mit, und das Wasser "
        "steigt höher als an anderen Tagen.\n\n| Ort | Hub | \n|---|---|\n| Husum | 3,5 m |",
        "title": "Gezeiten",
        "sid": 1,
        "mime": "text/html",
        "language": "de-DE",
    }
    assert (row.sid, row.url, row.text) == (1, url, answer.ret[url]["content"])
    assert page.blocks == answer.blocks


async def test_hostile_pages_end_in_time_and_cost_the_others_nothing(data_dir):
    async def use(web):
        for name, text in HOSTILE.items():
            web.server.answers[f"/{name}"] = response(text.encode("utf-8"))
        web.server.answers["/tides"] = response(ARTICLE.encode())
        urls = [web.server.url(f"/{name}") for name in [*HOSTILE, "tides"]]
        async with asyncio.timeout(120):
            return urls, await web.fetch(*urls, conversation="hostile")

    urls, answer = await with_web(data_dir / "hostile", use)
    assert answer.ret[urls[-1]]["content"].startswith("# Ebbe und Flut")
    assert set(answer.ret) == set(urls)
    assert "root:" not in answer.blocks[-1].text
    assert {entry["error"]["code"] for entry in answer.ret.values() if "error" in entry} <= {"unreadable_page"}
