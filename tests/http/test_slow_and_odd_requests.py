"""Clients that are slow, endless or odd: each is let go of with an answer, and holds nothing for long."""

import asyncio
import contextlib
import json
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import pytest

from proofbox.service.api.app import create_app
from proofbox.service.api.limited_protocol import HEAD_BYTES_MAX

CALLS = "/v1/tool-calls"
SHORT_S = 0.4
in_short_time = pytest.mark.parametrize("head_s", [SHORT_S])


async def opened(server: str):
    parts = urlsplit(server)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def answered(reader, within_s: float = 30) -> tuple[bytes, bytes]:
    """Head and body of an answer whose connection ends with it, with a reset if more was sent meanwhile."""
    raw = b""
    async with asyncio.timeout(within_s):
        try:
            while piece := await reader.read(65_536):
                raw += piece
        except ConnectionResetError:
            if not raw:
                raise
    head, _, body = raw.partition(b"\r\n\r\n")
    return head, body


@in_short_time
async def test_a_head_that_never_ends_is_408_and_loses_its_connection(server):
    reader, writer = await opened(server)
    writer.write(b"GET /v1/tools HTTP/1.1\r\nHost: x\r\n")

    async def drops():
        while True:
            writer.write(b"X-Drop: y\r\n")
            await writer.drain()
            await asyncio.sleep(SHORT_S / 10)

    dropping = asyncio.ensure_future(drops())
    head, body = await answered(reader)
    dropping.cancel()
    await asyncio.gather(dropping, return_exceptions=True)
    writer.close()
    assert head.startswith(b"HTTP/1.1 408 ")
    assert (json.loads(body)["code"], json.loads(body)["where"]) == ("request_timeout", "head")
    assert b"X-Content-Type-Options: nosniff" in head


@in_short_time
async def test_a_connection_that_says_nothing_is_closed(server):
    reader, writer = await opened(server)
    assert await answered(reader) == (b"", b"")
    writer.close()


async def test_a_head_that_comes_in_time_is_served_and_so_is_the_next_on_its_connection(server):
    reader, writer = await opened(server)
    for _ in range(3):
        for part in (b"GET /livez HTTP/1.1\r\n", b"Host: x\r\n", b"\r\n"):
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert json.loads(await reader.readexactly(len(b'{"status":"ok"}'))) == {"status": "ok"}
    writer.close()


@in_short_time
async def test_a_second_head_on_a_connection_has_its_time_limit_too(server):
    reader, writer = await opened(server)
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /live")
    head, _ = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 200 ")


@in_short_time
async def test_an_answer_that_takes_longer_than_a_head_may_is_not_cut_off(server, call_body):
    async with httpx.AsyncClient(base_url=server, timeout=60, trust_env=False) as client:
        held = asyncio.ensure_future(client.post(CALLS, json={**call_body, "tool_call_id": "held-1"}))
        await asyncio.sleep(SHORT_S * 2)
        assert not held.done()
        assert (await client.delete(f"{CALLS}/held-1")).status_code == 200
        assert (await held).status_code == 409


