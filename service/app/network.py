"""Build what decides about the network of programs."""

import ssl
from collections.abc import Mapping
from functools import cache

from proofbox.contracts.network import Endpoint
from proofbox.service.app.config.secret_files import SecretFileError, read_secret
from proofbox.service.app.network_settings import NetworkSettings, SecretOfHosts
from proofbox.service.app.settings import Settings
from proofbox.service.egress.host_headers import HeaderRefusedError, HostHeader, HostHeaders
from proofbox.service.egress.policy import CallerHosts, NetworkLimits, NetworkPolicy, Provisions
from proofbox.service.egress.upstream import Connector
from proofbox.service.errors import ServiceError
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.client.tls import Tls, checked_tls

_ROOTS_BYTES_MAX = 128 * 1024  # a program's certificates travel in one message
LOOKUPS = 32
"""Names that programs resolve at the same time, each on a thread."""


class HostSecretRefusedError(ServiceError):
    """A secret of hosts is not there, or cannot be used."""


def build_network(
    settings: Settings, of_callers: CallerHosts, resolve: Resolver, variables: Mapping[str, str]
) -> NetworkPolicy:
    """Build the policy of the network of programs.

    Args:
        settings: of the service.
        of_callers: the hosts of keys.
        resolve: resolves the names that programs connect to.
        variables: the environment, with secrets.

    Raises:
        HostSecretRefusedError: a secret is not there, or cannot be used.
        OSError, ssl.SSLError: the file of certificates cannot be used.
    """
    tls = _outgoing_tls(settings) if settings.sandbox_network_secrets else None
    return NetworkPolicy(
        settings.sandbox_network,
        NetworkLimits(
            open_max=settings.sandbox_network_open_max,
            connections_max=settings.sandbox_network_connections_max,
            bytes_max=settings.sandbox_network_bytes_max,
            idle_s=settings.sandbox_network_idle_s,
        ),
        Connector(resolve, settings.sandbox_network_ranges, tls=tls),
        of_callers,
        Provisions(settings.sandbox_pip_index_url, build_headers(settings, variables), _read_roots(settings)),
        LOOKUPS,
    )


def build_headers(settings: NetworkSettings, variables: Mapping[str, str]) -> HostHeaders:
    """Build the headers with secrets.

    Raises:
        HostSecretRefusedError: a secret is not there, or cannot be used; the message has no secret.
    """
    try:
        return HostHeaders(
            [_header(name, given, variables) for name, given in settings.sandbox_network_secrets.items()]
        )
    except (HeaderRefusedError, SecretFileError) as exc:
        raise HostSecretRefusedError(f"PROOFBOX_SANDBOX_NETWORK_SECRETS: {exc}") from None


def _header(name: str, given: SecretOfHosts, variables: Mapping[str, str]) -> HostHeader:
    secret = variables.get(given.variable or "") if given.file is None else read_secret(given.file)
    if secret is None:
        raise HeaderRefusedError(
            f"{name} names the variable {given.variable}, which is not set; set it, or remove the entry"
        )
    parts = (project.partition("/") for project in given.projects)
    return HostHeader(
        variable=name,
        hosts=tuple(Endpoint.parse(host) for host in given.hosts),
        name=given.header,
        secret=secret,
        prefix=given.prefix,
        projects=tuple((tenant, project) for tenant, _, project in parts),
    )


def _read_roots(settings: NetworkSettings) -> str:
    """The operator's certificate authorities, without keys and comments that may be beside them."""
    path = settings.sandbox_network_ca_file
    if path is None:
        return ""
    checked_tls(path)  # raises if it has no certificate
    content = path.read_bytes()
    if len(content) > _ROOTS_BYTES_MAX:
        raise HostSecretRefusedError(
            f"PROOFBOX_SANDBOX_NETWORK_CA_FILE: the file is too large (limit {_ROOTS_BYTES_MAX} bytes, got "
            f"{len(content)}); leave out the public authorities"
        )
    pieces = content.decode("ascii", "replace").split(ssl.PEM_HEADER)[1:]
    bodies = (piece.partition(ssl.PEM_FOOTER)[0] for piece in pieces)
    return "".join(f"{ssl.PEM_HEADER}{body}{ssl.PEM_FOOTER}\n" for body in bodies)


def _outgoing_tls(settings: NetworkSettings) -> Tls:
    """TLS as a client of hosts with secrets, made at its first use."""

    def make() -> ssl.SSLContext:
        tls = checked_tls(settings.sandbox_network_ca_file)
        tls.set_alpn_protocols(["http/1.1"])
        return tls

    return cache(make)
