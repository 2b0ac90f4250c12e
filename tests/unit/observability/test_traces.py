"""Traces over a real receiver: spans nest, continue a caller's trace, and never wait for whoever takes them."""

import asyncio
import contextlib
import logging
import socket
import subprocess
import sys

import pytest

from proofbox.service.app.settings import Settings
from proofbox.service.observability.otlp import OtlpTracer
from proofbox.service.observability.tracing import NO_SPAN, NoTracer, inside, open_span, span, trace_id_of
from tests.support.otlp_receiver import receiving

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ONE_QUEUE = 2048


@pytest.fixture(autouse=True)
def own_variables(monkeypatch):
    """OpenTelemetry's own variables of whoever runs the tests do not count."""
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SDK_DISABLED", "OTEL_TRACES_SAMPLER"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def tracer(receiver):
    tracer = OtlpTracer(receiver.url, "1.2.3", "boot-1")
    yield tracer
    tracer.close()


def test_spans_nest_as_the_blocks_do(tracer, receiver):
    with inside(tracer.trace("request", {})), span("call"):
        with span("queue"):
            pass
        with span("run", {"process.exit.code": 0, "proofbox.signal": None}) as run:
            run.set({"proofbox.cpu_ms": 1.5})
    tracer.close()
    [root] = receiver.named("request")
    assert receiver.tree(root) == {"call": {"queue": {}, "run": {}}}
    assert {s.trace_id for s in receiver.spans} == {root.trace_id}
    [run] = receiver.named("run")
    assert run.attributes == {"process.exit.code": 0, "proofbox.cpu_ms": 1.5}


async def test_spans_follow_tasks_and_do_not_mix(tracer, receiver):
    async def call(name):
        with span(name):
            for _ in range(5):
                await asyncio.sleep(0)
            with span(f"{name}-inner"):
                await asyncio.sleep(0)

    with inside(tracer.trace("request", {})):
        await asyncio.gather(*(asyncio.create_task(call(name)) for name in "abc"))
    assert open_span() is NO_SPAN
    tracer.close()
    [root] = receiver.named("request")
    assert receiver.tree(root) == {name: {f"{name}-inner": {}} for name in "abc"}


def test_a_callers_trace_is_continued_and_its_baggage_is_not(tracer, receiver):
    headers = {"traceparent": PARENT, "tracestate": "vendor=1", "baggage": "secret=1"}
    with inside(tracer.trace("request", {}, headers)) as request:
        assert trace_id_of(request.traceparent) == "0af7651916cd43dd8448eb211c80319c"
    tracer.close()
    [span_] = receiver.spans
    assert (span_.trace_id, span_.parent_id, span_.kind) == (
        "0af7651916cd43dd8448eb211c80319c",
        "b7ad6b7169203331",
        2,  # SPAN_KIND_SERVER
    )
    assert span_.attributes == {}


@pytest.mark.parametrize(
    "given",
    [
        "",
        "00-0-0-01",
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "x" * 100_000,
        "00-0af7\n651916cd43dd8448eb211c80319c",
    ],
)
def test_a_parent_that_is_none_is_ignored(tracer, receiver, given):
    tracer.trace("request", {}, {"traceparent": given}).end()
    tracer.close()
    assert [span_.parent_id for span_ in receiver.spans] == [""]


def test_a_caller_that_does_not_sample_is_followed(tracer, receiver):
    with inside(tracer.trace("request", {}, {"traceparent": PARENT[:-2] + "00"})), span("call"):
        pass
    tracer.trace("other", {}).end()
    tracer.close()
    assert [span_.name for span_ in receiver.spans] == ["other"]


def test_a_block_that_raises_ends_its_span_with_the_errors_name_and_not_its_text(tracer, receiver):
    with contextlib.suppress(ValueError), inside(tracer.trace("request", {})), span("run"):
        raise ValueError("canary")
    tracer.close()
    assert [(s.is_error, s.attributes) for s in receiver.spans] == [(True, {"error.type": "ValueError"})] * 2


def test_a_link_leads_to_a_span_of_another_trace(tracer, receiver):
    first = tracer.trace("first", {})
    first.end()
    second = tracer.trace("second", {})
    second.link(first.traceparent)
    second.link("no traceparent")
    second.end()
    tracer.close()
    assert receiver.named("second")[0].links == [receiver.named("first")[0].span_id]


def test_the_service_says_what_it_is(tracer, receiver, monkeypatch):
    tracer.trace("request", {}).end()
    tracer.close()
    resource = receiver.spans[0].resource
    assert {name: resource[name] for name in ("service.name", "service.version", "service.instance.id")} == {
        "service.name": "proofbox",
        "service.version": "1.2.3",
        "service.instance.id": "boot-1",
    }
    monkeypatch.setenv("OTEL_SERVICE_NAME", "other")
    other = OtlpTracer(receiver.url, "1.2.3", "boot-1")
    other.trace("named", {}).end()
    other.close()
    assert receiver.named("named")[0].resource["service.name"] == "other"


def test_nothing_waits_for_a_receiver_that_does_not_answer(receiver, caplog):
    receiver.held.clear()
    tracer = OtlpTracer(receiver.url, "1", "b")
    # The sender is stuck with the first batch while three queues full of spans end: what waited here would hang.
    for number in range(3 * ONE_QUEUE):
        tracer.trace(f"span-{number}", {}).end()
    assert receiver.asked.wait(30)
    with caplog.at_level(logging.CRITICAL, "opentelemetry"):
        tracer.close()
    receiver.held.set()


def test_nothing_fails_when_nobody_listens(caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        tracer = OtlpTracer(f"http://127.0.0.1:{taken.getsockname()[1]}", "1", "b")
        with inside(tracer.trace("request", {})), span("call"):
            pass
        tracer.close()
    assert [record for record in caplog.records if record.name.startswith("proofbox")] == []


def test_without_a_tracer_no_span_costs_more_than_the_block():
    with inside(NoTracer().trace("request", {})) as request, span("call") as call:
        assert (request, call, open_span()) == (NO_SPAN, NO_SPAN, NO_SPAN)


@pytest.mark.parametrize(
    ("variables", "is_traced"),
    [
        ({}, False),
        ({"PROOFBOX_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"PROOFBOX_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}, False),
    ],
)
def test_traces_are_sent_only_if_a_receiver_is_named(monkeypatch, variables, is_traced):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Settings().is_traced is is_traced


@pytest.mark.parametrize("given", ["ftp://x", "http://user:secret@x", "http://x/?key=secret", "x"])
def test_a_receiver_with_a_secret_in_its_url_is_refused(monkeypatch, given):
    monkeypatch.setenv("PROOFBOX_OTLP_ENDPOINT", given)
    with pytest.raises(ValueError, match="otlp_endpoint") as caught:
        Settings()
    assert "secret" not in str(caught.value)


def test_the_client_is_not_imported_unless_traces_are_sent():
    program = "import sys, proofbox.service.app.bootstrap; "
    program += "print([m for m in sys.modules if m.startswith('opentelemetry.sdk')])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
