"""Which calls get a network, and to where: what the operator and the key allow of what a call asks for."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from proofbox.contracts.network import Endpoint, NetworkConnection, NetworkUse
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.sandbox_images.runner_protocol.network import PROXY_PORT
from proofbox.service.calls.validation import refusal
from proofbox.service.egress.ledger import Entry, Ledger, OnConnection
from proofbox.service.egress.proxy import ProxiedConnection, ProxyRules
from proofbox.service.egress.refusal import ConnectionRefusal
from proofbox.service.egress.upstream import Connector, LookupPlaces
from proofbox.service.errors import NetworkNotAllowedError
from proofbox.service.sandbox.network import ConnectionBounds, ProgramConnection

_REFUSED_PER_MADE = 5  # connections that a call may try, for each that it may have
# Names that are resolved at the same time: all calls share the 8 threads of the resolver.
_LOOKUPS_OF_CALL = 2
_LOOKUPS_OF_TENANT = 4
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


class NetworkPolicy:
    """The operator's decisions about the network of programs.

    Args:
        allowed: the hosts and ports that calls may ask for; empty: none.
        limits: what the connections of a call may use.
        connector: makes connections.
        of_caller: returns the hosts that a caller is limited to; None: all that the operator allows.
        package_index: the URL of the index that pip uses; empty: pip's own.
    """

    def __init__(
        self,
        allowed: Sequence[str],
        limits: NetworkLimits,
        connector: Connector,
        of_caller: Callable[[str], Sequence[str] | None],
        package_index: str = "",
    ) -> None:
        self._allowed = [Endpoint.parse(entry) for entry in allowed]
        self._limits = limits
        self._connector = connector
        self._of_caller = of_caller
        self._package_index = package_index
        self._resolving: WeakValueDictionary[str, LookupPlaces] = WeakValueDictionary()
        self.observer: OnConnection | None = None
        """Is called with each connection that has ended."""

    def check(self, request: ToolCallRequest, caller: str) -> None:
        """Refuses a call that asks for more than the operator and its key allow.

        Raises:
            NetworkNotAllowedError: an entry is not allowed; it names the field and the entry.
        """
        if request.network is None:
            return
        own = self._of_caller(caller)
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

    def open(self, request: ToolCallRequest, on_connection: OnConnection, tenant: str = "") -> "CallNetwork | None":
        """The network of a call that was checked; None if it asks for none.

        Args:
            request: the call.
            on_connection: is called with each connection that has ended.
            tenant: whose call it is; the lookups of a tenant leave room for those of others.
        """
        if request.network is None:
            return None
        resolving = self._resolving.setdefault(tenant, LookupPlaces(_LOOKUPS_OF_TENANT))
        observers = [on_connection] if self.observer is None else [on_connection, self.observer]
        return CallNetwork(
            [Endpoint.parse(entry) for entry in request.network.allow],
            self._limits,
            self._connector,
            observers,
            self._package_index,
            resolving,
        )


class CallNetwork:
    """The port `ProgramNetwork` of one call.

    Args:
        allowed: the hosts and ports that its program may connect to.
        limits: what its connections may use.
        connector: makes connections.
        observers: are called with each connection that has ended.
        package_index: the URL of the index that pip uses; empty: pip's own.
        resolving: bounds the names that the calls of its tenant resolve at the same time.
    """

    def __init__(
        self,
        allowed: Sequence[Endpoint],
        limits: NetworkLimits,
        connector: Connector,
        observers: Sequence[Callable[[NetworkConnection], None]],
        package_index: str = "",
        resolving: LookupPlaces | None = None,
    ) -> None:
        self._allowed = allowed
        self._limits = limits
        self._ledger = Ledger(limits.bytes_max, observers)
        self._rules = ProxyRules(
            self._require_allowed, connector, LookupPlaces(_LOOKUPS_OF_CALL, resolving), self._ledger, limits.idle_s
        )
        self._package_index = package_index
        self._made = 0

    @property
    def bounds(self) -> ConnectionBounds:
        """See `ProgramNetwork.bounds`."""
        limits = self._limits
        return ConnectionBounds(limits.open_max, _REFUSED_PER_MADE * limits.connections_max, limits.bytes_max)

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables by which programs find the proxy."""
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        local = "localhost,127.0.0.1,::1"
        found = {**dict.fromkeys(names, proxy), "NO_PROXY": local, "no_proxy": local, "NODE_USE_ENV_PROXY": "1"}
        return {**found, "PIP_INDEX_URL": self._package_index} if self._package_index else found

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

    def _require_allowed(self, target: Endpoint) -> None:
        if not _is_covered(target, self._allowed):
            raise ConnectionRefusal(f"{target} is not in network.allow of the call ({_listed(self._allowed)})")
        self._made += 1
        if self._made > self._limits.connections_max:
            raise ConnectionRefusal(
                f"the call has made its {self._limits.connections_max} connections, the operator's limit for a call"
            )


def _is_covered(entry: Endpoint, allowed: Sequence[Endpoint]) -> bool:
    return any(each.covers(entry) for each in allowed)


def _listed(endpoints: Sequence[Endpoint]) -> str:
    shown = [str(endpoint) for endpoint in endpoints[:_SHOWN_MAX]]
    more = len(endpoints) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])]) or "none"
