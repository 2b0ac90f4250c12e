"""Build what decides about the network of programs."""

from proofbox.service.access.quotas import Quotas
from proofbox.service.app.settings import Settings
from proofbox.service.egress.policy import NetworkLimits, NetworkPolicy
from proofbox.service.egress.upstream import Connector
from proofbox.service.web.client.resolver import Resolver


def build_network(settings: Settings, quotas: Quotas, resolve: Resolver) -> NetworkPolicy:
    """Build the policy of the network of programs."""
    return NetworkPolicy(
        settings.sandbox_network,
        NetworkLimits(
            open_max=settings.sandbox_network_open_max,
            connections_max=settings.sandbox_network_connections_max,
            bytes_max=settings.sandbox_network_bytes_max,
            idle_s=settings.sandbox_network_idle_s,
        ),
        Connector(resolve, settings.sandbox_network_ranges),
        quotas.network,
        settings.sandbox_pip_index_url,
    )
