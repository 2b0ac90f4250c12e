"""Headers with secrets that the service sets for hosts, in place of what the program sends.

The program knows the name of a variable and a placeholder; the secret is in a request to its host only.
"""

import contextlib
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from proofbox.contracts.network import Endpoint

SECRET_CHARS_MIN = 8
_SECRET_CHARS_MAX = 4 * 1024
_VISIBLE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OF_PROXY = frozenset(
    {
        *("connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect", "host"),
        *("content-length", "accept-encoding", "content-encoding", "content-type", "range"),
    }
)
_ANY = "*"
_SCHEMES = frozenset({"basic", "bearer", "token"})


class HeaderRefusedError(ValueError):
    """A header that cannot be set; the message has the reason, and not the secret."""


@dataclass(frozen=True, slots=True)
class HostHeader:
    """A header that the service sets in requests to some hosts.

    Attributes:
        variable: the environment variable of programs that stands for the secret.
        hosts: the hosts and ports, exact names.
        name: the name of the header.
        secret: the secret.
        prefix: what stands before it in the value, such as ``Bearer`` and a space.
        projects: whose calls get it: tenant and project, either of which may be ``*``.

    Raises:
        HeaderRefusedError: it cannot be set.
    """

    variable: str
    hosts: tuple[Endpoint, ...]
    name: str
    secret: str = field(repr=False)
    prefix: str = ""
    projects: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        name = self.name.lower()
        if not _TOKEN.fullmatch(name) or name in _OF_PROXY or name.startswith("proxy-"):
            raise HeaderRefusedError(f"{self.variable}: {self.name!a} is no header that can be set")
        if not SECRET_CHARS_MIN <= len(self.secret) <= _SECRET_CHARS_MAX:
            raise HeaderRefusedError(
                f"{self.variable}: the secret has {len(self.secret)} characters; it needs {SECRET_CHARS_MIN} to "
                f"{_SECRET_CHARS_MAX}"
            )
        if not _VISIBLE.fullmatch(self.secret) or (self.prefix and not _VISIBLE.fullmatch(self.prefix.rstrip(" "))):
            raise HeaderRefusedError(
                f"{self.variable}: the secret or its prefix has a space at an end, or a character that no header "
                "may have"
            )
        for host in self.hosts:
            if host.is_below or host.is_address:
                raise HeaderRefusedError(f"{self.variable}: {host} is not one host by its name; name it exactly")

    @property
    def header(self) -> tuple[bytes, bytes]:
        """Name and value."""
        return self.name.encode(), f"{self.prefix}{self.secret}".encode()

    @property
    def placeholder(self) -> str:
        """What programs see in place of the secret."""
        return f"placeholder-of-{self.variable}"

    @property
    def forms(self) -> Iterator[bytes]:
        """The spellings in which a response may repeat the secret, or a part of it that is a secret itself."""
        for part in {self.secret.encode(), *self._credentials()}:
            yield from _spellings(part)

    def _credentials(self) -> Iterator[bytes]:
        """What follows the scheme; user and password of ``Basic``, together and alone."""
        scheme, _, rest = f"{self.prefix}{self.secret}".partition(" ")
        if scheme.lower() not in _SCHEMES:
            return
        parts = [rest.strip().encode()]
        if scheme.lower() == "basic":
            with contextlib.suppress(ValueError):
                decoded = b64decode(parts[0] + b"=" * (-len(parts[0]) % 4), validate=True)
                parts += [decoded, *decoded.split(b":", 1)]
        yield from (part for part in parts if len(part) >= SECRET_CHARS_MIN)

    def is_for(self, tenant: str, project: str) -> bool:
        """Whether calls of a project get it."""
        return any(of in (_ANY, tenant) and within in (_ANY, project) for of, within in self.projects)

    def meets(self, other: "HostHeader") -> bool:
        """Whether one request could get both, and they differ in the value only."""
        return (
            self.name.lower() == other.name.lower()
            and not set(self.hosts).isdisjoint(other.hosts)
            and any(
                (a == x or _ANY in (a, x)) and (b == y or _ANY in (b, y))
                for a, b in self.projects
                for x, y in other.projects
            )
        )


def _spellings(raw: bytes) -> Iterator[bytes]:
    """As it is, in an address, in JSON, and in base64."""
    yield raw
    yield quote(raw, safe="").encode()
    text = raw.decode("utf-8", "surrogateescape")
    yield json.dumps(text)[1:-1].encode()
    yield json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape")
    # Base64 within a longer text: what only the secret decides about, after 0, 1 or 2 other bytes.
    for before, start in ((0, 0), (1, 2), (2, 3)):
        certain = b64encode(b"\0" * before + raw)[start : (before + len(raw)) * 8 // 6]
        if len(certain) >= SECRET_CHARS_MIN:
            yield certain
            yield certain.replace(b"+", b"-").replace(b"/", b"_")


class HostHeaders:
    """All headers of the operator.

    Args:
        headers: the headers.

    Raises:
        HeaderRefusedError: a request could get two values of one header.
    """

    def __init__(self, headers: Sequence[HostHeader] = ()) -> None:
        self._headers = tuple(headers)
        for index, one in enumerate(self._headers):
            for other in self._headers[:index]:
                if one.meets(other):
                    raise HeaderRefusedError(
                        f"{other.variable} and {one.variable} set the header {one.name} of the same host for the "
                        "same project; remove one of them"
                    )

    def of_call(self, tenant: str, project: str, allowed: Sequence[Endpoint]) -> "CallHeaders":
        """The headers for the hosts of one call."""
        found: dict[Endpoint, list[HostHeader]] = {}
        for header in self._headers:
            if header.is_for(tenant, project):
                for host in header.hosts:
                    if any(entry.covers(host) for entry in allowed):
                        found.setdefault(host, []).append(header)
        return CallHeaders({host: tuple(headers) for host, headers in found.items()})

    def variables_of(self, tenant: str, project: str, entry: Endpoint) -> list[str]:
        """The variables that stand for secrets of an entry of an allow-list; sorted."""
        return sorted(self.of_call(tenant, project, [entry]).variables)


class CallHeaders:
    """The headers that requests of one call get.

    Args:
        of_hosts: by host and port.
    """

    def __init__(self, of_hosts: dict[Endpoint, tuple[HostHeader, ...]] | None = None) -> None:
        self._of_hosts = of_hosts or {}

    def __bool__(self) -> bool:
        return bool(self._of_hosts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the hosts, sorted."""
        return tuple(sorted({host.host for host in self._of_hosts}))

    @property
    def variables(self) -> dict[str, str]:
        """The placeholders, by the variables of the program."""
        return {each.variable: each.placeholder for headers in self._of_hosts.values() for each in headers}

    def of(self, target: Endpoint) -> tuple[HostHeader, ...]:
        """The headers for a host; none if its TLS passes untouched."""
        return self._of_hosts.get(target, ())
