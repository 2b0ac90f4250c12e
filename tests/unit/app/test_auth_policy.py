"""Who may come in by the settings, and what a service that others reach must have before it serves."""

import pytest

from proofbox.service.access.api_keys import ALL_PERMISSIONS, ApiKey
from proofbox.service.access.authenticator import Keyring
from proofbox.service.app.auth_policy import (
    StartRefusedError,
    allowances,
    allowed_hosts,
    is_loopback,
    needs_keys,
    refuse_without_keys,
)
from proofbox.service.app.settings import Settings


class Kept:
    def __init__(self, *keys: ApiKey) -> None:
        self.keys = list(keys)

    async def all(self) -> list[ApiKey]:
        return self.keys

    async def note_use(self, used) -> None: ...


KEY = ApiKey("abcdefghijkm", "a", "t", "p", None, None, ALL_PERMISSIONS, "a" * 64, "2026-01-01T00:00:00.000Z")


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("10.0.0.1", False),
        ("192.168.1.5", False),
        ("203.0.113.9", False),
        ("api.example.com", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("::ffff:127.0.0.1", False),
        ("2130706433", False),
    ],
)
def test_what_listens_beyond_loopback_needs_keys(host, loopback):
    assert is_loopback(host) == loopback
    assert needs_keys(Settings(host=host)) == (not loopback)
    assert needs_keys(Settings(host=host, auth="required"))


async def test_a_service_that_others_reach_does_not_start_without_a_key_and_says_what_to_do():
    open_to_all = Settings(host="0.0.0.0")
    with pytest.raises(StartRefusedError) as refused:
        await refuse_without_keys(open_to_all, Keyring(Kept()))
    assert refused.value.message == (
        "the service would listen at 0.0.0.0, where others reach it, and has no API key: create one with "
        "'proofbox keys create --name <name>', or set PROOFBOX_HOST=127.0.0.1"
    )
    await refuse_without_keys(open_to_all, Keyring(Kept(KEY)))
    await refuse_without_keys(Settings(), Keyring(Kept()))


async def test_keys_that_are_asked_for_everywhere_have_to_be_there_on_loopback_too():
    with pytest.raises(StartRefusedError, match="PROOFBOX_AUTH is required and no API key exists: create one with"):
        await refuse_without_keys(Settings(auth="required"), Keyring(Kept()))


def test_keys_are_off_beyond_loopback_only_behind_a_proxy_that_somebody_has_named():
    with pytest.raises(StartRefusedError, match="PROOFBOX_BEHIND_AUTHENTICATING_PROXY=true if a proxy in front"):
        needs_keys(Settings(host="0.0.0.0", auth="off"))
    assert not needs_keys(Settings(host="0.0.0.0", auth="off", behind_authenticating_proxy=True))
    assert not needs_keys(Settings(auth="off"))
    assert needs_keys(Settings(host="0.0.0.0", behind_authenticating_proxy=True)), "a proxy alone turns nothing off"


def test_names_are_looked_at_only_where_no_key_and_no_proxy_keeps_web_pages_out():
    assert allowed_hosts(Settings()) == {"127.0.0.1", "localhost"}
    assert allowed_hosts(Settings(allowed_hosts=("Box.local",))) == {"127.0.0.1", "localhost", "box.local"}
    assert allowed_hosts(Settings(auth="required")) is None
    assert allowed_hosts(Settings(host="0.0.0.0")) is None
    assert allowed_hosts(Settings(auth="off", behind_authenticating_proxy=True)) is None


@pytest.mark.parametrize(("places", "share"), [(1, 1), (2, 1), (4, 3), (16, 12)])
def test_a_key_leaves_places_to_others_unless_it_is_told_otherwise(places, share):
    assert allowances(Settings(running_max=places)).running_calls == share
    assert allowances(Settings(running_max=places, key_running_calls=0)).running_calls == 0
