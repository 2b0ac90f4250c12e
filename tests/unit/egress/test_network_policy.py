"""What a call may ask for, within the lists of the operator and of its key."""

import pytest

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.sandbox_images.runner_protocol.network import CA_BUNDLE, PROXY_PORT
from proofbox.service.access.quotas import NO_LIMITS, Allowances, Quotas
from proofbox.service.egress.policy import CallerHosts, NetworkPolicy, Provisions
from proofbox.service.egress.upstream import Connector
from proofbox.service.errors import NetworkNotAllowedError
from proofbox.service.identity import Principal
from tests.support.program_proxy import LIMITS, Names

OPERATOR = ("pypi.org:443", "*.example.com:443", "192.0.2.1:80")


def policy(of_caller=lambda _caller: None, allowed=OPERATOR, index=""):
    return NetworkPolicy(allowed, LIMITS, Connector(Names({}), ()), CallerHosts(of_caller), Provisions(index))


def request(*allow):
    fields = {"tool_id": "t", "tool_call_id": "c", "conversation_id": "v", "params": {}}
    return ToolCallRequest.model_validate({**fields, **({"network": {"allow": list(allow)}} if allow else {})})


def test_a_call_that_asks_for_nothing_gets_nothing():
    policy().check(request(), "key 1")
    assert policy().open(request(), lambda _: None) is None


@pytest.mark.parametrize("entry", ["pypi.org", "a.example.com:443", "*.b.example.com:443", "192.0.2.1:80"])
def test_what_the_operator_allows_is_given(entry):
    policy().check(request(entry), "key 1")
    assert policy().open(request(entry), lambda _: None) is not None


@pytest.mark.parametrize("entry", ["pypi.org:80", "example.com:443", "*.com:443", "192.0.2.2:80", "[::1]:443"])
def test_more_than_the_operator_allows_is_refused_by_field_and_entry(entry):
    with pytest.raises(NetworkNotAllowedError) as refused:
        policy().check(request("pypi.org", entry), "key 1")
    [error] = refused.value.errors
    assert error.field == "network.allow[1]"
    assert error.message.startswith(f"{entry} is not allowed by the operator (pypi.org:443, ")
    assert "leave the entry out" in error.message


def test_without_a_list_of_the_operator_every_request_is_refused():
    with pytest.raises(NetworkNotAllowedError, match=r"not allowed by the operator \(none\)"):
        policy(allowed=()).check(request("pypi.org"), "key 1")


def test_a_key_narrows_the_list_of_the_operator_and_never_widens_it():
    quotas = Quotas(NO_LIMITS)
    quotas.meter("key 1", Allowances(network=("pypi.org:443", "evil.test:443")))
    quotas.meter("key 2", Allowances(network=()))
    quotas.meter("key 3", Allowances())
    found = policy(quotas.network)
    found.check(request("pypi.org"), "key 1")
    for caller, entry, message in (
        ("key 1", "a.example.com", "for this API key"),
        ("key 1", "evil.test", "by the operator"),
        ("key 2", "pypi.org", r"for this API key \(none\)"),
    ):
        with pytest.raises(NetworkNotAllowedError, match=message):
            found.check(request(entry), caller)
    found.check(request("a.example.com"), "key 3")
    found.check(request("a.example.com"), "tenant acme")


def test_a_key_whose_limits_are_not_known_has_no_network():
    with pytest.raises(NetworkNotAllowedError, match=r"for this API key \(none\)"):
        policy(Quotas(NO_LIMITS).network).check(request("pypi.org"), "key 1")


def test_programs_find_the_proxy_and_the_operators_package_index():
    found = policy(index="https://packages.example.com/simple").open(request("pypi.org"), lambda _: None)
    assert found.variables["HTTPS_PROXY"] == found.variables["http_proxy"] == f"http://127.0.0.1:{PROXY_PORT}"
    assert found.variables["PIP_INDEX_URL"] == "https://packages.example.com/simple"
    assert found.variables["SSL_CERT_FILE"] == found.variables["REQUESTS_CA_BUNDLE"] == CA_BUNDLE
    assert found.roots == ""
    assert "PIP_INDEX_URL" not in policy().open(request("pypi.org"), lambda _: None).variables


@pytest.mark.parametrize(
    ("of_key", "hosts"),
    [
        (None, list(OPERATOR)),
        ((), []),
        (("pypi.org:443", "evil.test:443"), ["pypi.org:443"]),
        (("a.example.com:443", "*.org:443"), ["a.example.com:443", "pypi.org:443"]),
        (("*.example.com:443",), ["*.example.com:443"]),
    ],
)
def test_a_caller_is_shown_what_operator_and_key_both_allow(of_key, hosts):
    found = policy(lambda _: of_key).list_hosts(Principal("acme", "books", "registered", "ann", "1"))
    assert [each.host for each in found] == hosts
    assert all(each.variables == [] for each in found)
