"""Prometheus metrics: a registry for each service, in the text format that scrapers ask for."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from proofbox.contracts.network import NetworkConnection
from proofbox.service.observability.metrics_port import DeletedData, EndedCall, Reading, ServedRequest

_CALL_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_PHASE_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)
_REQUEST_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600)
_STORE_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)
_INSTALL_S = (0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)
_MS = 1000.0
Look = Callable[[], float]


class _Readings(Collector):
    """Readings as metrics, taken when they are asked for."""

    def __init__(self, read: Callable[[], Iterable[Reading]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """See `Collector.collect`."""
        for reading in self._read():
            kind = CounterMetricFamily if reading.only_grows else GaugeMetricFamily
            family = kind(f"proofbox_{reading.name}", reading.what, labels=reading.labels)
            for labels, value in reading.values.items():
                family.add_metric(labels, value)
            yield family


class PrometheusMeter:
    """The port ``Meter`` as Prometheus metrics.

    Args:
        gauges: values that are read on each scrape: name without ``proofbox_``, description and reader.
        version: the release.
        readings: values with labels that are read then.
    """

    def __init__(
        self,
        gauges: dict[str, tuple[str, Look]],
        version: str = "",
        readings: Callable[[], Iterable[Reading]] | None = None,
    ) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self._registry)
        self._calls = self._counter("calls", "Calls that have their answer.", "tool", "code")
        self._verdicts = self._counter("verdicts", "Files of calls, by what became of them.", "verdict")
        self._sandboxes = self._counter("sandboxes", "Sandboxes that a call got.", "acquired")
        self._rehosted = self._counter("rehosted_bytes", "Bytes that were put into sandboxes.", "source")
        self._call_s = Histogram(
            "proofbox_call_seconds", "From claim to answer.", ["tool"], registry=self._registry, buckets=_CALL_S
        )
        self._phase_s = Histogram(
            "proofbox_phase_seconds", "Phases of calls.", ["phase"], registry=self._registry, buckets=_PHASE_S
        )
        self._requests = self._counter("http_requests", "Requests that were answered.", "method", "route", "status")
        self._request_s = Histogram(
            "proofbox_http_request_seconds",
            "From the head of a request to the end of its answer.",
            ["route"],
            registry=self._registry,
            buckets=_REQUEST_S,
        )
        self._store_s = Histogram(
            "proofbox_store_seconds",
            "What was done in a store, waiting for its turn included.",
            ["operation"],
            registry=self._registry,
            buckets=_STORE_S,
        )
        self._deletions = self._counter("deletions", "Conversations and files that were deleted.", "kind", "reason")
        self._deleted_files = self._counter("deleted_files", "Files that were deleted.", "reason")
        self._deleted_bytes = self._counter("deleted_bytes", "Bytes of all versions of deleted files.", "reason")
        self._connections = self._counter("connections", "Connections of programs that have ended.", "result")
        self._connected_bytes = self._counter("connection_bytes", "Bytes of connections of programs.", "direction")
        self._packages = self._counter("packages", "Lists of packages that were found or installed.", "result")
        self._install_s = Histogram(
            "proofbox_package_install_seconds",
            "Installing a list of packages, without the wait for a place.",
            ["result"],
            registry=self._registry,
            buckets=_INSTALL_S,
        )
        self._passes = self._counter("retention_passes", "Passes of the retention sweeper.", "result")
        Gauge("proofbox_build_info", "The release, as a label.", ["version"], registry=self._registry).labels(
            version
        ).set(1)
        for name, (what, look) in gauges.items():
            Gauge(f"proofbox_{name}", what, registry=self._registry).set_function(look)
        if readings is not None:
            self.add_readings(readings)

    def add_readings(self, read: Callable[[], Iterable[Reading]]) -> None:
        """See `Meter.add_readings`."""
        self._registry.register(_Readings(read))

    def request_ended(self, request: ServedRequest) -> None:
        """See `Meter.request_ended`."""
        self._requests.labels(request.method, request.route, str(request.status)).inc()
        self._request_s.labels(request.route).observe(request.seconds)

    def store_used(self, operation: str, seconds: float) -> None:
        """Something was read from a store or written into it."""
        self._store_s.labels(operation).observe(seconds)

    def call_ended(self, call: EndedCall) -> None:
        """See `Meter.call_ended`."""
        self._calls.labels(call.tool_id, call.code).inc()
        self._call_s.labels(call.tool_id).observe(call.seconds)
        response = call.response
        if response is None:
            return
        for artifact in response.artifacts:
            self._verdicts.labels(str(artifact.verdict)).inc()
        for line in response.rehosted:
            self._rehosted.labels(line.source).inc(line.size_bytes)
        if response.sandbox is not None:
            self._sandboxes.labels(response.sandbox.acquired).inc()
            for phase, milliseconds in asdict(response.timings_ms).items():
                if phase != "total":
                    self._phase_s.labels(phase).observe(milliseconds / _MS)

    def connection_ended(self, connection: NetworkConnection) -> None:
        """A connection of a program has ended."""
        self._connections.labels("allowed" if connection.allowed else "refused").inc()
        self._connected_bytes.labels("sent").inc(connection.bytes_sent)
        self._connected_bytes.labels("received").inc(connection.bytes_received)

    def packages_found(self) -> None:
        """A call has found the packages that it asks for."""
        self._packages.labels("found").inc()

    def packages_installed(self, *, ok: bool, seconds: float) -> None:
        """Packages were installed for calls, or could not be."""
        result = "installed" if ok else "failed"
        self._packages.labels(result).inc()
        self._install_s.labels(result).observe(seconds)

    def data_deleted(self, deleted: DeletedData) -> None:
        """See `Meter.data_deleted`."""
        self._deletions.labels(deleted.kind, deleted.reason).inc()
        self._deleted_files.labels(deleted.reason).inc(deleted.files)
        self._deleted_bytes.labels(deleted.reason).inc(deleted.size_bytes)

    def retention_passed(self, *, is_complete: bool) -> None:
        """See `Meter.retention_passed`."""
        self._passes.labels("done" if is_complete else "failed").inc()

    def text(self) -> bytes:
        """All metrics in the text format 0.0.4."""
        return generate_latest(self._registry)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"proofbox_{name}", what, labels, registry=self._registry)
