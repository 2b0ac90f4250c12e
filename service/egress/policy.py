"""Which calls get a network, and to where: what the operator and the key allow of what a call asks for."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proofbox.contracts.network import Endpoint, NetworkConnection, NetworkUse, ReachableHost
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.access.known_callers import learn_nothing
from proofbox.service.calls.validation import refusal
from proofbox.service.egress.host_headers import CallHeaders, HostHeaders
from proofbox.service.egress.ledger import Entry, Ledger, OnConnection
from proofbox.service.egress.lookups import CallPlaces, Places, TenantShares
from proofbox.service.egress.program_variables import PROXY_VARIABLES
from proofbox.service.egress.proxy import ProxiedConnection, ProxyRules
from proofbox.service.egress.refusal import ConnectionRefusal
from proofbox.service.egress.upstream import Connector
from proofbox.service.errors import NetworkNotAllowedError
from proofbox.service.identity import Principal
from proofbox.service.sandbox.network import ConnectionBounds, ProgramConnection
from proofbox.service.web.client.resolver import RESOLVER_THREADS

if TYPE_CHECKING:
    from proofbox.service.egress.call_authority import CallAuthority

_REFUSED_PER_MADE = 5  # connections that a call may try, for each that it may have
_LOOKUPS_OF_CALL = 2  # names that are resolved at the same time
_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class NetworkLimits:
    """What the connections of one call may use.

    Attributes:
        open_max: connections at the same time.
        connections_max: connections in all.
        bytes_max: bytes in both directions together.
        idle_s: how long a connection may stay open without a byte.
    """

    open_max: int
    connections_max: int
    bytes_max: int
    idle_s: float


@dataclass(frozen=True, slots=True)
class Provisions:
    """What programs with a network find beside the proxy.

    Attributes:
        package_index: the URL of the index that pip uses; empty: pip's own.
        headers: headers with secrets, which the service sets.
        roots: certificate authorities beyond the public ones, PEM; empty: none.
    """

    package_index: str = ""
    headers: HostHeaders = field(default_factory=HostHeaders)
    roots: str = ""


@dataclass(frozen=True, slots=True)
class CallerHosts:
    """The hosts that callers are limited to.

    Attributes:
        known: returns those of a caller as they were last read; None: all that the operator allows.
        learn: reads the limits of a principal, so that ``known`` returns its hosts as they are now.
    """

    known: Callable[[str], Sequence[str] | None]
    learn: Callable[[Principal], Awaitable[None]] = learn_nothing


class NetworkPolicy:
    """The operator's decisions about the network of programs.

    Args:
        allowed: the hosts and ports that calls may ask for; empty: none.
        limits: what the connections of a call may use.
        connector: makes connections.
        of_callers: the hosts that callers are limited to.
        provisions: what programs find beside the proxy.
        lookups: names that all calls resolve at the same time, which tenants share.
    """

    def __init__(
        self,
        allowed: Sequence[str],
        limits: NetworkLimits,
        connector: Connector,
        of_callers: CallerHosts,
        provisions: Provisions = Provisions(),
        lookups: int = RESOLVER_THREADS,
    ) -> None:
        self._allowed = [Endpoint.parse(entry) for entry in allowed]
        self._limits = limits
        self._connector = connector
        self._of_callers = of_callers
        self._provisions = provisions
        self._lookups = TenantShares(lookups)
        self.observer: OnConnection | None = None
        """Is called with each connection that has ended."""

    def check(self, request: ToolCallRequest, caller: str) -> None:
        """Refuses a call that asks for more than the operator and its key allow.

        Raises:
            NetworkNotAllowedError: an entry is not allowed; it names the field and the entry.
        """
        if request.network is None:
            return
        own = self._of_callers.known(caller)
        of_key = None if own is None else [Endpoint.parse(entry) for entry in own]
        errors = []
        for index, text in enumerate(request.network.allow):
            entry = Endpoint.parse(text)
            if not _is_covered(entry, self._allowed):
                errors.append((index, f"{text} is not allowed by the operator ({_listed(self._allowed)})"))
            elif of_key is not None and not _is_covered(entry, of_key):
                errors.append((index, f"{text} is not allowed for this API key ({_listed(of_key)})"))
        if errors:
            raise refusal(
                NetworkNotAllowedError,
                [
                    {
                        "loc": ("network", "allow", index),
                        "type": "network_not_allowed",
                        "msg": f"{message}; leave the entry out, or ask the operator for it",
                    }
                    for index, message in errors
                ],
            )

    async def check_now(self, request: ToolCallRequest, principal: Principal) -> None:
        """Check a call that begins to run: it may have waited since `check`, and its key may have fewer hosts now.

        Raises:
            NetworkNotAllowedError: as `check`.
            StoreFailedError: the keys cannot be read.
        """
        if request.network is not None:
            await self._of_callers.learn(principal)
            self.check(request, principal.caller)

    def list_hosts(self, principal: Principal) -> list[ReachableHost]:
        """The hosts that the programs of a caller may connect to: those of the operator, narrowed by its key."""
        own = self._of_callers.known(principal.caller)
        found = self._allowed
        if own is not None:
            of_key = [Endpoint.parse(entry) for entry in own]
            narrower = [entry for entry in of_key if _is_covered(entry, self._allowed)]
            found = [*narrower, *(entry for entry in self._allowed if _is_covered(entry, of_key))]
        headers, tenant, project = self._provisions.headers, principal.tenant, principal.project
        return [
            ReachableHost(host=str(entry), variables=headers.variables_of(tenant, project, entry))
            for entry in dict.fromkeys(found)
        ]

    def open(
        self, request: ToolCallRequest, on_connection: OnConnection, tenant: str = "", project: str = ""
    ) -> "CallNetwork | None":
        """The network of a call that was checked; None if it asks for none.

        Args:
            request: the call.
            on_connection: is called with each connection that has ended.
            tenant: whose call it is; the lookups of a tenant leave room for those of others.
            project: the project of the call, whose secrets it may use.
        """
        if request.network is None:
            return None
        allowed = [Endpoint.parse(entry) for entry in request.network.allow]
        provided = self._provisions
        return CallNetwork(
            allowed,
            self._limits,
            self._connector,
            [on_connection] if self.observer is None else [on_connection, self.observer],
            CallProvisions(
                provided.headers.of_call(tenant, project, allowed), provided.package_index, provided.roots
            ),
            self._lookups.of(tenant),
        )


@dataclass(frozen=True, slots=True)
class CallProvisions:
    """What the program of one call finds beside the proxy; see `Provisions`."""

    headers: CallHeaders = field(default_factory=CallHeaders)
    package_index: str = ""
    roots: str = ""


class CallNetwork:
    """The port `ProgramNetwork` of one call.

    Args:
        allowed: the hosts and ports that its program may connect to.
        limits: what its connections may use.
        connector: makes connections.
        observers: are called with each connection that has ended.
        provisions: what its program finds beside the proxy.
        resolving: bounds the names that the calls of its tenant resolve at the same time.
    """

    def __init__(
        self,
        allowed: Sequence[Endpoint],
        limits: NetworkLimits,
        connector: Connector,
        observers: Sequence[Callable[[NetworkConnection], None]],
        provisions: CallProvisions = CallProvisions(),
        resolving: Places | None = None,
    ) -> None:
        self._allowed = allowed
        self._limits = limits
        self._ledger = Ledger(limits.bytes_max, observers)
        self._provisions = provisions
        self._authority = _make_authority(provisions.headers)
        self._rules = ProxyRules(
            require_allowed=self._require_allowed,
            connector=connector,
            resolving=CallPlaces(_LOOKUPS_OF_CALL, resolving),
            ledger=self._ledger,
            idle_s=limits.idle_s,
            headers=provisions.headers,
            server_tls=self._server_tls,
        )
        self._made = 0
        self._making_tls = asyncio.Lock()

    @property
    def bounds(self) -> ConnectionBounds:
        """See `ProgramNetwork.bounds`."""
        limits = self._limits
        return ConnectionBounds(limits.open_max, _REFUSED_PER_MADE * limits.connections_max, limits.bytes_max)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables by which programs find proxy and certificates, and placeholders of secrets."""
        index = self._provisions.package_index
        return {
            **PROXY_VARIABLES,
            **({"PIP_INDEX_URL": index} if index else {}),
            **self._provisions.headers.variables,
        }

    @property
    def roots(self) -> str:
        """See `ProgramNetwork.roots`."""
        own = "" if self._authority is None else self._authority.pem
        return self._provisions.roots + own

    @property
    def use(self) -> NetworkUse:
        """The connections that have ended; it grows while the program runs."""
        return self._ledger.use

    @property
    def notes(self) -> list[str]:
        """What the model should know of all connections together, a sentence each."""
        tried = self.bounds.accepted_max
        if self.use.total < tried:
            return []
        return [f"Network: the program tried {tried} connections, the most of a call; the proxy took no more"]

    async def serve(self, connection: ProgramConnection) -> None:
        """See `ProgramNetwork.serve`."""
        entry = Entry()
        try:
            await ProxiedConnection(connection, entry, self._rules).serve()
        except OSError:
            entry.why = entry.why or "one side broke the connection off"
            raise
        except Exception:
            entry.why = entry.why or "the service failed"
            raise
        except asyncio.CancelledError:
            if not entry.allowed:
                entry.why = entry.why or "the program closed the connection, or ended"
            raise
        finally:
            self._ledger.close(entry)

    async def _server_tls(self, host: str) -> ssl.SSLContext:
        authority = self._authority
        if authority is None:
            raise KeyError(host)
        async with self._making_tls:  # one thread for a call, and once for each of its hosts
            made = authority.made_context(host)
            return made if made is not None else await asyncio.to_thread(authority.context, host)

    def _require_allowed(self, target: Endpoint) -> None:
        if not _is_covered(target, self._allowed):
            raise ConnectionRefusal(f"{target} is not in network.allow of the call ({_listed(self._allowed)})")
        self._made += 1
        if self._made > self._limits.connections_max:
            raise ConnectionRefusal(
                f"the call has made its {self._limits.connections_max} connections, the operator's limit for a call"
            )


def _make_authority(headers: CallHeaders) -> "CallAuthority | None":
    """The authority of a call whose program may reach hosts with secrets."""
    if not headers:
        return None
    from proofbox.service.egress.call_authority import CallAuthority  # noqa: PLC0415 - 30 ms that few services need

    return CallAuthority(headers.names)


def _is_covered(entry: Endpoint, allowed: Sequence[Endpoint]) -> bool:
    return any(each.covers(entry) for each in allowed)


def _listed(endpoints: Sequence[Endpoint]) -> str:
    shown = [str(endpoint) for endpoint in endpoints[:_SHOWN_MAX]]
    more = len(endpoints) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])]) or "none"
