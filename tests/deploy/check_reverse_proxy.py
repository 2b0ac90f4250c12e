"""A service behind nginx and Caddy, with TLS and a path prefix: console, events, uploads and downloads.

Run by `make test-deploy`.
"""

import json
import os
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import pytest
from deploy_programs import ROOT

from tests.deploy.proxies import caddy, make_certificate, nginx
from tests.services.free_ports import choose_ports
from tests.support.served import served

pytestmark = pytest.mark.docker
_RELOADED_S = 60
ODD_NAME = "50% a?b #1 ü.txt"


class Site:
    """The service as clients of the proxy see it.

    Args:
        url: its address, with the prefix and a slash.
        key: an API key.
        certificate: what the proxy shows.
        reload: makes the proxy read its files again.
    """

    def __init__(self, url: str, key: str, certificate: Path, reload: Callable[[], None]) -> None:
        self.url = url
        self.key = key
        self.reload = reload
        self._certificate = certificate
        self._tls = ssl.create_default_context(cafile=str(certificate))

    def replace_certificate(self) -> str:
        """Put another certificate with its key into their place.

        Clients trust both: nginx's old process may take a connection after the new one has taken some.
        """
        make_certificate(self._certificate.parent)
        self._tls.load_verify_locations(cafile=str(self._certificate))
        return self._certificate.read_text()

    def open(self, path, *, method="GET", data=None, is_keyed=True, **headers):
        """An answer that is still to be read, also one with an error, without following a redirect."""
        kind = {"Content-Type": "application/json"} if isinstance(data, dict) else {}
        key = {"Authorization": f"Bearer {self.key}"} if is_keyed else {}
        body = json.dumps(data).encode() if isinstance(data, dict) else data
        request = urllib.request.Request(urljoin(self.url, path), body, {**kind, **key, **headers}, method=method)
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=self._tls), _Redirects())
        try:
            return opener.open(request)
        except urllib.error.HTTPError as exc:
            return exc

    def ask(self, path, **options):
        """A whole answer: status, headers and body."""
        with self.open(path, **options) as answer:
            return Answer(answer.status, answer.headers, answer.read())


class Answer(NamedTuple):
    status: int
    headers: Message
    body: bytes


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def site(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("proxied")
    certificate = make_certificate(folder)
    port = choose_ports(["proxy"], {})["proxy"]
    url = f"https://localhost:{port}/proofbox/"
    environment = {**os.environ, "PROOFBOX_DATA_DIR": str(folder / "data")}
    command = [sys.executable, "-m", "proofbox.cli", "keys", "create", "--name", "t", "--json"]
    made = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    key = json.loads(made.stdout)["secret"]
    with (
        served(folder, auth="required", public_url=url.rstrip("/")) as own_url,
        request.param(folder, port, own_url.rpartition(":")[2]) as reload,
    ):
        yield Site(url, key, certificate, reload)


def test_the_address_without_a_slash_leads_to_the_page(site):
    answer = site.ask(site.url.rstrip("/"), is_keyed=False)
    assert (answer.status, urljoin(site.url, answer.headers["Location"])) == (308, site.url)


def test_the_console_and_all_that_it_loads_are_below_the_prefix(site):
    page = site.ask("", is_keyed=False, Accept="text/html")
    text = page.body.decode()
    assert page.status == 200
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', text)
    assert len(loaded) >= 3
    for name in loaded:
        answer = site.ask(name, is_keyed=False)
        assert (name, answer.status) == (name, 200)


def test_a_key_is_needed_and_goes_through(site):
    assert site.ask("v1/caller", is_keyed=False).status == 401
    assert site.ask("v1/caller").status == 200


def test_metrics_are_not_for_clients(site):
    assert site.ask("metrics").status == 404


def test_output_comes_while_the_program_runs(site):
    body = {
        "tool_id": "exec_tools.execute_code_python",
        "tool_call_id": "c1",
        "conversation_id": "c",
        "turn_id": "turn_1",
        "params": {"explore": True},
        "code": "import time\nprint('first', flush=True)\ntime.sleep(300)",
    }
    started = site.ask("v1/tool-calls", method="POST", data=body, Prefer="respond-async")
    assert started.status == 202, started.body
    seen = []
    with site.open("v1/tool-calls/c1/events?conversation_id=c") as events:
        assert events.headers["Content-Type"].startswith("text/event-stream")
        for line in events:
            seen.append(line.decode())
            if "first" in seen[-1]:  # the program sleeps: a proxy that buffers shows nothing
                assert site.ask("v1/tool-calls/c1?conversation_id=c", method="DELETE").status < 300
    assert any("first" in line for line in seen)
    assert any("cancelled" in line for line in seen)


def test_a_file_goes_up_and_comes_down_by_a_link_without_a_key(site):
    content = os.urandom(3 * 1024 * 1024)
    path = f"v1/conversations/c/turns/turn_1/attachments/{quote(ODD_NAME, safe='')}"
    stored = site.ask(path, method="PUT", data=content)
    assert stored.status in (200, 201), stored.body
    logical = json.loads(stored.body)["logical_path"]
    answer = site.ask(f"v1/conversations/c/artifacts/{quote(logical, safe='')}?link=1")
    assert answer.status == 303, answer.body
    link = answer.headers["Location"]
    assert (answer.status, link.startswith(f"{site.url}v1/links/")) == (303, True), link
    assert site.ask(link, is_keyed=False).body == content
    part = site.ask(link, is_keyed=False, Range="bytes=10-19")
    assert (part.status, part.body) == (206, content[10:20])


def test_mcp_clients_are_served(site):
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    answer = site.ask("mcp", method="POST", data=body, Accept="application/json, text/event-stream")
    assert answer.status == 200, answer.body


def test_a_certificate_is_replaced_while_a_call_streams(site):
    body = {
        "tool_id": "exec_tools.execute_code_python",
        "tool_call_id": "c2",
        "conversation_id": "c",
        "turn_id": "turn_1",
        "params": {"explore": True},
        "code": "import time\nprint('first', flush=True)\ntime.sleep(300)",
    }
    assert site.ask("v1/tool-calls", method="POST", data=body, Prefer="respond-async").status == 202
    seen = []
    with site.open("v1/tool-calls/c2/events?conversation_id=c") as events:
        for line in events:
            seen.append(line.decode())
            if "first" in seen[-1]:
                fresh = site.replace_certificate()
                site.reload()
                wait_for_certificate(site, fresh)
                assert site.ask("v1/tool-calls/c2?conversation_id=c", method="DELETE").status < 300
    assert any("cancelled" in line for line in seen)  # over the connection of the old certificate


def wait_for_certificate(site, text):
    """Wait until new connections get a certificate."""
    address = (urlsplit(site.url).hostname, urlsplit(site.url).port)
    deadline = time.monotonic() + _RELOADED_S
    while ssl.get_server_certificate(address).strip() != text.strip():
        assert time.monotonic() < deadline
        time.sleep(0.05)
