"""Tokens of upload links: only this service makes one, and it opens only what it was made for."""

import base64

import pytest

from proofbox.service.access.quotas import Allowances
from proofbox.service.access_errors import LinkRefusedError
from proofbox.service.artifacts.attachments import UploadTarget
from proofbox.service.artifacts.download_links import LinkKey
from proofbox.service.artifacts.upload_links import UploadLinks
from proofbox.service.errors import UnsafeNameError
from proofbox.service.identity import ConversationKey, Principal

TARGET = UploadTarget(
    ConversationKey(
        Principal("tenant-of-acme", "project-sales", "registered", "user-number-17", "key1"), "conversation-1"
    ),
    "turn_1",
    "sales ü.csv",
    1_000,
    9,
    replaces=3,
    own=Allowances(requests_per_minute=5, stored_bytes=0),
)
LINK_S = 600


class Clock:
    now = 1_000_000.5

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def keys() -> list[LinkKey]:
    return [LinkKey("k1", b"1" * 32)]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def links(keys, clock) -> UploadLinks:
    return UploadLinks(lambda: keys, LINK_S, clock)


def test_a_token_returns_its_target(links):
    checked = links.check(links.make(TARGET))
    assert checked == TARGET
    assert checked.scope.principal.key_id == "key1"


def test_a_token_shows_nobody_whose_it_is(links):
    token = links.make(TARGET)
    opened = base64.urlsafe_b64decode(token.partition(".")[2] + "==")
    # Whole names, of 12 characters at least: shorter ones can stand in random bytes by chance.
    names = (b"tenant-of-acme", b"project-sales", b"user-number-17", b"conversation-1", "sales ü.csv".encode())
    assert [name for name in names if name in opened or name in token.encode()] == []
    assert links.make(TARGET) != token


def test_a_changed_token_is_refused_wherever_it_is_changed(links):
    token = links.make(TARGET)
    accepted = []
    for at, character in enumerate(token):
        for other in {"A", "b", "-", "."} - {character}:
            changed = token[:at] + other + token[at + 1 :]
            try:
                links.check(changed)
            except LinkRefusedError:
                continue
            accepted.append(changed)
    assert accepted == []


@pytest.mark.parametrize(
    "token", ["", ".", "k1.", "k1", "k2.AAAA", "k1." + "A" * 5_000, "k1.ünï", "k1.===", "k1.AAAA\n"]
)
def test_text_that_is_not_a_token_is_refused(links, token):
    with pytest.raises(LinkRefusedError):
        links.check(token)


def test_a_token_works_until_its_time(links, clock):
    token = links.make(TARGET)
    clock.now += LINK_S - 1
    assert links.check(token) == TARGET
    clock.now += 1
    with pytest.raises(LinkRefusedError, match="expired"):
        links.check(token)


def test_a_rotated_key_opens_until_it_is_gone(links, keys):
    token = links.make(TARGET)
    keys.insert(0, LinkKey("k2", b"2" * 32))
    assert links.check(token) == TARGET
    assert links.make(TARGET).startswith("k2.")
    keys.pop()
    with pytest.raises(LinkRefusedError):
        links.check(token)


def test_the_id_of_a_key_does_not_make_another_key_open_it(links, keys):
    token = links.make(TARGET)
    keys[0] = LinkKey("k1", b"3" * 32)
    with pytest.raises(LinkRefusedError):
        links.check(token)


@pytest.mark.parametrize("name", ["a/b.csv", "../x", "", "a\nb", "x" * 300])
def test_no_link_is_made_for_a_name_that_the_store_refuses(links, name):
    with pytest.raises(UnsafeNameError):
        links.make(UploadTarget(TARGET.scope, "turn_1", name, 10))