@pytest.fixture
async def impatient(services):
    transport = httpx.ASGITransport(create_app(replace(services, body_s=0.2)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        yield client


@pytest.mark.parametrize("first", [b"", b'{"tool_id":'])
async def test_a_body_that_comes_drop_by_drop_is_408(impatient, first):
    async def drops():
        yield first
        while True:
            await asyncio.sleep(0.05)
            yield b" "

    answer = await impatient.post(CALLS, content=drops(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (408, "request_timeout")
    assert (answer.json()["retryable"], answer.headers["connection"]) == (True, "close")


async def test_a_body_that_comes_fast_and_then_stops_is_408(impatient):
    async def stops():
        yield b" " * 200_000  # which might take three seconds
        await asyncio.sleep(60)

    answer = await impatient.post(CALLS, content=stops(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (408, "request_timeout")
    assert "waiting for 0.2 s" in answer.json()["detail"]


async def test_an_attachment_that_stops_coming_is_408_and_leaves_nothing(impatient, tmp_path):
    async def stops():
        yield b"x" * 100_000
        await asyncio.sleep(60)

    answer = await impatient.put("/v1/conversations/c1/turns/turn_1/attachments/a", content=stops())
    assert answer.status_code == 408
    assert list((tmp_path / "data" / "staging").iterdir()) == []


async def test_what_is_no_http_is_a_problem_document(server):
    for sent in (
        b"\x16\x03\x01\x02\x00\x01",
        b"GET /\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 100,
    ):
        reader, writer = await opened(server)
        writer.write(sent + b"\r\n\r\n")
        head, body = await answered(reader)
        writer.close()
        assert head.startswith(b"HTTP/1.1 400 "), sent
        assert b"Content-Type: application/problem+json" in head
        assert json.loads(body)["code"] == "invalid_request"


@pytest.mark.parametrize(
    "head",
    [
        b"PUT /v1/conversations/c1/turns/turn_1/attachments/" + b"n" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n",
        b"GET /v1/tools HTTP/1.1\r\nHost: x\r\nCookie: " + b"c" * 1_000_000 + b"\r\n",
        b"GET /v1/tools HTTP/1.1\r\nHost: x\r\n" + b"X-Many: y\r\n" * 100_000,
    ],
    ids=["a name of 1 MB", "a header of 1 MB", "100,000 headers"],
)
async def test_a_head_that_is_too_long_is_431_before_all_of_it_has_come(server, head):
    reader, writer = await opened(server)
    sent = 0
    try:
        for at in range(0, len(head), 8_192):
            writer.write(head[at : at + 8_192])
            await writer.drain()
            sent += 8_192
            await asyncio.sleep(0)
    except ConnectionError:
        pass
    try:
        told, _ = await answered(reader)
        assert told.startswith(b"HTTP/1.1 431 ")
    except ConnectionError:
        pass  # it hung up while we were still sending
    writer.close()
    assert sent <= len(head)


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "multipart/mixed; boundary=x"])
async def test_ten_thousand_parts_are_refused_unread(web, kind):
    parts = b"".join(b'--x\r\nContent-Disposition: form-data; name="f%d"\r\n\r\nv\r\n' % n for n in range(10_000))
    body = parts[:290_000] + b"--x--\r\n"
    for method, path in (("POST", CALLS), ("PUT", "/v1/conversations/c1/turns/turn_1/attachments/a")):
        answer = await web.request(method, path, content=body, headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Content-Type")


@pytest.mark.parametrize(
    ("target", "statuses"),
    [
        ("/v1/conversations/c1/artifacts/fi:turn_1.files/%2e%2e/%2e%2e/etc/passwd", {400}),
        ("/v1/conversations/c1/artifacts/fi:turn_1.files/..%2f..%2fetc%2fpasswd", {400}),
        ("/v1/conversations/c1/artifacts/fi:turn_1.files//etc/passwd", {400}),
        ("/v1/conversations/c1/artifacts//etc/passwd", {400}),
        ("/v1/conversations/c1/artifacts/fi:turn_1.files/a%00b", {400}),
        ("/v1/conversations/c1/artifacts/fi:turn_1.files/a%5c..%5cb", {400}),
        ("/v1/conversations/c1/artifacts/fi:turn_1.files/%252e%252e/x", {404}),
        ("/v1/conversations/c1%2f..%2fc2/timeline", {404}),
        ("/v1/conversations/../conversations/c1/timeline", {404}),
        ("/v1/conversations/%2e%2e/timeline", {200, 400, 404, 422}),
        ("//v1/tools", {404}),
        ("/v1//tools", {404}),
        ("/v1/tools/", {404}),
        ("/v1/tools;x=1", {404}),
        ("/v1/tools%2f", {404}),
        ("/v1/tools%00", {400}),
        ("/livez%0A", {400}),
        ("/v1/tools%0A", {400}),
        ("/v1/links/1%0A", {400}),
        ("/V1/TOOLS", {404}),
        ("http://evil.example/v1/tools", {400}),
        ("*", {400}),
    ],
)
@pytest.mark.shares_fixtures
async def test_odd_paths_lead_nowhere(server, target, statuses):
    reader, writer = await opened(server)
    writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, body = await answered(reader)
    writer.close()
    assert int(head.split()[1]) in statuses
    assert b"root:" not in body


@pytest.mark.parametrize("end", ["%0A", "%0a", "%00", "%7F", "%0D%0A", "/t1/rerun%0A"])
async def test_a_call_under_a_path_with_a_control_character_is_refused_and_not_made(server, calls, call_body, end):
    body = json.dumps(call_body).encode()
    reader, writer = await opened(server)
    head = f"POST {CALLS}{end} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    head, body = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["code"] == "unsafe_path"
    assert calls._calls == {}


CHUNKED = b"POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"


@pytest.mark.parametrize("name", ["Content-Type: application/json", "Authorization: Bearer x", "Host: evil"])
async def test_a_trailer_of_a_body_is_no_header(server, name):
    answers = []
    for trailers in (b"", name.encode() + b"\r\n"):
        reader, writer = await opened(server)
        writer.write(CHUNKED + b"\r\n2\r\n{}\r\n0\r\n" + trailers + b"\r\n")
        _, body = await answered(reader)
        writer.close()
        answers.append({key: value for key, value in json.loads(body).items() if key != "request_id"})
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "end",
    [
        b"0\r\nX: a\n\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
        b"0\r\n\nGET /evil HTTP/1.1\r\nHost: a\r\n\r\n",
        b"0\r\nX: a\r\n b\r\n\r\n",
        b"0\r\nX: a\x01\r\n\r\n",
    ],
)
@pytest.mark.parametrize("in_pieces", [False, True])
async def test_an_end_of_a_body_that_two_readers_could_place_differently_is_refused(server, end, in_pieces):
    reader, writer = await opened(server)
    writer.write(CHUNKED.replace(b"Connection: close\r\n", b"") + b"\r\n2\r\n{}\r\n")
    head, body = b"HTTP/1.1 400 ", b""
    with contextlib.suppress(ConnectionError):  # bytes that come after the end of the connection reset it
        for piece in [bytes([byte]) for byte in end] if in_pieces else [end]:
            writer.write(piece)
            await asyncio.sleep(0.001 if in_pieces else 0)
        head, body = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 400 ")
    assert body.count(b"HTTP/1.1") == 0


@pytest.mark.parametrize("split", range(-16, 0))
@pytest.mark.shares_fixtures
async def test_the_end_of_a_body_of_chunks_may_come_in_two_pieces(server, call_body, split):
    body = json.dumps({**call_body, "tool_call_id": f"split{split}"}).encode()
    kind = b"Content-Type: application/json\r\nPrefer: respond-async\r\n"
    sent = CHUNKED + kind + b"\r\n%x\r\n%b\r\n0\r\nX-A: b\r\n\r\n" % (len(body), body)
    reader, writer = await opened(server)
    for piece in (sent[:split], sent[split:]):
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.05)
    head, _ = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 202 ")


async def test_the_rest_of_a_body_that_is_refused_early_is_no_request(server):
    reader, writer = await opened(server)
    rest = b"GET /v1/tools HTTP/1.1\r\nHost: x\r\n\r\n"
    writer.write(b"PUT /v1/none HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 50\r\n\r\n")
    async with asyncio.timeout(30):
        await reader.readuntil(b"\r\n\r\n")
    with contextlib.suppress(ConnectionError):
        writer.write(rest)
        _, body = await answered(reader)
        assert b"HTTP/1.1" not in body
    writer.close()


async def test_a_body_of_tiny_chunks_is_refused(server):
    reader, writer = await opened(server)
    writer.write(CHUNKED + b"\r\n" + b"1\r\n \r\n" * 20_001)
    head, body = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 400 ")
    assert "send larger ones" in json.loads(body)["detail"]


@pytest.mark.parametrize("head", [b"X: a\r\n b\r\n", b"X: " + b"a" * HEAD_BYTES_MAX + b"\r\n"])
async def test_a_refused_request_for_a_head_alone_gets_no_body(server, head):
    reader, writer = await opened(server)
    writer.write(b"HEAD /v1/tools HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n")
    answer, body = await answered(reader)
    writer.close()
    assert answer.split()[1] in {b"400", b"431"}
    assert body == b""


@pytest.mark.parametrize(
    "framing", [b"HTTP/1.1\r\nContent-Length: 5, 5\r\n", b"HTTP/1.0\r\nTransfer-Encoding: chunked\r\n"]
)
async def test_a_framing_that_readers_take_differently_is_refused(server, framing):
    reader, writer = await opened(server)
    writer.write(b"POST /v1/tool-calls " + framing + b"Host: x\r\n\r\n")
    head, _ = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 400 ")


async def sent_until_the_end(writer, piece: bytes, within_s: float = 60) -> int:
    """How many bytes a client gets rid of before its connection ends."""
    sent = 0
    async with asyncio.timeout(within_s):
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
                await asyncio.sleep(0)
    return sent


@pytest.mark.parametrize(
    ("begins", "goes_on"),
    [
        (b"2\r\n{}\r\n0\r\n", b"a:\r\n" * 300),
        (b"2\r\n{}\r\n0\r\nA: ", b"a" * 1_200),
        (b"2\r\n{}\r\n0\r\n", b"a" * 1_200),
        (b"2\r\n{}\r\n0;", b"a" * 1_200),
        (b"2;", b"a" * 1_200),
        (b"", b"0" * 1_200),
    ],
    ids=["many trailers", "a long value", "a long name", "a last extension", "an extension", "a long size"],
)
async def test_what_is_no_content_of_a_body_is_bounded(server, begins, goes_on):
    _, writer = await opened(server)
    writer.write(CHUNKED + b"\r\n" + begins)
    assert await sent_until_the_end(writer, goes_on) < 20_000_000


async def test_a_large_body_in_small_chunks_is_read(server, call_body):
    body = json.dumps(call_body).encode().ljust(100_000)
    pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    reader, writer = await opened(server)
    kind = b"Content-Type: application/json\r\nPrefer: respond-async\r\n"
    writer.write(CHUNKED + kind + b"\r\n" + chunks + b"0\r\nX-A: b\r\n\r\n")
    head, _ = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 202 ")


async def test_a_head_in_any_number_of_pieces_is_the_same_head(server):
    asked = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 300 + b"\r\n\r\n"
    for size in (1, 2, 3, 100, len(asked) - 1):
        reader, writer = await opened(server)
        for at in range(0, len(asked), size):
            writer.write(asked[at : at + size])
            await writer.drain()
            await asyncio.sleep(0)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.close()


async def test_an_offer_to_speak_another_protocol_is_passed_over_and_the_body_is_read(server, call_body):
    # As Java's client makes its first request on each connection.
    body = json.dumps({**call_body, "tool_call_id": "upgrade-1"}).encode()
    reader, writer = await opened(server)
    for name in (b"Upgrade", b"UPGRADE", b"Upgrade: websocket\r\nupgrade"):
        writer.write(
            b"POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            + name
            + b": h2c\r\n"
            b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nPrefer: respond-async\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 202 "), head
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        assert json.loads(await reader.readexactly(length))["tool_call_id"] == "upgrade-1"
    writer.close()


async def test_requests_one_behind_the_other_are_answered_in_their_order(server):
    for cut in (0, 10, 60, 70, 90):
        asked = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
        asked += b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        reader, writer = await opened(server)
        writer.write(asked[:cut])
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.write(asked[cut:])
        async with asyncio.timeout(30):
            raw = await reader.read()
        writer.close()
        assert raw.startswith(b"HTTP/1.1 200 ")
        assert b"HTTP/1.1 404 " in raw


@pytest.mark.parametrize(
    ("sent", "detail"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "request line"),
        (b"GET / HTTP/1.1\nHost: x\n\n", "CRLF"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "Host"),
        (b"GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n", "Host"),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", "HTTP/1.1"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""),
        (b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n", "begins with /"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\x01c\r\n\r\n", "control character"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: b\r\n folded\r\n\r\n", ""),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", "Content-Length"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ""),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\na", "Transfer-Encoding"),
    ],
)
@pytest.mark.shares_fixtures
async def test_heads_that_two_readers_could_read_differently_are_refused_at_once(server, sent, detail):
    reader, writer = await opened(server)
    writer.write(sent)
    head, body = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 400 "), head
    assert detail in json.loads(body)["detail"]


ODD_HEADS = [
    b"GET /livez HTTP/1.1\r\n\r\n",
    b"\x16\x03\r\n\r\n",
    b"GET /livez HTTP/1.1\r\nX: " + b"a" * HEAD_BYTES_MAX,
]


@pytest.mark.parametrize("odd", ODD_HEADS, ids=["no Host", "no HTTP", "too long"])
async def test_an_odd_request_behind_a_call_that_runs_is_refused_after_the_whole_answer(server, call_body, odd):
    body = json.dumps({**call_body, "tool_call_id": "held-2"}).encode()
    reader, writer = await opened(server)
    writer.write(
        b"POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    async with httpx.AsyncClient(base_url=server, timeout=60, trust_env=False) as client:
        async with asyncio.timeout(30):
            while (await client.get(f"{CALLS}/held-2")).status_code != 200:  # noqa: ASYNC110 - asked over HTTP
                await asyncio.sleep(0.01)
        writer.write(odd)
        assert (await client.delete(f"{CALLS}/held-2")).status_code == 200
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    assert json.loads(await reader.readexactly(length))["code"] == "cancelled"
    refusal, problem = await answered(reader)
    writer.close()
    assert (head.split()[1], refusal.split()[1][:1]) == (b"409", b"4")
    assert json.loads(problem)["where"] == "head"


async def test_requests_behind_a_call_that_runs_are_not_read(server, call_body):
    body = json.dumps({**call_body, "tool_call_id": "held-3"}).encode()
    _, writer = await opened(server)
    writer.write(
        b"POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 1_000_000)
    draining = asyncio.create_task(writer.drain())
    await asyncio.wait({draining}, timeout=1)
    assert not draining.done()
    writer.transport.abort()
    await asyncio.gather(draining, writer.wait_closed(), return_exceptions=True)


async def test_a_head_that_is_whole_and_too_long_is_431(server):
    reader, writer = await opened(server)
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nCookie: " + b"c" * HEAD_BYTES_MAX + b"\r\n\r\n")
    head, body = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 431 ")
    assert f"{HEAD_BYTES_MAX} bytes" in json.loads(body)["detail"]


async def test_a_head_that_is_too_long_behind_another_request_is_431(server, call_body):
    body = json.dumps({**call_body, "tool_call_id": "long-1"}).encode()
    reader, writer = await opened(server)
    writer.write(
        b"POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nPrefer: respond-async\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body + b"GET /livez HTTP/1.1\r\nX-A: "
    )
    await asyncio.sleep(0.2)
    told = b""
    try:
        for _ in range(HEAD_BYTES_MAX // 1_000 + 100):
            writer.write(b"a" * 1_000)
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            told = await reader.read()
    except ConnectionError:
        told = reader._buffer
    writer.close()
    assert b"HTTP/1.1 431 " in bytes(told)


@in_short_time
async def test_a_request_that_was_answered_before_its_body_came_holds_no_connection(server):
    reader, writer = await opened(server)
    writer.write(b"POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\na")
    head, _ = await answered(reader)
    writer.close()
    assert head.startswith(b"HTTP/1.1 404 ")
