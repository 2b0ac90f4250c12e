"""Build metrics and traces."""

from proofbox.service.api.app import release
from proofbox.service.app.sandbox_engine import pool_readings, together_readings
from proofbox.service.app.settings import Settings
from proofbox.service.calls.admission import Admission
from proofbox.service.observability.prometheus import PrometheusMeter
from proofbox.service.observability.tracing import NoTracer, Tracer
from proofbox.service.sandbox.engine import PooledEngine
from proofbox.service.storage.artifacts.disk_usage import file_bytes, free_bytes
from proofbox.service.storage.audit_signing import HeadSigner


def build_meter(
    settings: Settings, admission: Admission, engine: PooledEngine, heads: HeadSigner
) -> PrometheusMeter:
    """Build the metrics, with the gauges that are read when they are scraped."""
    return PrometheusMeter(
        {
            "calls_running": ("Calls that have a place.", lambda: admission.running),
            "calls_queued": ("Calls that wait for one.", lambda: admission.queued),
            "pool_ready": ("Sandboxes of all flavours that wait for a call.", lambda: engine.pool.ready),
            "swept": ("Sandboxes that had to be swept, since the service started.", lambda: engine.swept),
            "engine_up": ("1 if the engine answered when it was asked last.", lambda: engine.is_up),
            "audit_signing": (
                "1 if the heads of all chains of audit lines are signed; 0 if something keeps them from it.",
                lambda: heads.is_signing,
            ),
            "data_free_bytes": (
                "What is free for the service on the file system of its data folder.",
                lambda: free_bytes(settings.data_dir),
            ),
            "database_bytes": (
                "The SQLite file and its log; 0 for a database on a server.",
                lambda: file_bytes(settings.data_dir),
            ),
        },
        release(),
        lambda: [*pool_readings(engine.pool), *together_readings(engine)],
    )


def build_tracer(settings: Settings, boot_id: str) -> Tracer:
    """Build the tracer; one that does nothing if no receiver is named."""
    if not settings.is_traced:
        return NoTracer()
    # Imported here: its client takes memory that a service without traces does not need.
    from proofbox.service.observability.otlp import OtlpTracer  # noqa: PLC0415

    return OtlpTracer(settings.otlp_endpoint, release(), boot_id)
