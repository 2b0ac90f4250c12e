"""Fetching pages against a real server: what comes back, and every way in which it may not."""

import asyncio
import gzip
import ipaddress
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.codes import WebCode
from proofbox.service.web.client.address_policy import is_allowed
from proofbox.service.web.client.fetcher import FetchBounds, HttpPageFetcher
from proofbox.service.web.client.resolver import SystemResolver
from proofbox.service.web.client.tls import loaded_when_asked
from proofbox.service.web.port import WebFailedError
from proofbox.service.web.urls import UrlRefusedError, WebUrl
from tests.support.web_server import certificate, redirect, response, web_server

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


class Names:
    """A name server that gives each question the next of its answers, and the last one for ever."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, host, port):
        del port
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


HERE = Names(["127.0.0.1"])


def fetcher(server, resolve=HERE, *, opened=LOOPBACK, tls=None, page_s=5.0, ports=None):
    bounds = FetchBounds(page_s, 100_000, frozenset(ports or {server.port}), opened)
    return HttpPageFetcher(bounds, resolve, tls or loaded_when_asked(None))


async def failure(fetching):
    with pytest.raises(WebFailedError) as caught:
        await fetching
    return caught.value


async def test_a_page_comes_with_its_type_its_encoding_and_its_bytes():
    async with web_server() as server:
        server.answers["/a?b=c"] = response("<p>Höhe".encode("cp1252"), "Text/HTML; Charset=Windows-1252")
        page = await fetcher(server).fetch(WebUrl.parse(server.url("/a?b=c", "tide.example")))
    assert (page.mime, page.charset, page.body.decode("cp1252")) == ("text/html", "windows-1252", "<p>Höhe")
    head = server.requests[0].splitlines()
    assert head[0] == "GET /a?b=c HTTP/1.1"
    assert f"Host: tide.example:{server.port}" in head
    assert not [line for line in head if line.lower().startswith(("cookie", "authorization"))]


async def test_an_ipv6_address_is_asked_and_named_in_brackets():
    async with web_server(host="::1") as server:
        server.answers["/"] = response(b"six", "text/plain")
        fetching = fetcher(server, SystemResolver(), opened=(ipaddress.ip_network("::1/128"),))
        page = await fetching.fetch(WebUrl.parse(server.url(host="[0:0::1]")))
    assert (page.body, f"Host: [::1]:{server.port}" in server.requests[0]) == (b"six", True)


async def test_the_next_address_is_tried_when_one_takes_no_connection():
    async with web_server() as server:
        server.answers["/"] = response(b"second", "text/plain")
        page = await fetcher(server, Names(["127.0.0.9", "127.0.0.1"])).fetch(WebUrl.parse(server.url()))
    assert page.body == b"second"


async def test_gzip_is_unpacked():
    async with web_server() as server:
        server.answers["/"] = response(gzip.compress(b"words " * 1000), "text/plain", content_encoding="gzip")
        page = await fetcher(server).fetch(WebUrl.parse(server.url()))
    assert page.body == b"words " * 1000


async def test_a_gzip_bomb_is_given_up_at_the_limit():
    async with web_server() as server:
        server.answers["/"] = response(gzip.compress(bytes(50_000_000)), "text/plain", content_encoding="gzip")
        exc = await failure(fetcher(server).fetch(WebUrl.parse(server.url())))
    assert exc.code is WebCode.TOO_LARGE


async def test_a_body_without_an_end_is_given_up_at_the_limit():
    sent = 0

    async def endless(writer):
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            sent += 65536
            await writer.drain()

    async with web_server() as server:
        server.answers["/"] = endless
        exc = await failure(fetcher(server).fetch(WebUrl.parse(server.url())))
    assert exc.code is WebCode.TOO_LARGE
    assert sent < 50_000_000


async def test_a_server_that_sends_byte_by_byte_is_given_up_in_time():
    async def slow(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with web_server() as server:
        server.answers["/"] = slow
        exc = await failure(fetcher(server, page_s=0.5).fetch(WebUrl.parse(server.url())))
    assert exc.code is WebCode.FETCH_TIMEOUT


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (response(b"%PDF-1.7", "application/pdf"), WebCode.UNSUPPORTED_TYPE),
        (response(b"x", "image/png"), WebCode.UNSUPPORTED_TYPE),
        (response(b"x", ""), WebCode.UNSUPPORTED_TYPE),
        (response(b"gone", status="404 Not Found"), WebCode.HTTP_STATUS),
        (response(b"", status="304 Not Modified"), WebCode.HTTP_STATUS),
        (response(b"x", content_encoding="br"), WebCode.BAD_RESPONSE),
        (response(b"no gzip", content_encoding="gzip"), WebCode.BAD_RESPONSE),
        (response(gzip.compress(b"words" * 99)[:-20], content_encoding="gzip"), WebCode.BAD_RESPONSE),
        (b"SSH-2.0-OpenSSH_9.2\r\n", WebCode.BAD_RESPONSE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nContent-Type: text/plain\r\n\r\nshort", WebCode.BAD_RESPONSE),
        (b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 300_000 + b"\r\n\r\n", WebCode.BAD_RESPONSE),
        (b"", WebCode.BAD_RESPONSE),
    ],
)
async def test_what_is_no_readable_page_has_its_own_code(answer, code):
    async with web_server() as server:
        server.answers["/"] = answer
        exc = await failure(fetcher(server).fetch(WebUrl.parse(server.url())))
    assert exc.code is code


async def test_the_type_of_a_file_that_cannot_be_read_is_named():
    async with web_server() as server:
        server.answers["/"] = response(b"%PDF-1.7", "application/pdf")
        exc = await failure(fetcher(server).fetch(WebUrl.parse(server.url(host="papers.example"))))
    assert exc.message == "papers.example sent application/pdf; only HTML, text, JSON and XML can be read"


async def test_redirects_are_followed_to_the_page():
    async with web_server() as server:
        server.answers["/old"] = redirect("../new?x=1#part")
        server.answers["/new?x=1"] = response(b"here", "text/plain")
        page = await fetcher(server).fetch(WebUrl.parse(server.url("/old")))
    assert (page.body, str(page.url)) == (b"here", server.url("/new?x=1"))


async def test_the_sixth_redirect_is_not_followed():
    async with web_server() as server:
        for number in range(7):
            server.answers[f"/{number}"] = redirect(f"/{number + 1}")
        exc = await failure(fetcher(server).fetch(WebUrl.parse(server.url("/0"))))
    assert (exc.code, len(server.requests)) == (WebCode.TOO_MANY_REDIRECTS, 6)


# ---- where no page is fetched from ----

REFUSED_ADDRESSES = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "no-address",
]
PUBLIC_ADDRESSES = [
    "8.8.8.8",
    "1.1.1.1",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "2a00:1450::1",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("address", REFUSED_ADDRESSES)
def test_an_address_off_the_public_internet_is_refused(address):
    assert not is_allowed(address, ())


@pytest.mark.parametrize("address", PUBLIC_ADDRESSES)
def test_an_address_of_the_public_internet_is_allowed(address):
    assert is_allowed(address, ())


@given(st.ip_addresses(v=4))
def test_no_address_that_python_calls_private_is_allowed_in_any_wrapping(address):
    wrapped = [str(address), f"::ffff:{address}", str(ipaddress.IPv6Address((0x64FF9B << 96) | int(address)))]
    if not address.is_global or address.is_multicast:
        assert [is_allowed(text, ()) for text in wrapped] == [False] * 3


def test_the_operator_opens_networks_and_nothing_beside_them():
    opened = (ipaddress.ip_network("10.20.0.0/16"), ipaddress.ip_network("fd12::/16"))
    asked = ["10.20.3.4", "::ffff:10.20.3.4", "fd12::9", "10.21.0.1", "fd13::9", "127.0.0.1"]
    assert [is_allowed(address, opened) for address in asked] == [True, True, True, False, False, False]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://127.0.0.1.:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f000001:{port}/",
        "http://0x7f.1:{port}/",
        "http://0177.0.0.1:{port}/",
        "http://127.1:{port}/",
        "http://0:{port}/",
        "http://0.0.0.0:{port}/",
        "http://[::1]:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://[::ffff:7f00:1]:{port}/",
        "http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/",
        "http://[::127.0.0.1]:{port}/",
        "http://[64:ff9b::127.0.0.1]:{port}/",
        "http://[fe80::1%25lo]:{port}/",
        "http://\uff11\uff12\uff17.0.0.1:{port}/",
        "http://127\u30020\u30020\u30021:{port}/",
        "http://\u24db\u24deca\u24dbhost:{port}/",
        "http://user:secret@127.0.0.1:{port}/",
        "http://public.example@127.0.0.1:{port}/",
        "http://127.0.0.1:{port}\\@public.example/",
        "http://public.example\\@127.0.0.1:{port}/",
        "http://127.0.0.1%00.public.example:{port}/",
        "http://127.0.0.1\t:{port}/",
        "http:// 127.0.0.1:{port}/",
        "http:///127.0.0.1:{port}/",
        "http:127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
        "ftp://127.0.0.1:{port}/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/_x",
        "data:text/html,x",
        "javascript:alert(1)",
        "http://a..b:{port}/",
        "http://-:{port}/",
        "http://127.0.0.1:99999/",
        "http://",
        "",
    ],
)
async def test_no_spelling_of_an_address_reaches_the_loopback(url):
    resolver = SystemResolver()
    try:
        async with web_server() as server:
            server.answers["/"] = response(b"secret")
            with pytest.raises((WebFailedError, UrlRefusedError)):
                await fetcher(server, resolver, opened=()).fetch(WebUrl.parse(url.format(port=server.port)))
            assert server.requests == []
    finally:
        resolver.close()


async def test_a_name_of_a_private_address_is_refused_before_anything_is_sent():
    async with web_server() as server:
        exc = await failure(fetcher(server, opened=()).fetch(WebUrl.parse(server.url(host="public.example"))))
    assert (exc.code, server.requests) == (WebCode.URL_NOT_ALLOWED, [])
    assert "127.0.0.1" not in exc.message


async def test_one_private_address_among_public_ones_refuses_the_name():
    async with web_server() as server:
        names = Names(["8.8.8.8", "127.0.0.1"])
        exc = await failure(fetcher(server, names, opened=()).fetch(WebUrl.parse(server.url(host="p.example"))))
    assert (exc.code, server.requests) == (WebCode.URL_NOT_ALLOWED, [])


async def test_the_connection_goes_to_the_address_that_was_checked_whatever_the_name_server_says_next():
    async with web_server() as checked, web_server(host="127.0.0.2") as other:
        checked.answers["/"] = response(b"checked", "text/plain")
        names = Names(["127.0.0.1"], ["127.0.0.2"])
        opened = (ipaddress.ip_network("127.0.0.1/32"),)
        page = await fetcher(checked, names, opened=opened).fetch(WebUrl.parse(checked.url(host="rebind.example")))
    assert (page.body, names.asked, other.requests) == (b"checked", ["rebind.example"], [])


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1:{port}/", "//127.0.0.1:{port}/", "http://[::ffff:127.0.0.1]:{port}/"]
)
async def test_a_redirect_to_a_private_address_is_refused(location):
    async with web_server(host="127.0.0.2") as public, web_server() as private:
        public.answers["/"] = redirect(location.format(port=private.port))
        opened = (ipaddress.ip_network("127.0.0.2/32"),)
        fetching = fetcher(public, _numbers_or(["127.0.0.2"]), opened=opened, ports={public.port, private.port})
        exc = await failure(fetching.fetch(WebUrl.parse(public.url(host="public.example"))))
    assert (exc.code, len(public.requests), private.requests) == (WebCode.URL_NOT_ALLOWED, 1, [])


def _numbers_or(answer):
    async def resolve(host, port):
        del port
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            return answer

    return resolve


async def test_a_name_that_turns_private_between_two_hops_is_refused():
    async with web_server(host="127.0.0.2") as server:
        server.answers["/"] = redirect("/again")
        names = Names(["127.0.0.2"], ["10.0.0.1"])
        opened = (ipaddress.ip_network("127.0.0.2/32"),)
        exc = await failure(fetcher(server, names, opened=opened).fetch(WebUrl.parse(server.url(host="r.example"))))
    assert (exc.code, len(server.requests)) == (WebCode.URL_NOT_ALLOWED, 1)


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://127.0.0.1/", "http://user@a.example/", "http://0x7f.1/"]
)
async def test_a_redirect_to_what_is_no_page_is_refused(location):
    async with web_server() as server:
        server.answers["/"] = redirect(location)
        exc = await failure(fetcher(server).fetch(WebUrl.parse(server.url())))
    assert exc.code is WebCode.URL_NOT_ALLOWED


async def test_other_ports_are_not_asked_and_not_by_a_redirect_either():
    async with web_server() as server, web_server() as other:
        server.answers["/"] = redirect(other.url("/"))
        direct = await failure(fetcher(server).fetch(WebUrl.parse(other.url())))
        redirected = await failure(fetcher(server).fetch(WebUrl.parse(server.url())))
    assert [direct.code, redirected.code, other.requests] == [WebCode.URL_NOT_ALLOWED, WebCode.URL_NOT_ALLOWED, []]


async def test_a_name_without_an_address_and_a_port_that_nobody_listens_at_have_their_own_codes():
    async with web_server() as server:
        nowhere = await failure(
            fetcher(server, Names(OSError("no such host"))).fetch(WebUrl.parse(server.url(host="x.example")))
        )
    closed = await failure(fetcher(server).fetch(WebUrl.parse(server.url())))
    assert [nowhere.code, closed.code] == [WebCode.DNS_FAILED, WebCode.CONNECT_FAILED]


async def test_no_proxy_of_the_environment_sees_a_request(monkeypatch):
    async with web_server() as server, web_server() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        server.answers["/"] = response(b"direct", "text/plain")
        page = await fetcher(server).fetch(WebUrl.parse(server.url()))
    assert (page.body, proxy.requests) == (b"direct", [])


# ---- TLS ----


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    pem = certificate(tmp_path_factory.mktemp("tls"), "secure.example")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem)
    return tls, pem.parent / "cert.pem"


async def test_https_is_checked_against_the_name_though_the_connection_goes_to_an_address(secure):
    tls, authority = secure
    async with web_server(tls) as server:
        server.answers["/"] = response(b"safe", "text/plain")
        page = await fetcher(server, tls=loaded_when_asked(authority)).fetch(
            WebUrl.parse(server.url(host="secure.example"))
        )
    assert page.body == b"safe"


@pytest.mark.parametrize(("name", "trusted"), [("other.example", True), ("secure.example", False)])
async def test_another_name_or_an_unknown_authority_is_refused(secure, name, trusted):
    tls, authority = secure
    async with web_server(tls) as server:
        checked = loaded_when_asked(authority if trusted else None)
        exc = await failure(fetcher(server, tls=checked).fetch(WebUrl.parse(server.url(host=name))))
    assert (exc.code, server.requests) == (WebCode.TLS_FAILED, [])


async def test_a_redirect_from_https_to_http_is_refused(secure):
    tls, authority = secure
    async with web_server(tls) as server, web_server() as plain:
        server.answers["/"] = redirect(plain.url())
        fetching = fetcher(server, tls=loaded_when_asked(authority), ports={server.port, plain.port})
        exc = await failure(fetching.fetch(WebUrl.parse(server.url(host="secure.example"))))
    assert (exc.code, plain.requests) == (WebCode.URL_NOT_ALLOWED, [])
