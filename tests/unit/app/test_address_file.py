"""The file of the address of a process: what a health check asks, whatever the settings of host and port are."""

import asyncio
import contextlib

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from proofbox.service.app.ports import AddressFileError, write_address
from proofbox.service.app.serving import AnnouncedServer


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:81"),
        ("10.0.0.7", "http://10.0.0.7:81"),
        ("0.0.0.0", "http://127.0.0.1:81"),
        ("::", "http://[::1]:81"),
        ("fd00::7", "http://[fd00::7]:81"),
    ],
)
def test_the_url_is_one_that_this_machine_reaches(tmp_path, host, url):
    (tmp_path / "address").write_text("http://127.0.0.1:8080\n")  # of an earlier process
    write_address(tmp_path / "address", host, 81)
    assert (tmp_path / "address").read_text() == f"{url}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["address"]


def test_a_file_that_cannot_be_written_is_refused_with_setting_reason_and_remedy(tmp_path):
    with pytest.raises(AddressFileError) as refused:
        write_address(tmp_path / "no" / "address", "127.0.0.1", 81)
    assert refused.value.message == (
        f"address_file: {tmp_path}/no/address cannot be written (No such file or directory); name a file in a "
        "folder that this user can write to, with PROOFBOX_ADDRESS_FILE, or unset it"
    )


async def test_a_server_writes_the_address_at_which_it_answers(tmp_path):
    async def answer(_request):
        return PlainTextResponse("ready")

    async def drain():
        pass

    app = Starlette(routes=[Route("/readyz", answer)])
    config = uvicorn.Config(app, host="0.0.0.0", port=0, log_config=None, lifespan="off")
    server = AnnouncedServer(config, drain, tmp_path / "address")
    serving = asyncio.create_task(server.serve())
    try:
        while not (tmp_path / "address").exists():
            assert not serving.done()
            await asyncio.sleep(0.01)
        async with httpx.AsyncClient(trust_env=False) as client:
            response = await client.get((tmp_path / "address").read_text().strip() + "/readyz")
        assert response.text == "ready"
    finally:
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving
