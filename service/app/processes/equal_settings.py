"""Which settings all processes of a service have to share, and what a process reports of its own."""

import hashlib
import json

from proofbox.service.app.settings import Settings
from proofbox.service.dispatch.differences import ProcessFacts

_DIGEST_LENGTH = 8
MAY_DIFFER = frozenset(
    {
        # where it listens, and its clients
        *(
            "host",
            "port",
            "address_file",
            "auth",
            "behind_authenticating_proxy",
            "allowed_hosts",
            "public_url",
            "mcp",
            "console",
        ),
        *("head_s", "unread_s", "connections_max", "connections_per_address_max", "body_s", "bodies_bytes_max"),
        *("heartbeat_s", "lost_connection_grace_s", "event_log_bytes_max", "gotenberg", "space_origins"),
        *("librechat", "librechat_key_file", "librechat_issuer", "librechat_audience"),
        # its part of the work, and its way to the others
        *("role", "data_dir", "keys_dir", "service_name", "shutdown_grace_s", "database_timeout_s"),
        *("nats_urls", "nats_ca_file", "nats_certificate_file", "nats_certificate_key_file"),
        *(
            "nats_credentials_file",
            "nats_nkey_file",
            "nats_user",
            "s3_access_key",
            "s3_endpoint",
            "s3_link_endpoint",
        ),
        *("audit_key_file", "audit_heads_file", "audit_file", "web_ca_file", "sandbox_network_ca_file"),
        *("log_format", "log_level", "otlp_endpoint"),
        # its machine and engine
        *("engine", "engine_host", "engine_timeout_s", "runtime", "oci_runtime", "oci_image_archive"),
        *("oci_cache_dir", "oci_run_dir", "cgroup_parent", "sandbox_user_first", "sandbox_users", "import_once"),
        *("total_memory_bytes", "total_pids", "total_cpus", "seccomp_profile", "pool_size", "pool_reserve"),
        *("pool_max", "pool_memory_bytes", "pool_unused_s", "starts_max", "ready_s", "waiting_lifetime_s"),
        *("sweep_every_s", "cpus", "running_max", "gateway_running_max", "web_fetching_max", "package_dir"),
        # the image is compared as it is resolved
        "image",
        # secrets are compared by nobody
        *("database_url", "s3_secret_key", "nats_password", "nats_token", "package_index_login"),
    }
)
"""Settings that may differ between processes; all others are compared."""


def facts_of(settings: Settings, release: str) -> ProcessFacts:
    """What a process reports of itself; no value can be read from it, and no secret is in it."""
    values = settings.model_dump(mode="json", exclude=set(MAY_DIFFER))
    values["image"] = settings.sandbox_image
    return ProcessFacts(release, {name: _digest(value) for name, value in values.items()})


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGEST_LENGTH]
