"""Signatures of webhooks, checked by the library of Standard Webhooks; derived secrets; callback tokens."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from proofbox.service.gateway.waits.webhook_signing import (
    CallbackTokens,
    SecretGeneration,
    SigningSecrets,
    parse_secret,
    sign_webhook,
)
from proofbox.service.identity import Principal

PRINCIPAL = Principal("acme", "books", "registered", "ann")
BODY = '{"type":"tool.call","data":{"tool":"grüße"}}'.encode()


class Generations:
    """The generations of one agent, in memory."""

    def __init__(self, number=1, rotated=None):
        self.at = SecretGeneration(number, rotated)

    async def generation(self, _principal, _agent_id):
        return self.at

    async def rotate(self, _principal, _agent_id):
        self.at = SecretGeneration(self.at.number + 1, _time(datetime.now(UTC)))
        return self.at


def _time(moment):
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def secrets_of(generations, key=b"k" * 32):
    return SigningSecrets(lambda: key, generations)


def signed(keys, body=BODY):
    return dict(sign_webhook(keys, "msg_1", int(time.time()), body))


async def test_the_library_verifies_a_signature_over_the_exact_bytes():
    secrets = secrets_of(Generations())
    shown = await secrets.show(PRINCIPAL, "shop")
    headers = signed(await secrets.keys_of(PRINCIPAL, "shop"))
    assert Webhook(shown.secret).verify(BODY.decode(), headers)["type"] == "tool.call"
    with pytest.raises(WebhookVerificationError):
        Webhook(shown.secret).verify(BODY.decode().replace(":", ": "), headers)


async def test_both_secrets_sign_after_a_rotation():
    secrets = secrets_of(Generations())
    before = await secrets.show(PRINCIPAL, "shop")
    after = await secrets.show(PRINCIPAL, "shop", rotate=True)
    headers = signed(await secrets.keys_of(PRINCIPAL, "shop"))
    assert before.secret != after.secret
    assert (before.previous_until, after.previous_until is None) == (None, False)
    for secret in (before.secret, after.secret):
        assert Webhook(secret).verify(BODY.decode(), headers)


async def test_the_previous_secret_ends_after_a_day():
    rotated = _time(datetime.now(UTC) - timedelta(hours=24, seconds=1))
    secrets = secrets_of(Generations(2, rotated))
    assert len(await secrets.keys_of(PRINCIPAL, "shop")) == 1
    assert (await secrets.show(PRINCIPAL, "shop")).previous_until is None


async def test_each_agent_and_project_has_a_secret_of_its_own():
    secrets = secrets_of(Generations())
    other_project = Principal("acme", "bookss", "registered", "ann")
    moved_border = Principal("acm", "ebooks", "registered", "ann")
    keys = [
        await secrets.keys_of(PRINCIPAL, "shop"),
        await secrets.keys_of(PRINCIPAL, "shop2"),
        await secrets.keys_of(other_project, "shop"),
        await secrets.keys_of(moved_border, "shop"),
        await secrets_of(Generations(), b"j" * 32).keys_of(PRINCIPAL, "shop"),
    ]
    assert len({key for [key] in keys}) == len(keys)


@pytest.mark.parametrize("secret", ["abc", "whsec_???", "whsec_c2hvcnQ=", "whsec_" + "QUFB" * 40])
def test_a_secret_that_is_none_is_refused_without_its_text(secret):
    with pytest.raises(ValueError, match="the secret") as refused:
        parse_secret(secret)
    assert secret not in str(refused.value)


def test_a_token_answers_its_own_call_only():
    tokens, others = CallbackTokens(lambda: b"k" * 32), CallbackTokens(lambda: b"j" * 32)
    wait_id = "wait_" + "a" * 24
    token = tokens.issue(wait_id, "call-1")
    assert tokens.verify(token, "call-1") == wait_id
    assert tokens.verify(token, "call-2") is None
    assert tokens.verify(others.issue(wait_id, "call-1"), "call-1") is None
    assert tokens.verify(token.replace("aaaa", "aaab", 1), "call-1") is None
    assert tokens.verify(f"{token}0", "call-1") is None
