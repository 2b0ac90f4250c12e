"""The bridge of ``proofbox mcp``: its store, its connections, and answers that are not of the protocol."""

import asyncio
import contextlib
import io
import json

import httpx2
import pytest

from proofbox.cli.local_service import run_lasting_service
from proofbox.cli.mcp_bridge import McpBridge, http_settings
from proofbox.client.api import Api
from proofbox.client.transport import connection_settings
from proofbox.service.storage.error_translation import InUseError


def test_a_store_in_use_is_replaced_by_a_temporary_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    stores = []

    @contextlib.contextmanager
    def run(store):
        stores.append(store)
        if len(stores) == 1:
            raise InUseError("the data folder is in use by another process of the service")
        (store / "proofbox.sqlite3").write_text("")
        yield "http://127.0.0.1:1", "key"

    with run_lasting_service(run) as running:
        assert running == ("http://127.0.0.1:1", "key")
    assert stores[0] == tmp_path / "proofbox" / "local"
    assert stores[1] != stores[0]
    assert not stores[1].exists()
    assert f"another process uses {stores[0]}; this one has a temporary store" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080", "https://a.example", "http://a.example"])
def test_the_bridge_uses_the_proxies_and_certificates_that_other_commands_use(url):
    settings = connection_settings(Api(url, headers={}, timeout_s=0, retries=0))
    assert http_settings(url) == {"trust_env": settings["trust_env"], "verify": settings["verify"]}
    assert http_settings(url)["trust_env"] is ("127.0.0.1" not in url)


@pytest.mark.parametrize("event", ["5", "[]", "null", "{", '"id"', "[" * 100_000])
def test_an_event_that_is_not_a_message_is_an_error_of_its_request(event):
    def answer(_):
        return httpx2.Response(
            200, headers={"Content-Type": "text/event-stream"}, content=f"data: {event}\n\n".encode()
        )

    async def lines():
        yield json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()

    async def run(out):
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
            await McpBridge(http, "http://a.example/mcp", out).run(lines())

    out = io.BytesIO()
    asyncio.run(run(out))
    [message] = [json.loads(line) for line in out.getvalue().splitlines()]
    assert (message["id"], message["error"]["code"]) == (1, -32603)
    assert "sent an event that is not a JSON-RPC message" in message["error"]["message"]
