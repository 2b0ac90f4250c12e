"""The operator's secrets for hosts of programs: from variables and files, refused with what to do."""

import json

import pytest
from pydantic import ValidationError

from proofbox.contracts.network import Endpoint
from proofbox.service.access.quotas import NO_LIMITS, Quotas
from proofbox.service.app.network import HostSecretRefusedError, build_headers, build_network
from proofbox.service.app.settings import Settings
from proofbox.service.egress.policy import CallerHosts
from proofbox.service.identity import Principal
from tests.support.certificates import make_issuer
from tests.support.program_proxy import Names

ENTRY = {"hosts": ["api.test"], "projects": ["acme/*"], "variable": "MY_KEY", "prefix": "Bearer "}
HOST = Endpoint.parse("api.test:443")


def settings(monkeypatch, entry, **more):
    monkeypatch.setenv("PROOFBOX_SANDBOX_NETWORK_SECRETS", json.dumps({"API_KEY": entry, **more}))
    return Settings()


def header(found):
    return found.of_call("acme", "books", [HOST]).of(HOST)[0].header


def test_a_secret_of_a_variable_becomes_a_header(monkeypatch):
    found = build_headers(settings(monkeypatch, ENTRY), {"MY_KEY": "s3cret-of-a-variable"})
    assert header(found) == (b"Authorization", b"Bearer s3cret-of-a-variable")


def test_a_secret_of_a_file_becomes_a_header(monkeypatch, tmp_path):
    path = tmp_path / "key"
    path.write_text("s3cret-of-a-file\n", encoding="ascii")
    entry = {"hosts": ["api.test"], "projects": ["acme/books"], "file": str(path), "header": "X-Api-Key"}
    assert header(build_headers(settings(monkeypatch, entry), {})) == (b"X-Api-Key", b"s3cret-of-a-file")


@pytest.mark.parametrize(
    ("entry", "variables", "why"),
    [
        (ENTRY, {}, "API_KEY names the variable MY_KEY, which is not set; set it"),
        (ENTRY, {"MY_KEY": "s3crt"}, "has 5 characters"),
        (ENTRY, {"MY_KEY": "s3cret\nInjected: 1"}, "a character that no header may have"),
        ({**ENTRY, "variable": None, "file": "/nowhere/key"}, {}, "/nowhere/key cannot be read"),
        ({**ENTRY, "header": "Host"}, {"MY_KEY": "s3cret-value"}, "no header that can be set"),
    ],
)
def test_a_secret_that_cannot_be_used_is_refused_at_the_start_without_its_value(monkeypatch, entry, variables, why):
    with pytest.raises(HostSecretRefusedError, match=why) as refused:
        build_headers(settings(monkeypatch, entry), variables)
    assert str(refused.value).startswith("PROOFBOX_SANDBOX_NETWORK_SECRETS: ")
    assert "s3c" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("PATH", ENTRY),
        ("LD_PRELOAD", ENTRY),
        ("SSL_CERT_FILE", ENTRY),
        ("HTTPS_PROXY", ENTRY),
        ("A-B", ENTRY),
        ("KEY", {**ENTRY, "hosts": ["*.test"]}),
        ("KEY", {**ENTRY, "hosts": ["192.0.2.1"]}),
        ("KEY", {**ENTRY, "hosts": []}),
        ("KEY", {**ENTRY, "projects": []}),
        ("KEY", {**ENTRY, "projects": ["acme"]}),
        ("KEY", {**ENTRY, "file": "/run/key"}),
        ("KEY", {**ENTRY, "variable": None}),
        ("KEY", {**ENTRY, "value": "s3cret-value"}),
        ("KEY", {"hosts": ["api.test"], "variable": "MY_KEY"}),
    ],
)
def test_an_entry_that_means_nothing_is_refused(monkeypatch, name, entry):
    with pytest.raises(ValidationError) as refused:
        settings(monkeypatch, ENTRY, **{name: entry})
    assert "s3cret" not in str(refused.value)


def test_the_operators_authorities_reach_programs_without_the_key_beside_them(monkeypatch, tmp_path):
    issuer = make_issuer(tmp_path)
    issuer.server_tls("api.test")
    path = tmp_path / "all.pem"
    path.write_bytes(b"# ours\n" + (tmp_path / "server.pem").read_bytes() + issuer.path.read_bytes())
    monkeypatch.setenv("PROOFBOX_SANDBOX_NETWORK_CA_FILE", str(path))
    monkeypatch.setenv("PROOFBOX_SANDBOX_NETWORK", '["api.test"]')
    policy = build_network(
        settings(monkeypatch, ENTRY), CallerHosts(Quotas(NO_LIMITS).network), Names({}), {"MY_KEY": "s3cret-value"}
    )
    roots = policy._provisions.roots
    assert roots.count("BEGIN CERTIFICATE") == 2
    assert "PRIVATE" not in roots
    assert "ours" not in roots
    [host] = policy.list_hosts(Principal("acme", "books", "registered", "ann"))
    assert (host.host, host.variables) == ("api.test:443", ["API_KEY"])
    [host] = policy.list_hosts(Principal("other", "books", "registered", "ann"))
    assert host.variables == []
