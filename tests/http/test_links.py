"""Download links of the folder store: their own key to one version, for a while, and to nothing else."""

import asyncio
import json
import re
from dataclasses import replace
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
import pytest

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.access.authenticator import Authenticator, Keyring
from proofbox.service.api.app import create_app
from proofbox.service.artifacts.download_links import LinkKey
from proofbox.service.errors import StoreFailedError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.link_keys import LinkKeyFile
from tests.http.conftest import LINK_S

PATH = FilePath("turn_1", Namespace.FILES, "charts/ü.html")
URL = f"/v1/conversations/c1/artifacts/{PATH.logical}"
DATA = b"<script>alert(1)</script>" * 100


class NoKeys:
    async def all(self):
        return []

    async def note_use(self, used): ...


@pytest.fixture
async def link(client, saved) -> str:
    await saved(PATH, DATA, "text/html")
    answer = await client.get(URL, params={"link": 1})
    assert answer.status_code == 303
    return answer.headers["location"]


@pytest.fixture
async def stranger(services):
    """Somebody without a key, at a service that needs one."""
    app = create_app(
        replace(
            services, authenticator=Authenticator(Principal("x", "x", "x", "x"), Keyring(NoKeys()), required=True)
        )
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://files.example.com") as outside:
        yield outside


def bent(link: str, **changed: str) -> str:
    parts = urlsplit(link)
    return f"{parts.path}?{urlencode({**dict(parse_qsl(parts.query)), **changed})}"


async def test_a_link_gives_the_bytes_to_whoever_has_it_and_a_browser_runs_nothing_of_them(stranger, link):
    assert (await stranger.get(URL)).status_code == 401
    answer = await stranger.get(link)
    assert (answer.status_code, answer.content) == (200, DATA)
    assert answer.headers["content-disposition"] == "attachment; filename=\"_.html\"; filename*=UTF-8''%C3%BC.html"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


async def test_a_part_and_an_unchanged_version_are_served_by_link(stranger, link):
    part = await stranger.get(link, headers={"Range": "bytes=1-6"})
    assert (part.status_code, part.content) == (206, b"script")
    whole = await stranger.get(link)
    kept = await stranger.get(link, headers={"If-None-Match": whole.headers["etag"]})
    assert (kept.status_code, kept.content) == (304, b"")
    assert (await stranger.get(link, headers={"Range": "bytes=99999-"})).status_code == 416
    many = "bytes=" + ",".join(f"{n}-{n}" for n in range(10_000))
    assert (await stranger.get(link, headers={"Range": many})).status_code == 416


async def test_a_link_tells_nobody_whose_file_it_is(link):
    assert re.fullmatch(r"[./]*/v1/links/\d+\?expires=\d+&key=k1&signature=[0-9a-f]{64}", link)


async def test_a_link_is_to_the_version_that_it_was_made_for(client, stranger, saved, link):
    await saved(PATH, b"newer", "text/html")
    assert (await stranger.get(link)).content == DATA
    newer = (await client.get(URL, params={"link": 1})).headers["location"]
    older = (await client.get(URL, params={"link": 1, "version": 1})).headers["location"]
    assert (await stranger.get(newer)).content == b"newer"
    assert (await stranger.get(older)).content == DATA
    assert urlsplit(older).path != urlsplit(newer).path


async def test_a_link_works_until_its_time_and_not_after(stranger, link, flags):
    flags.now += LINK_S - 1
    assert (await stranger.get(link)).status_code == 200
    flags.now += 1
    answer = await stranger.get(link)
    assert (answer.status_code, answer.json()["code"]) == (403, "link_refused")
    assert answer.json()["detail"] == "the link has expired; ask for a new one"


@pytest.mark.parametrize(
    "change",
    [
        {"expires": "9999999999"},
        {"expires": "1000601"},
        {"expires": ""},
        {"expires": "-1"},
        {"expires": "1e9"},
        {"expires": "9" * 400},
        {"expires": "\u0661"},
        {"signature": ""},
        {"signature": "0" * 64},
        {"signature": "\u00fc" * 64},
        {"signature": "x" * 10_000},
        {"key": "k2"},
        {"key": ""},
    ],
)
@pytest.mark.shares_fixtures
async def test_a_link_that_was_changed_is_403(stranger, link, change):
    answer = await stranger.get(bent(link, **change))
    assert (answer.status_code, answer.json()["code"]) == (403, "link_refused")


@pytest.mark.parametrize("bend", [lambda s: s[:-1] + ("0" if s[-1] != "0" else "1"), str.upper, lambda s: s[:-1]])
async def test_a_signature_that_is_nearly_right_is_403(stranger, link, bend):
    told = dict(parse_qsl(urlsplit(link).query))
    answer = await stranger.get(bent(link, signature=bend(told["signature"])))
    assert (answer.status_code, answer.json()["code"]) == (403, "link_refused")


@pytest.mark.parametrize(
    ("respelled", "status"),
    [
        (lambda link: link, 200),
        (lambda link: link.replace("/links/", "/links/0"), 403),
        (lambda link: re.sub(r"/links/(\d)", r"/links/%3\1", link), 403),
        (lambda link: link.replace("/links/", "/%6cinks/"), 403),
        (lambda link: link.replace("/v1/", "/v%31/"), 403),
        (lambda link: link.replace("expires=", "expires=0"), 403),
        (lambda link: link.replace("expires=", "expires=%31&expires="), 403),
        (lambda link: link.replace("expires=", "expires=1&expires="), 403),
        (lambda link: f"{link}&{link.partition('?')[2]}", 403),
        (lambda link: link.replace("expires=1", "expires=%31"), 403),
        (lambda link: link.replace("expires=", "%65xpires="), 403),
        (lambda link: link.replace("expires=", "expires=+"), 403),
        (lambda link: link.replace("key=", "key=%6b1&key="), 403),
        (lambda link: link.replace("key=k1", "key=%6b1"), 403),
        (lambda link: link.replace("signature=", "signature=&signature="), 403),
        (lambda link: re.sub(r"\?(.*)&(.*)", r"?\2&\1", link), 403),
        (lambda link: f"{link}&", 403),
        (lambda link: f"{link}&x=1", 403),
        (lambda link: link.replace("?", "?&"), 403),
        (lambda link: link.replace("&", ";"), 403),
        (lambda link: f"{link}%20", 403),
        (lambda link: f"{link}#x", 400),
        (lambda link: link.replace("?", "/?"), 404),
        (lambda link: link.replace("/links/", "//links/"), 404),
    ],
)  # fmt: skip
@pytest.mark.shares_fixtures
async def test_a_link_works_only_as_it_was_made(server, link, respelled, status):
    """Over a real connection: a client's library would mend some of these."""
    parts = urlsplit(server)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {respelled(link)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    line = await reader.readline()
    writer.close()
    assert int(line.split()[1]) == status


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE"])
async def test_a_link_is_for_reading_only(stranger, link, method):
    assert (await stranger.request(method, link)).status_code == 403


@pytest.mark.parametrize("number", ["0", "99", "-1", "x", "1.0", "9" * 19, "9" * 400, "1%2F2", "%C3%BC"])
@pytest.mark.shares_fixtures
async def test_a_signature_opens_no_other_number(stranger, link, number):
    query = urlsplit(link).query
    assert (await stranger.get(f"/v1/links/{number}?{query}")).status_code == (404 if "%2F" in number else 403)


async def test_the_signature_of_one_tenants_file_opens_no_others(stranger, stores, saved, link, services):
    """The number is changed to another tenant's file: its own names are signed, not those of the link."""
    stored = await saved(FilePath("turn_1", Namespace.FILES, "b.txt"), b"other", conversation="c2")
    number = await stores.artifacts.number_of(ConversationKey(services.authenticator._principal, "c2"), stored)
    query = urlsplit(link).query
    assert (await stranger.get(f"/v1/links/{number}?{query}")).status_code == 403
    found = await stores.artifacts.numbered(number)
    assert found is not None
    theirs = (ConversationKey(Principal("other", "sales", "registered", "u-17"), "c2"), found[1])
    forged = services.links.make(*theirs, number)
    url = f"/v1/links/{number}?expires={forged.expires}&key={forged.key}&signature={forged.signature}"
    assert (await stranger.get(url)).status_code == 403
    right = services.links.make(*found, number)
    url = f"/v1/links/{number}?expires={right.expires}&key={right.key}&signature={right.signature}"
    assert (await stranger.get(url)).content == b"other"


async def test_links_of_an_older_key_work_until_that_key_is_gone(client, stranger, link, link_keys):
    link_keys.insert(0, LinkKey("k2", b"2" * 32))
    newer = (await client.get(URL, params={"link": 1})).headers["location"]
    assert [(await stranger.get(each)).status_code for each in (link, newer)] == [200, 200]
    link_keys.pop()
    assert [(await stranger.get(each)).status_code for each in (link, newer)] == [403, 200]


async def test_a_link_begins_with_the_public_url_if_there_is_one(services, saved):
    await saved(PATH, DATA)
    transport = httpx.ASGITransport(create_app(replace(services, public_url="https://files.example.com/p/")))
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        location = (await client.get(URL, params={"link": 1})).headers["location"]
    assert location.startswith("https://files.example.com/p/v1/links/1?expires=")


# ---- the file of keys ----


def test_the_file_of_keys_is_made_once_for_its_owner_only(tmp_path):
    first = LinkKeyFile(tmp_path / "data").in_use()
    again = LinkKeyFile(tmp_path / "data").in_use()
    assert [(key.id, key.secret) for key in first] == [(key.id, key.secret) for key in again]
    assert [len(key.secret) for key in first] == [32]
    assert (tmp_path / "data" / "link-keys.json").stat().st_mode & 0o777 == 0o600
    assert [each.name for each in (tmp_path / "data").iterdir()] == ["link-keys.json"]


def test_a_rotation_is_seen_by_the_service_that_runs_and_keeps_older_keys_for_a_while(tmp_path):
    service, command = LinkKeyFile(tmp_path), LinkKeyFile(tmp_path)
    [first] = service.in_use()
    second = command.rotate(600, at_once=False)
    assert [key.id for key in service.in_use()] == [second, first.id]
    third = command.rotate(-1, at_once=False)
    assert [key.id for key in service.in_use()] == [third, first.id], (
        "the first was given its time when it was replaced"
    )
    last = command.rotate(600, at_once=True)
    assert [key.id for key in service.in_use()] == [last]


@pytest.mark.parametrize(
    "text", ["", "{}", '{"keys": []}', '{"keys": [{"id": "a"}]}', '{"keys": [{"secret": "zz"}]}']
)
def test_a_damaged_file_of_keys_says_how_to_make_another(tmp_path, text):
    file = tmp_path / "link-keys.json"
    file.touch(mode=0o600)
    file.write_text(text)
    with pytest.raises(StoreFailedError, match="'proofbox links rotate --at-once' makes another"):
        LinkKeyFile(tmp_path).in_use()
    LinkKeyFile(tmp_path).rotate(600, at_once=True)
    assert len(LinkKeyFile(tmp_path).in_use()) == 1


def test_a_file_of_keys_that_others_can_read_is_not_used(tmp_path):
    LinkKeyFile(tmp_path).in_use()
    (tmp_path / "link-keys.json").chmod(0o640)
    with pytest.raises(StoreFailedError, match="can be read by others"):
        LinkKeyFile(tmp_path).in_use()


def test_no_secret_of_a_link_key_is_shown():
    assert "1111" not in repr(LinkKey("k1", b"1" * 32))
    assert json.dumps(str(LinkKey("k1", b"secret"))).find("secret'") == -1
