"""A receiver of traces: an HTTP server that reads OTLP as a collector does."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_PATIENCE_S = 30.0


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it came over the wire; times in nanoseconds, ids in hex."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    start: int
    end: int
    attributes: dict[str, Any]
    links: list[str]
    is_error: bool
    resource: dict[str, Any] = field(repr=False)

    @property
    def traceparent_ids(self) -> tuple[str, str]:
        return self.trace_id, self.span_id


def _value(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value"))


class OtlpReceiver:
    """What was received so far."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.url = ""
        self.held = threading.Event()
        """Requests are answered once it is set."""
        self.held.set()
        self.asked = threading.Event()
        """A request has come."""

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for group in request.resource_spans:
            resource = {a.key: _value(a.value) for a in group.resource.attributes}
            for scope in group.scope_spans:
                for span in scope.spans:
                    self.spans.append(
                        ReceivedSpan(
                            span.name,
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            span.kind,
                            span.start_time_unix_nano,
                            span.end_time_unix_nano,
                            {a.key: _value(a.value) for a in span.attributes},
                            [link.span_id.hex() for link in span.links],
                            span.status.code == 2,  # STATUS_CODE_ERROR
                            resource,
                        )
                    )

    def named(self, name: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if span.name == name]

    def tree(self, root: ReceivedSpan) -> dict[str, Any]:
        """The names below a span, in the order in which they began."""
        below = sorted((s for s in self.spans if s.parent_id == root.span_id), key=lambda span: span.start)
        return {span.name: self.tree(span) for span in below}

    def until(self, name: str, count: int = 1) -> list[ReceivedSpan]:
        """Waits until so many spans of a name have come."""
        deadline = time.monotonic() + _PATIENCE_S
        while len(self.named(name)) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.named(name)


@contextlib.contextmanager
def receiving() -> Iterator[OtlpReceiver]:
    """A receiver on a port of this machine."""
    receiver = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.asked.set()
            receiver.held.wait(_PATIENCE_S)
            assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
            receiver.take(body)
            with contextlib.suppress(OSError):
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.held.set()
        server.shutdown()
        server.server_close()
        thread.join()
