"""The first event of the older transport, read before the SDK reads it, which waits for ever after a wrong one."""

import codecs
import io
from urllib.parse import urljoin, urlsplit

from proofbox.contracts.codes import WebCode
from proofbox.service.web.port import WebFailedError

_LINE_CHARS = 64  # of a line that may name an event: longer ones do not


class EndpointEvent:
    """Checks that a stream has one event ``endpoint``, and that it comes first, as its bytes come.

    The parts of events are found as the SDK finds them, so that it never meets another event than was checked here.

    Args:
        url: the address of the stream.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lines = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder("utf-8")("replace"), translate=True)
        self._begun: list[str] = []
        self._event, self._data = "", list[str]()
        self._is_known = False

    def feed(self, piece: bytes) -> None:
        """Reads the next piece of the stream.

        Raises:
            WebFailedError: ``url_not_allowed``: the endpoint has another origin; ``bad_response``: a message comes
                before it, or a second one after it.
        """
        *lines, rest = self._lines.decode(piece).split("\n")
        for line in lines:
            self._take("".join(self._begun) + line)
            self._begun.clear()
        if rest:
            self._begun.append(rest)
            if self._is_known:  # only names of events count, and messages can be long
                self._begun = ["".join(self._begun)[:_LINE_CHARS]]

    def _take(self, line: str) -> None:
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                self._event = value
            elif name == "data" and not self._is_known:
                self._data.append(value)
            return
        event, data = self._event or "message", "\n".join(self._data)
        self._event, self._data = "", []
        host = urlsplit(self._url).hostname
        if event == "endpoint":
            if self._is_known:
                raise WebFailedError(WebCode.BAD_RESPONSE, f"{host} sends a second event endpoint")
            self._is_known = True
            if leads_elsewhere(self._url, data):
                message = f"the event endpoint of {host} names another origin than that of the stream"
                raise WebFailedError(WebCode.URL_NOT_ALLOWED, message)
        elif event == "message" and data and not self._is_known:
            raise WebFailedError(WebCode.BAD_RESPONSE, f"{host} sends a message before its event endpoint")


def leads_elsewhere(url: str, reference: str) -> bool:
    """Whether a reference of a stream leads to another origin, or nowhere; compared as the SDK does."""
    try:
        own, other = urlsplit(url), urlsplit(urljoin(url, reference))
    except ValueError:
        return True
    return (own.scheme, own.netloc) != (other.scheme, other.netloc)
