"""The removal of secrets from whatever comes back from elsewhere."""

import base64
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, quote_plus

REDACTED = "[redacted]"
# Of a secret that follows 0, 1 or 2 other bytes: the first character of its base64 that only it decides about.
_BASE64_STARTS = ((0, 0), (1, 2), (2, 3))
_PART_CHARACTERS_MIN = 8


class Redactor:
    """Replaces secrets by ``[redacted]``, as they are and in the forms that responses repeat them in.

    The forms are base64 (both alphabets, also within a longer text), percent-encoding and JSON escapes.

    Args:
        secrets: the values that were put into a request.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # The longest first: a form may contain a shorter one.
        ordered = sorted(forms, key=len, reverse=True)
        self._forms = [form.lower() for form in ordered]
        self._pattern = re.compile("|".join(map(re.escape, ordered)), re.IGNORECASE) if ordered else None
        self._bytes = (
            re.compile(b"|".join(re.escape(form.encode()) for form in ordered), re.IGNORECASE) if ordered else None
        )

    @property
    def characters_max(self) -> int:
        """The length of the longest form of a secret, in characters; 0 without secrets."""
        return max(map(len, self._forms), default=0)

    def drop_begun(self, text: str) -> str:
        """A text that was cut, without the beginning of a secret at its end."""
        lowered = text.lower()
        begun = 0
        for form in self._forms:
            for size in range(min(len(form), len(lowered)), begun, -1):
                if lowered.endswith(form[:size]):
                    begun = size
                    break
        return text[: len(text) - begun]

    def redact_text(self, text: str) -> str:
        """A text without the secrets."""
        return text if self._pattern is None else self._pattern.sub(REDACTED, text)

    def redact_bytes(self, content: bytes) -> bytes:
        """A body without the secrets."""
        if self._bytes is None:
            return content
        # The pattern takes 0.1 s per MB, during which no other thread runs; most bodies have no secret.
        lowered = content.lower()
        if not any(form.encode() in lowered for form in self._forms):
            return content
        return self._bytes.sub(REDACTED.encode(), content)

    def redact_json(self, value: Any) -> Any:
        """A JSON value without the secrets in keys, texts and numbers."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, dict):
            return {self.redact_text(key): self.redact_json(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.redact_json(each) for each in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = json.dumps(value)
            return REDACTED if self._pattern.search(text) else value
        return value


def _forms(secret: str) -> set[str]:
    """The spellings of a secret; letters are compared without their case."""
    forms = {secret, quote(secret, safe=""), quote(secret), quote_plus(secret)}
    forms |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    for raw in {secret.encode(), secret.encode("latin-1", "ignore")}:
        for before, start in _BASE64_STARTS:
            encoded = base64.b64encode(b"\0" * before + raw).decode()
            certain = encoded[start : (before + len(raw)) * 8 // 6]
            if len(certain) >= _PART_CHARACTERS_MIN:
                forms |= {certain, certain.replace("+", "-").replace("/", "_")}
    return forms
