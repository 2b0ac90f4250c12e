"""Secrets are removed from whatever comes back, in each form that a response may repeat them in."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest

from proofbox.service.gateway.redaction import REDACTED, Redactor

SECRETS = [
    "sk-live-0123456789",
    'quote"and\\back/slash+é',
    "äöüß-secret-value",
    "12345678901",
    "two words/and a slash",
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "spell",
    [
        str,
        lambda secret: quote(secret, safe=""),
        quote_plus,
        lambda secret: quote(secret, safe="").lower(),
        lambda secret: json.dumps(secret)[1:-1],
        lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    ],
)
def test_each_spelling_is_removed(secret, spell):
    redactor = Redactor([secret])
    for text in (spell(secret), f"before {spell(secret)} after"):
        assert redactor.redact_text(text) == text.replace(spell(secret), REDACTED)
        assert redactor.redact_bytes(text.encode()) == text.replace(spell(secret), REDACTED).encode()


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "user:"])
@pytest.mark.parametrize("after", ["", "z", "zy"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_is_removed_wherever_the_secret_stands_in_it(secret, before, after, encode):
    encoded = encode(f"{before}{secret}{after}".encode()).decode()
    redacted = Redactor([secret]).redact_text(encoded)
    assert REDACTED in redacted
    assert len(redacted.replace(REDACTED, "")) <= len(encode(f"{before}{after}".encode())) + 6


def test_json_values_are_redacted_in_keys_texts_and_numbers():
    value = {"a": ["x 12345678901 y", {"12345678901": 12345678901}], "b": True, "c": None, "d": 1.5}
    assert Redactor(["12345678901"]).redact_json(value) == {
        "a": [f"x {REDACTED} y", {REDACTED: REDACTED}],
        "b": True,
        "c": None,
        "d": 1.5,
    }


def test_without_secrets_nothing_changes():
    value = {"a": ["b"]}
    assert Redactor().redact_json(value) is value
    assert Redactor([]).redact_text("a") == "a"
    assert Redactor([]).redact_bytes(b"a") == b"a"


def test_a_secret_that_contains_another_is_removed_as_a_whole():
    assert Redactor(["secret-one", "secret-one-and-two"]).redact_text("secret-one-and-two") == REDACTED
