"""When clients send a request again, that it is the same request, and what they report in the end."""

import io
import json

import pytest

from proofbox.client import (
    AuthenticationError,
    CallCancelledError,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    ProofboxError,
    RateLimitedError,
    ServiceFailedError,
    UnavailableError,
    UnexpectedResponseError,
    UnreachableError,
)
from proofbox.client.api import Api
from proofbox.client.exchange import ConnectionCut, NotConnected, Open, Read, Reply, Request, Sleep
from tests.support.client_answers import answer, attachment, problem, refusal, with_files
from tests.support.scripted_service import Scripted


def pauses(*replies: Reply | Exception, retries: int = 4) -> tuple[list[float], object]:
    """How long a request waits between its attempts, and how it ends; nothing is sent."""
    plan = Api.create("http://h", "", None, retries).request(Request("GET", "/"))
    waited, pending, reply = [], list(replies), None
    step = next(plan)
    try:
        while True:
            if isinstance(step, Sleep):
                waited.append(step.seconds)
                step = plan.send(None)
            elif isinstance(step, Open):
                reply = pending.pop(0)
                step = plan.throw(reply) if isinstance(reply, Exception) else plan.send(reply)
            else:
                assert isinstance(step, Read)
                body, reply = reply.body, Reply(reply.status, reply.headers)
                step = plan.send(body)
    except StopIteration as end:
        return waited, end.value.status
    except ProofboxError as exc:
        return waited, exc


def refused(code: str, status: int, *, retryable: bool = True, **headers: str) -> Reply:
    body = problem(code, status, retryable=retryable).model_dump_json().encode()
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, body)


OK = Reply(200, {})


def test_the_pause_is_the_one_that_the_service_states() -> None:
    waited, status = pauses(refused("rate_limited", 429, retry_after="7"), OK)
    assert (waited, status) == ([7.0], 200)


def test_pauses_grow_and_are_bounded() -> None:
    waited, error = pauses(*[ConnectionCut("cut")] * 9, retries=8)
    assert isinstance(error, UnreachableError)
    assert all(
        low <= pause <= 2 * low for pause, low in zip(waited, [0.1, 0.2, 0.4, 0.8, 1.6, 2.5, 2.5, 2.5], strict=True)
    )


def test_a_service_that_asks_for_a_long_pause_gets_no_retry() -> None:
    waited, error = pauses(refused("rate_limited", 429, retry_after="91"))
    assert (waited, type(error), error.retry_after_s) == ([], RateLimitedError, 91.0)


def test_a_date_as_pause_is_read() -> None:
    waited, status = pauses(refused("rate_limited", 429, retry_after="Thu, 01 Jan 2026 00:00:00 GMT"), OK)
    assert (len(waited), status) == (1, 200)
    _, error = pauses(refused("rate_limited", 429, retry_after="Fri, 01 Jan 2100 00:00:00 GMT"))
    assert error.retry_after_s > 1e9


def test_what_is_not_retryable_is_sent_once() -> None:
    waited, error = pauses(refused("invalid_request", 422, retryable=False))
    assert (waited, type(error)) == ([], InvalidRequestError)


def test_retries_can_be_switched_off() -> None:
    waited, error = pauses(NotConnected("refused"), retries=0)
    assert (waited, type(error)) == ([], UnreachableError)


@pytest.mark.parametrize(
    ("first", "count"),
    [
        (answer(cut_at=20), 1),
        (answer(with_files(*[f"{n}.txt" for n in range(500)]), cut_at=100_000), 1),
        (Scripted(request_cut_at=0), 1),
        (refusal("queue_full", 429, retryable=True, retry_after="0"), 1),
        (refusal("engine_unavailable", 503, retryable=True), 1),
        (Scripted(502, b"<html>Bad Gateway</html>"), 1),
        (Scripted(504, b""), 1),
    ],
    ids=["cut", "cut late", "cut request", "queue full", "engine", "gateway", "gateway timeout"],
)
def test_a_call_is_repeated_with_the_same_bytes(use, service, first, count) -> None:
    service.answers(*[first] * count + [answer(with_files("a.txt"))])
    result = use(service, "run", "x = 1\n" * 100_000)
    assert service.lines == ["POST /v1/tool-calls"] * 2
    assert result.files[0].name == "a.txt"
    last = service.requests[-1]
    assert last.json["tool_call_id"] == result.call_id
    if first.request_cut_at is None:
        assert service.requests[0].body == last.body
    else:
        assert last.body.startswith(service.requests[0].body)


