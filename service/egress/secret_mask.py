"""Secrets are masked in what a host responds."""

from collections.abc import Collection, Sequence

from proofbox.service.egress.host_headers import HostHeader

_HELD_BYTES_MIN = 1024  # covers usual secrets, so that it shows the length of none
_VISIBLE = bytes(range(0x21, 0x7F))
_IN_LINE = bytes(set(range(256)) - set(b"\r\n"))
_ANY = bytes(range(256))
_Span = tuple[int, int]


class SecretMask:
    """Masks secrets in a response: each byte becomes ``*``, so that no length changes.

    A secret that two pieces share is masked too: the visible characters at the end of a piece wait for the next
    one, up to a line end, a space, or another byte that no secret has. What waits is the same whatever the secret
    is: a program sees where pieces end, and a host may repeat its guesses.

    Args:
        headers: whose secrets.
    """

    def __init__(self, headers: Sequence[HostHeader]) -> None:
        self._forms = {form for header in headers for form in header.forms}
        self._held_max = _held_bytes(self._forms)
        used = set().union(*self._forms)
        self._held = next(held for held in (_VISIBLE, _IN_LINE, _ANY) if used.issubset(held))
        self._waiting = b""
        self._masked = 0  # bytes of what waits, at its beginning, whose secret began before

    def mask(self, text: bytes) -> bytes:
        """A whole text without the secrets."""
        return _cover(text, self._find(text))

    def feed(self, piece: bytes) -> bytes:
        """What can be passed on after the next piece of a body."""
        text = self._waiting + piece
        spans = [(0, self._masked), *self._find(text)]
        tail = text[max(0, len(text) - self._held_max) :]
        passed = len(text) - (len(tail) - len(tail.rstrip(self._held)))
        self._waiting = text[passed:]
        self._masked = max(0, *(end - passed for begin, end in spans if begin <= passed))
        return _cover(text, spans)[:passed]

    def end(self) -> bytes:
        """The rest of a body."""
        rest = _cover(self._waiting, [(0, self._masked), *self._find(self._waiting)])
        self._waiting, self._masked = b"", 0
        return rest

    def _find(self, text: bytes) -> list[_Span]:
        """Where secrets begin and end; they may overlap."""
        spans = []
        for form in self._forms:
            at = text.find(form)
            while at >= 0:
                spans.append((at, at + len(form)))
                at = text.find(form, at + 1)
        return spans


def _held_bytes(forms: Collection[bytes]) -> int:
    """How many bytes may wait: fewer could pass the beginning of a secret on."""
    held = _HELD_BYTES_MIN
    while held < max(map(len, forms), default=0) - 1:
        held *= 2
    return held


def _cover(text: bytes, spans: Sequence[_Span]) -> bytes:
    if not any(end for _, end in spans):
        return text
    covered = bytearray(text)
    for begin, end in spans:
        covered[begin:end] = b"*" * (end - begin)
    return bytes(covered)
