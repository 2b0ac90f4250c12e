"""Links to NATS servers with TLS and each kind of credentials; what refuses one says which setting is wrong."""

import asyncio
import json
import logging
import re

import pytest

from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.nats_settings import NatsSettings
from proofbox.service.dispatch.streams import NatsRefusedError
from tests.support.certificates import make_issuer
from tests.support.dispatching import Place, opened_process, submit
from tests.support.nats_broker import (
    PASSWORD,
    TOKEN,
    USER,
    Broker,
    make_operator,
    make_seed,
    public_key,
    started,
    tls_config,
    write_pair,
)

OF_USER = {"authorization": {"user": USER, "password": PASSWORD}}


@pytest.fixture
def issuer(tmp_path):
    folder = tmp_path / "authority"
    folder.mkdir()
    return make_issuer(folder)


@pytest.fixture
def other_issuer(tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    return make_issuer(folder)


def settings(url, **more):
    return NatsSettings((url,), "test", "test", 3.0, **more)


async def use(found):
    """Connects, and puts a call into the queue."""
    link = NatsLink(found)
    await link.open()
    try:
        await link.queue(1)
        await link.check()
    finally:
        await link.close()


async def refused(found):
    """The reason for which a link is refused."""
    with pytest.raises(NatsRefusedError) as caught:
        await use(found)
    return str(caught.value)


async def with_each_kind(folder):
    """The configuration of a server for each kind of credentials, and the settings for it."""
    seed = make_seed()
    (folder / "user.nk").write_text(seed + "\n")
    operator, creds = make_operator()
    (folder / "user.creds").write_text(creds)
    return {
        "password": (OF_USER, {"user": USER, "password": PASSWORD}),
        "token": ({"authorization": {"token": TOKEN}}, {"token": TOKEN}),
        "nkey": ({"authorization": {"users": [{"nkey": public_key(seed)}]}}, {"nkey_file": folder / "user.nk"}),
        "creds": (operator, {"credentials_file": folder / "user.creds"}),
    }


@pytest.mark.parametrize("kind", ["password", "token", "nkey", "creds"])
async def test_each_kind_of_credentials_works_over_tls(tmp_path, issuer, kind):
    config, given = (await with_each_kind(tmp_path))[kind]
    async with started(Broker(tmp_path / "nats", {**config, **tls_config(tmp_path, issuer)})) as broker:
        await use(settings(broker.tls_url, ca_file=issuer.path, **given))


@pytest.mark.parametrize("kind", ["password", "token", "nkey", "creds"])
async def test_wrong_credentials_are_refused_at_once_by_the_name_of_their_setting(tmp_path, caplog, kind):
    caplog.set_level(logging.DEBUG)
    config, _ = (await with_each_kind(tmp_path))[kind]
    seed, (_, creds) = make_seed(), make_operator()
    (tmp_path / "other.nk").write_text(seed)
    (tmp_path / "other.creds").write_text(creds)
    given, named = {
        "password": ({"user": USER, "password": "a-wrong-one"}, r"nats_user \(proofbox\) and nats_password"),
        "token": ({"token": "a-wrong-one"}, "nats_token"),
        "nkey": ({"nkey_file": tmp_path / "other.nk"}, "nats_nkey_file"),
        "creds": ({"credentials_file": tmp_path / "other.creds"}, "nats_credentials_file"),
    }[kind]
    async with started(Broker(tmp_path / "nats", config)) as broker:
        found = settings(broker.url, **given)
        why = await refused(found)
        assert "none" not in why
        assert why.startswith(named.replace("\\", "")), why
        assert "the NATS servers refuse them" in why
        nothing = await refused(settings(broker.url))
        assert nothing.startswith("nats_user, nats_token or a file: the NATS servers refuse them")
    secrets = "a-wrong-one", seed, creds.splitlines()[1], creds.splitlines()[5]
    told = caplog.text + why + repr(found)
    assert [secret for secret in secrets if secret in told] == []


async def test_a_server_of_another_authority_is_refused(tmp_path, issuer, other_issuer):
    async with started(Broker(tmp_path / "nats", tls_config(tmp_path, issuer))) as broker:
        why = await refused(settings(broker.tls_url, ca_file=other_issuer.path))
        assert why.startswith("nats_ca_file: the certificate of a NATS server is not signed by")
        assert str(other_issuer.path) in why
        assert "PROOFBOX_NATS_CA_FILE" in await refused(settings(broker.tls_url))
        assert "PROOFBOX_NATS_CA_FILE" in await refused(settings(broker.url))  # the server requires TLS


async def test_a_server_with_the_certificate_of_another_name_is_refused(tmp_path, issuer):
    config = tls_config(tmp_path, issuer, name="nats.example.org")
    async with started(Broker(tmp_path / "nats", config)) as broker:
        why = await refused(settings(broker.tls_url, ca_file=issuer.path))
        assert why.startswith("nats_urls: the certificate of a NATS server is for another name")


async def test_a_client_certificate_is_shown_and_one_that_is_not_trusted_is_refused(tmp_path, issuer, other_issuer):
    config = tls_config(tmp_path, issuer, verify=True)
    own, others = write_pair(tmp_path, issuer, "client"), write_pair(tmp_path, other_issuer, "stranger")
    async with started(Broker(tmp_path / "nats", config)) as broker:
        await use(settings(broker.tls_url, ca_file=issuer.path, certificate=own))
        for certificate in (others, None):
            why = await refused(settings(broker.tls_url, ca_file=issuer.path, certificate=certificate))
            assert why.startswith("nats_certificate_file: a NATS server refuses the certificate"), why


@pytest.mark.parametrize("how", ["url", "file"])
async def test_credentials_are_never_sent_without_tls_that_was_asked_for(issuer, how):
    got = bytearray()

    async def serve(reader, writer):
        writer.write(b'INFO {"server_id":"x","version":"2.10.0","auth_required":true,"max_payload":1000}\r\n')
        got.extend(await reader.read(-1))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        url = f"tls://localhost:{port}" if how == "url" else f"nats://localhost:{port}"
        ca_file = None if how == "url" else issuer.path
        why = await refused(settings(url, user=USER, password=PASSWORD, ca_file=ca_file))
    assert why.startswith("nats_urls: a NATS server offers a link without TLS")
    assert got == b""


@pytest.mark.parametrize(
    ("setting", "content", "expected"),
    [
        ("credentials_file", None, "cannot be read"),
        ("credentials_file", "no credentials", "is not a .creds file"),
        (
            "credentials_file",
            "--BEGIN NATS USER JWT--\na\n--BEGIN USER NKEY SEED--\nSU1\n",
            "NKey seed",
        ),
        ("nkey_file", None, "cannot be read"),
        ("nkey_file", "SUÄ", "has no NKey seed"),
        ("ca_file", None, "cannot be read"),
        ("ca_file", "no certificate", "has no certificate in PEM"),
    ],
)
async def test_files_that_cannot_be_used_are_named(tmp_path, setting, content, expected):
    file = tmp_path / "given"
    if content is not None:
        file.write_text(content)
    why = await refused(settings("nats://127.0.0.1:1", **{setting: file}))
    assert why.startswith(f"nats_{setting}: {file} ")
    assert expected in why
    assert "SU1" not in why


async def test_an_address_that_no_client_can_try_is_refused_and_not_waited_for():
    why = await refused(settings("nats://127.0.0.1:port"))
    assert why.startswith("nats_urls: nats://127.0.0.1:port cannot be used (")


async def test_a_certificate_and_the_key_of_another_are_named(tmp_path, issuer):
    one, other = write_pair(tmp_path, issuer, "one"), write_pair(tmp_path, issuer, "other")
    why = await refused(settings("nats://127.0.0.1:1", certificate=(one[0], other[1])))
    assert why.startswith(f"nats_certificate_file: {one[0]} and the key in {other[1]}")


async def test_a_process_whose_user_is_refused_later_says_why_and_is_back_with_its_user(
    tmp_path, postgres_url, caplog
):
    async with started(Broker(tmp_path / "nats", OF_USER)) as broker:
        nats = {"nats_urls": broker.url, "nats_user": USER, "nats_password": PASSWORD}
        place = Place(tmp_path, postgres_url, nats)
        async with opened_process(place, "api") as api, opened_process(place, "worker"):
            assert await api.dispatching.find_away() == {}
            broker.reload({"authorization": {"user": USER, "password": "changed"}})
            link = api.dispatching.link
            while link.why_down is None:  # noqa: ASYNC110 - of a server
                await asyncio.sleep(0.01)
            why = r"^nats_user \(proofbox\) and nats_password: the NATS servers refuse them.* wait$"
            assert re.match(why, (await api.dispatching.find_away())["nats"])
            ticket = await submit(api.calls)
            broker.reload(OF_USER)
            assert json.loads((await ticket.answer()).body)["report"] == "ran call-1"
            assert link.why_down is None
            assert await api.dispatching.find_away() == {}
    assert PASSWORD not in caplog.text
