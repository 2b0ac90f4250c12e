"""Web addresses: the one way that the service reads them, so that what is checked is what is fetched."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal, Self
from urllib.parse import quote, urljoin, urlsplit

import idna

URL_CHARS_MAX = 8_192  # as the wire allows
_DEFAULT_PORTS = {"http": 80, "https": 443}
# Parsers disagree about these characters, and no address needs them.
_REFUSED_CHARACTER = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ud800-\udfff]")
_NUMERIC_LABEL = re.compile(r"\d+|0[xX][0-9A-Fa-f]*")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NAME_CHARS_MAX = 253
_SHOWN_CHARS = 200
# What stands in a path and a query as it is, "%" included: what is escaped stays escaped.
_PATH_SAFE = "/%:@!$&'()*+,;=~"
_QUERY_SAFE = _PATH_SAFE + "?"


class UrlRefusedError(ValueError):
    """An address that no page is fetched from; the message is the reason."""


@dataclass(frozen=True, slots=True)
class WebUrl:
    """An address of the web in its one canonical spelling.

    Attributes:
        scheme: ``http`` or ``https``.
        host: a name in lower-case ASCII without a final dot, or an IP address in its usual spelling.
        port: the TCP port.
        target: the path, and the query if there is one.
    """

    scheme: Literal["http", "https"]
    host: str
    port: int
    target: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads an address as a caller wrote it.

        Lower-case scheme and host, no default port, ``/`` for an empty path, no fragment; the query stays as it
        is: what looks like a tracking parameter can be part of a page's name.

        Raises:
            UrlRefusedError: not http or https, credentials, an odd spelling of a host, characters that have to be
                escaped.
        """
        text = text.strip(" \t\r\n")
        if len(text) > URL_CHARS_MAX or _REFUSED_CHARACTER.search(text):
            raise UrlRefusedError(
                f"the address is longer than {URL_CHARS_MAX} characters or holds a space, a backslash or a control "
                "character; percent-encode it"
            )
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as exc:
            raise UrlRefusedError(f"'{text[:_SHOWN_CHARS]}' cannot be read as an address") from exc
        scheme = parts.scheme.lower()
        if scheme not in _DEFAULT_PORTS:
            raise UrlRefusedError(f"'{text[:_SHOWN_CHARS]}' is no http or https address")
        if "@" in parts.netloc:
            raise UrlRefusedError("the address holds a user name or a password; give it without")
        host = _host(parts.netloc, parts.hostname)
        path = quote(parts.path, safe=_PATH_SAFE) or "/"
        query = f"?{quote(parts.query, safe=_QUERY_SAFE)}" if parts.query else ""
        known: Literal["http", "https"] = "https" if scheme == "https" else "http"
        return cls(known, host, _DEFAULT_PORTS[scheme] if port is None else port, path + query)

    def joined(self, location: str) -> "WebUrl":
        """The address that a redirect from here leads to.

        Raises:
            UrlRefusedError: no page is fetched from there.
        """
        if _REFUSED_CHARACTER.search(location):
            raise UrlRefusedError("the redirect's address holds a space, a backslash or a control character")
        try:
            return WebUrl.parse(urljoin(str(self), location))
        except UrlRefusedError:
            raise
        except ValueError as exc:
            raise UrlRefusedError("the redirect's address cannot be read") from exc

    @property
    def authority(self) -> str:
        """The host, in brackets if it is an IPv6 address, and the port unless it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def _host(netloc: str, hostname: str | None) -> str:
    shown = netloc[:_SHOWN_CHARS]
    if not hostname or "%" in hostname:
        raise UrlRefusedError(f"the address has no host that can be read: '{shown}'")
    if netloc.startswith("["):
        try:
            return str(ipaddress.IPv6Address(hostname))
        except ValueError as exc:
            raise UrlRefusedError(f"'{shown}' is no IPv6 address") from exc
    try:
        # Maps full-width digits, ideographic dots and the like to what they stand for, as browsers do.
        name = hostname.lower() if hostname.isascii() else idna.encode(hostname, uts46=True).decode("ascii").lower()
    except UnicodeError as exc:
        raise UrlRefusedError(f"'{shown}' is no host name") from exc
    name = name.removesuffix(".")
    labels = name.split(".")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        # 2130706433, 0x7f.1, 0177.0.0.1 and 127.1 are addresses to some programs and names to others.
        try:
            return str(ipaddress.IPv4Address(name))
        except ValueError as exc:
            raise UrlRefusedError(f"'{shown}' is a number that is no usual IPv4 address; write a.b.c.d") from exc
    if len(name) > _NAME_CHARS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        raise UrlRefusedError(f"'{shown}' is no host name")
    return name
