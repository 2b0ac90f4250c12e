"""Every module of the service that can reach a network, and whose addresses it asks: a new one is seen here."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENTS = {
    "aiohttp",
    "boto3",
    "botocore",
    "docker",
    "ftplib",
    "http.client",
    "httpcore",
    "httpx",
    "httpx2",
    "opentelemetry",
    "psycopg",
    "requests",
    "smtplib",
    "socket",
    "urllib.request",
    "urllib3",
    "websockets",
}
# Only the first eight ever see an address that a caller, a model or a page has named.
WHOSE_ADDRESSES = {
    "service/web/client/pinned_network.py": "named by models and pages: checked and connected to here alone",
    "service/web/client/resolver.py": "resolves the names of pinned_network.py, connects to nothing",
    "service/web/client/limited_get.py": "none of its own: it connects through outgoing.py",
    "service/web/client/outgoing.py": "none of its own: it connects through pinned_network.py",
    "service/mcp_sources/transport.py": "named by agents: connects to what pinned_network.py has checked",
    "service/mcp_sources/operations.py": "none of its own: it connects through transport.py",
    "service/packages/downloads.py": "the operator's index, and what that links: as pinned_network.py checks",
    "service/web/urls.py": "reads addresses, connects to nothing",
    "service/storage/postgres.py": "the operator's database",
    "service/storage/postgres_connections.py": "the same",
    "service/storage/artifacts/s3_client.py": "the operator's bucket",
    "service/storage/artifacts/s3_blobs.py": "the operator's bucket",
    "service/observability/otlp.py": "the operator's receiver of traces",
    "service/sandbox/docker/client.py": "the operator's engine",
    "service/sandbox/docker/containers.py": "the operator's engine",
    "service/sandbox/docker/exit_watcher.py": "the operator's engine",
    "service/sandbox/docker/transport.py": "the operator's engine",
    "service/sandbox/oci/containers.py": "a socket pair to a container of its own",
    "service/sandbox/oci/container_start.py": "a socket pair to a container of its own",
    "service/sandbox/oci/zygotes.py": "a socket pair to a zygote of its own",
    "service/sandbox/docker/direct_socket.py": "a socket that a process of its own lays out in a container",
    "service/sandbox/docker/zygotes.py": "the operator's engine, and a socket that a zygote of its own connects to",
    "service/sandbox/zygotes/zygote.py": "a socket pair to a zygote of its own",
    "service/sandbox/oci/runtime.py": "a socket pair to a container of its own",
    "service/sandbox/oci/transport.py": "a socket pair to a container of its own",
    "proofbox/cli/checks/machine.py": "the operator's engine",
    "proofbox/cli/checks/engine_facts.py": "the operator's engine",
    "proofbox/cli/mcp_bridge.py": "the service that the user of the command names",
    "proofbox/client/async_driver.py": "the service that the program of the client names",
    "proofbox/client/sync_driver.py": "the service that the program of the client names",
    "proofbox/client/transport.py": "settings and errors of the client, connects to nothing",
    "service/api/server.py": "listens, and connects to nothing",
    "service/app/ports.py": "binds the service's port, and connects to nothing",
    "service/sandbox/sandbox_users.py": "binds names of its own, and connects to nothing",
}
READS_ONLY = {"service/web/urls.py"}


def clients_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {client for client in CLIENTS for name in names if name == client or name.startswith(f"{client}.")}


def test_every_module_with_a_client_of_a_network_is_known_and_none_is_left_over():
    found = {
        str(path.relative_to(ROOT))
        for folder in ("service", "contracts", "proofbox/cli", "proofbox/client")
        for path in (ROOT / folder).rglob("*.py")
        if clients_of(path)
    }
    assert found == set(WHOSE_ADDRESSES) - READS_ONLY


def test_requests_leave_through_the_one_module_that_checks_addresses():
    """The HTTP client gets its connections handed in; it is made nowhere else."""
    users = {
        str(path.relative_to(ROOT)): text
        for path in (ROOT / "service").rglob("*.py")
        if "LimitedGet(" in (text := "".join(path.read_text(encoding="utf-8").split())) or "OutgoingClient(" in text
    }
    assert set(users) == {
        "service/app/gateway.py",
        "service/app/gateway_llm.py",
        "service/web/client/fetcher.py",
        "service/web/client/limited_get.py",
        "service/web/client/searxng.py",
    }
    assert "OutgoingClient(network," in users.pop("service/web/client/limited_get.py")
    gateway = users.pop("service/app/gateway.py")
    assert "network=CheckedNetwork(needs.resolver,settings.gateway_networks)" in gateway
    assert gateway.count("OutgoingClient(") == gateway.count("OutgoingClient(network,") == 1
    assert "OutgoingClient(CheckedNetwork(needs.resolver,None)" in users.pop("service/app/gateway_llm.py")
    for text in users.values():
        assert "LimitedGet(CheckedNetwork(" in text
