"""Secrets are masked in what a host responds."""

from collections.abc import Sequence

from proofbox.service.egress.host_headers import HostHeader


class SecretMask:
    """Masks secrets in a response: each byte becomes ``*``, so that no length changes.

    A secret that two pieces share is masked too: what may be its beginning waits for the next piece.

    Args:
        headers: whose secrets.
    """

    def __init__(self, headers: Sequence[HostHeader]) -> None:
        forms = {form for header in headers for form in header.forms}
        self._forms = sorted(forms, key=len, reverse=True)
        self._waiting = b""

    def mask(self, text: bytes) -> bytes:
        """A whole text without the secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, b"*" * len(form))
        return text

    def feed(self, piece: bytes) -> bytes:
        """What can be passed on after the next piece of a body."""
        text = self.mask(self._waiting + piece)
        begun = self._begun(text[-len(self._forms[0]) :]) if self._forms else 0
        self._waiting = text[len(text) - begun :]
        return text[: len(text) - begun]

    def end(self) -> bytes:
        """The rest of a body."""
        rest, self._waiting = self._waiting, b""
        return rest

    def _begun(self, tail: bytes) -> int:
        """How many bytes at the end may be the beginning of a secret."""
        longest = 0
        for form in self._forms:
            at = tail.find(form[:1], max(0, len(tail) - len(form) + 1))
            while at >= 0 and len(tail) - at > longest:
                if form.startswith(tail[at:]):
                    longest = len(tail) - at
                at = tail.find(form[:1], at + 1)
        return longest
