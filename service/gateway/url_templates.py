"""Templates of URLs: scheme, host and port are literal, so no input chooses where a request goes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proofbox.service.gateway.templates import EnvValue, Part, TemplateError, has_input, parse_template

_ORIGIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[\w.-]+|\[[0-9A-Fa-f:.]+\])(?P<port>:[0-9]{1,5})?", re.IGNORECASE
)
_ENV_ORIGIN = re.compile(r"(?P<scheme>https?)://", re.IGNORECASE)
_PORT = re.compile(r":[0-9]{1,5}")
_REFUSED = re.compile(r"[\x00-\x20\x7f-\xa0\\#]")
_PORT_MAX = 65_535
_LITERAL_HOST = "the host and the / after it are literal: http(s)://host/…, or http(s)://${env.X}/… as a whole"


@dataclass(frozen=True, slots=True)
class UrlParts:
    """A parsed URL template.

    Attributes:
        scheme: ``http`` or ``https``.
        host: the literal host in lower case, or the secret that is the host.
        port: ``:8080``, or empty.
        path: what is between the origin and ``?``; begins with ``/`` or is empty.
        query: what is behind ``?``; None if there is no ``?``.
    """

    scheme: str
    host: str | EnvValue
    port: str
    path: tuple[Part, ...]
    query: tuple[Part, ...] | None

    @property
    def has_input(self) -> bool:
        """Whether path or query take a value of the input."""
        return has_input(self.path) or has_input(self.query or ())

    @property
    def origin(self) -> str:
        """Scheme, host and port for a message or log: a host that is a secret stands there by its name."""
        host = self.host if isinstance(self.host, str) else f"${{env.{self.host.name}}}"
        return f"{self.scheme}://{host}{self.port}"


def parse_url(text: str) -> UrlParts:
    """Parse the template of an absolute URL.

    Raises:
        TemplateError: it is not one, or its host is not literal.
    """
    parts = parse_template(text)
    if not parts or not isinstance(parts[0], str):
        raise TemplateError(f"not an absolute http or https URL; {_LITERAL_HOST}")
    for part in parts:
        if isinstance(part, str) and (found := _REFUSED.search(part)):
            what = "a fragment, which is never sent" if found[0] == "#" else f"the character U+{ord(found[0]):04X}"
            raise TemplateError(f"the URL has {what}; leave it out or percent-encode it")
    scheme, host, port, rest = _split_origin(parts)
    if port and int(port[1:]) not in range(1, _PORT_MAX + 1):
        raise TemplateError(f"the port {port[1:]} does not exist (1 to {_PORT_MAX})")
    path, query = _split_query(rest)
    return UrlParts(scheme, host, port, path, query)


def _split_origin(parts: Sequence[Part]) -> tuple[str, str | EnvValue, str, list[Part]]:
    first = parts[0]
    following = parts[1] if len(parts) > 1 else None
    if isinstance(first, str) and (found := _ENV_ORIGIN.fullmatch(first)) and isinstance(following, EnvValue):
        host: str | EnvValue = following
        scheme, port, rest = found["scheme"], "", list(parts[2:])
        if rest and isinstance(rest[0], str):
            if port_found := _PORT.match(rest[0]):
                port = port_found[0]
            rest[0] = rest[0][len(port) :]
    elif isinstance(first, str) and (found := _ORIGIN.match(first)):
        scheme, host, port = found["scheme"], found["host"].lower(), found["port"] or ""
        rest = [first[found.end() :], *parts[1:]]
    else:
        raise TemplateError(f"not an absolute http or https URL; {_LITERAL_HOST}")
    rest = [part for part in rest if part != ""]
    if rest and not (isinstance(rest[0], str) and rest[0][0] in "/?"):
        raise TemplateError(_LITERAL_HOST)
    return scheme.lower(), host, port, rest


def _split_query(parts: Sequence[Part]) -> tuple[tuple[Part, ...], tuple[Part, ...] | None]:
    for index, part in enumerate(parts):
        if isinstance(part, str) and "?" in part:
            before, _, after = part.partition("?")
            path = (*parts[:index], before) if before else tuple(parts[:index])
            return path, (after, *parts[index + 1 :]) if after else tuple(parts[index + 1 :])
    return tuple(parts), None
