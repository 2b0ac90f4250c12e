"""Traces by OpenTelemetry, sent over OTLP/HTTP (protobuf) in the background, in batches.

A span that ends goes into a bounded queue; a thread of its own sends what is there. A receiver that is slow or gone
costs spans, which are dropped and reported in the log, and never a call. Sampling, headers, certificates and the
queue are set by OpenTelemetry's own variables (``OTEL_TRACES_SAMPLER``, ``OTEL_EXPORTER_OTLP_HEADERS``,
``OTEL_BSP_MAX_QUEUE_SIZE`` and so on).
"""

import os
import threading
from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import OTEL_SERVICE_NAME
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from proofbox.service.observability.tracing import Attributes, Span

_LAST_SPANS_S = 2.0  # what the spans of the last moments may cost when the service stops
_PROPAGATOR = TraceContextTextMapPropagator()
_PARENT_HEADERS = ("traceparent", "tracestate")


class OtlpTracer:
    """The port ``Tracer`` over OpenTelemetry.

    Args:
        endpoint: the receiver's base URL; empty: the one of OpenTelemetry's own variables.
        version: the release.
        boot_id: this process of the service.
    """

    def __init__(self, endpoint: str, version: str, boot_id: str) -> None:
        self._exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces" if endpoint else None)
        self._provider = TracerProvider(resource=_resource(version, boot_id), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("proofbox", version)

    def trace(self, name: str, attributes: Attributes, headers: Mapping[str, str] | None = None) -> Span:
        """See `Tracer.trace`."""
        if headers is None:
            begun = self._tracer.start_span(name, Context(), attributes=_known(attributes))
        else:
            # Only these: no baggage of a stranger is carried along.
            carrier = {key: headers[key] for key in _PARENT_HEADERS if key in headers}
            begun = self._tracer.start_span(
                name,
                _PROPAGATOR.extract(carrier, Context()),
                kind=trace.SpanKind.SERVER,
                attributes=_known(attributes),
            )
        return _OtlpSpan(self._tracer, begun)

    def close(self) -> None:
        """See `Tracer.close`; two seconds at most."""
        closing = threading.Thread(target=self._provider.shutdown, name="last-spans", daemon=True)
        closing.start()
        closing.join(_LAST_SPANS_S)
        if closing.is_alive():
            self._exporter.shutdown()  # type: ignore[no-untyped-call]  # ends the pauses between its attempts


class _OtlpSpan:
    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer = tracer
        self._span = span

    @property
    def traceparent(self) -> str:
        """See `Span.traceparent`."""
        context = self._span.get_span_context()
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def start(self, name: str, attributes: Attributes) -> Span:
        """See `Span.start`."""
        inside = trace.set_span_in_context(self._span, Context())
        return _OtlpSpan(self._tracer, self._tracer.start_span(name, inside, attributes=_known(attributes)))

    def rename(self, name: str) -> None:
        """See `Span.rename`."""
        self._span.update_name(name)

    def set(self, attributes: Attributes) -> None:
        """See `Span.set`."""
        self._span.set_attributes(_known(attributes))

    def link(self, traceparent: str) -> None:
        """See `Span.link`."""
        found = _PROPAGATOR.extract({"traceparent": traceparent}, Context())
        context = trace.get_current_span(found).get_span_context()
        if context.is_valid:
            self._span.add_link(context)

    def fail(self, what: str) -> None:
        """See `Span.fail`."""
        self._span.set_attribute("error.type", what)
        self._span.set_status(trace.StatusCode.ERROR)

    def end(self) -> None:
        """See `Span.end`."""
        self._span.end()


def _resource(version: str, boot_id: str) -> Resource:
    named = {"service.version": version, "service.instance.id": boot_id}
    variables = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if not os.environ.get(OTEL_SERVICE_NAME) and "service.name=" not in variables:
        named["service.name"] = "proofbox"
    return Resource.create(named)


def _known(attributes: Attributes) -> dict[str, str | int | float | bool]:
    return {name: value for name, value in attributes.items() if value is not None}