def test_an_upload_is_repeated_from_its_beginning(use, service) -> None:
    service.answers(Scripted(request_cut_at=100_000), refusal("store_failed", 503, retryable=True), attachment())
    content = bytes(range(256)) * 4_000
    file = io.BytesIO(b"before" + content)
    file.seek(6)
    use(service, "upload", "c1", "a.bin", file)
    assert [request.body == content for request in service.requests] == [False, True, True]


@pytest.mark.parametrize(
    ("answered", "error"),
    [
        (refusal("store_failed", 503, retryable=True), UnavailableError),
        (Scripted(request_cut_at=0), UnreachableError),
    ],
)
def test_a_stream_that_cannot_begin_again_is_sent_once(use, service, answered, error) -> None:
    service.answers(answered)

    class Once(io.BytesIO):
        def seekable(self) -> bool:
            return False

    with pytest.raises(error):
        use(service, "upload", "c1", "a.bin", Once(b"abc" * 100_000))
    assert len(service.requests) == 1


def test_a_file_that_changes_while_it_is_sent_is_an_error(use, service) -> None:
    service.answers(attachment())

    class Growing(io.BytesIO):
        def read(self, size: int = -1) -> bytes:
            return super().read(size) or b"more"

    with pytest.raises(ValueError, match="source: the file had 3 bytes and changed while it was sent"):
        use(service, "upload", "c1", "a.bin", Growing(b"abc"))


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("invalid_request", 422, InvalidRequestError),
        ("unsafe_path", 400, InvalidRequestError),
        ("body_too_large", 413, InvalidRequestError),
        ("unauthorized", 401, AuthenticationError),
        ("forbidden", 403, ForbiddenError),
        ("unknown_call", 404, NotFoundError),
        ("id_reused", 409, ConflictError),
        ("cancelled", 409, CallCancelledError),
        ("queue_full", 429, RateLimitedError),
        ("store_full", 507, UnavailableError),
        ("internal", 500, ServiceFailedError),
        ("a_code_of_a_newer_service", 409, ConflictError),
    ],
)
def test_each_problem_has_its_class_and_document(use, service, code, status, kind) -> None:
    scripted = refusal("internal", status, field="limits.wall_s", retry_after="9")
    service.answers(Scripted(status, scripted.body.replace(b"internal", code.encode()), scripted.headers))
    with pytest.raises(kind) as caught:
        use(service, "run", "1")
    error = caught.value
    assert type(error) is kind
    assert (error.code, error.status, error.field, error.retryable) == (code, status, "limits.wall_s", False)
    assert (error.retry_after_s, error.request_id, len(service.requests)) == (9.0, "r1", 1)
    assert str(error) == f"{code}: detail of {code} (limits.wall_s: is wrong)"
    assert error.limit == ("limits.wall_s" if code in {"queue_full", "body_too_large"} else None)


def test_a_page_that_is_not_of_proofbox_is_named(use, service) -> None:
    service.answers(Scripted(200, b"<html>Welcome to nginx</html>"))
    with pytest.raises(UnexpectedResponseError, match=r"not a ToolCallResponse: .*Welcome to nginx") as caught:
        use(service, "run", "1")
    assert (caught.value.url, caught.value.status) == (service.url, 200)
    service.answers(Scripted(404, b"<html>Not Found</html>"))
    with pytest.raises(UnexpectedResponseError, match="HTTP 404 without a problem document"):
        use(service, "run", "1")
    assert len(service.requests) == 2


def test_a_service_that_does_not_run_is_named_with_its_address(use) -> None:
    with pytest.raises(
        UnreachableError, match=r"http://127\.0\.0\.1:9: no connection .*'proofbox serve'.*PROOFBOX_URL"
    ):
        use("http://127.0.0.1:9", "run", "1", settings={"retries": 0})


def test_lost_connections_end_in_one_error(use, service) -> None:
    service.answers(answer(cut_at=3))
    with pytest.raises(UnreachableError, match="the connection was lost"):
        use(service, "run", "1", settings={"retries": 1})
    assert len(service.requests) == 2


def test_health_is_asked_once_and_states_the_problem(use, service) -> None:
    service.answers(refusal("engine_unavailable", 503, retryable=True))
    health = use(service, "health")
    assert (health.is_ready, health.problem.code, len(service.requests)) == (False, "engine_unavailable", 1)
    service.answers(Scripted(200, json.dumps({"status": "ok"}).encode()))
    assert use(service, "health").is_ready
