"""Headers with secrets: what can be one, whose calls get it, and how it is masked."""

import base64
import itertools
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.network import Endpoint
from proofbox.service.egress.host_headers import HeaderRefusedError, HostHeaders
from proofbox.service.egress.secret_mask import SecretMask
from tests.support.secret_hosts import HOST, SECRET, host_header

AT = f"{HOST}:443"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "Host"}, "no header that can be set"),
        ({"name": "content-length"}, "no header that can be set"),
        ({"name": "Proxy-Authorization"}, "no header that can be set"),
        ({"name": "X Y"}, "no header that can be set"),
        ({"name": ""}, "no header that can be set"),
        ({"secret": "sec\r\nX: 1"}, "a character that no header"),
        ({"secret": "s3cret!"}, "has 7 characters; it needs 8 to 4096"),
        ({"secret": "s" * 4097}, "has 4097 characters"),
        ({"secret": " s3cret-value"}, "a space at an end"),
        ({"secret": "s3cret\0value"}, "a character that no header"),
        ({"secret": "s3crét-value"}, "a character that no header"),
        ({"prefix": "Bearer\r\n"}, "a character that no header"),
    ],
)
def test_what_makes_no_header_is_refused_without_showing_the_secret(fields, why):
    with pytest.raises(HeaderRefusedError, match=why) as refused:
        host_header(AT, **fields)
    assert "s3cr" not in str(refused.value)


@pytest.mark.parametrize("host", [f"*.{HOST}:443", "192.0.2.1:443", "[2001:db8::1]:443"])
def test_a_secret_is_for_hosts_by_their_names_alone(host):
    with pytest.raises(HeaderRefusedError, match="is not one host by its name"):
        host_header(host)


@pytest.mark.parametrize(
    ("projects", "is_given"),
    [
        ((("acme", "books"),), True),
        ((("acme", "*"),), True),
        ((("*", "books"),), True),
        ((("*", "*"),), True),
        ((("other", "x"), ("acme", "books")), True),
        ((("acme", "sales"),), False),
        ((("other", "books"),), False),
        ((("other", "*"),), False),
        ((("acm", "books"),), False),
        ((), False),
    ],
)
def test_the_calls_of_listed_projects_get_a_secret(projects, is_given):
    found = HostHeaders([host_header(AT, projects=projects)]).of_call("acme", "books", [Endpoint.parse(AT)])
    assert bool(found) is bool(found.variables) is bool(found.of(Endpoint.parse(AT))) is is_given


@pytest.mark.parametrize(
    ("allow", "is_given"),
    [(AT, True), ("*.test:443", True), (f"{HOST}:80", False), ("other.test:443", False), (f"*.{HOST}:443", False)],
)
def test_a_call_gets_the_secrets_of_hosts_that_it_asks_for(allow, is_given):
    found = HostHeaders([host_header(AT)]).of_call("acme", "books", [Endpoint.parse(allow)])
    assert bool(found) is is_given
    assert found.names == ((HOST,) if is_given else ())


@pytest.mark.parametrize(
    ("fields", "clash"),
    [
        ({}, True),
        ({"name": "authorization"}, True),
        ({"projects": (("acme", "books"),)}, True),
        ({"name": "X-Key"}, False),
    ],
)
def test_two_secrets_for_one_header_of_a_request_are_refused(fields, clash):
    headers = [host_header(AT, "b.test:443"), host_header(AT, **{"variable": "SECOND", **fields})]
    if clash:
        with pytest.raises(HeaderRefusedError, match=r"API_KEY and SECOND set the header"):
            HostHeaders(headers)
    else:
        assert len(HostHeaders(headers).of_call("a", "b", [Endpoint.parse(AT)]).of(Endpoint.parse(AT))) == 2


def test_projects_that_share_nothing_may_have_a_secret_each():
    one = host_header(AT, projects=(("acme", "*"),))
    two = host_header(AT, projects=(("other", "*"),), secret="another-secret-value")
    found = HostHeaders([one, two]).of_call("other", "x", [Endpoint.parse(AT)])
    assert [header.secret for header in found.of(Endpoint.parse(AT))] == ["another-secret-value"]


ODD = 'k"ey/with+odd&signs'


@pytest.mark.parametrize(
    "form",
    [
        ODD,
        quote(ODD, safe=""),
        json.dumps(ODD)[1:-1],
        base64.b64encode(ODD.encode()).decode(),
        base64.urlsafe_b64encode(ODD.encode()).decode(),
    ],
)
@given(cuts=st.lists(st.integers(0, 120), max_size=6), before=st.binary(max_size=20), after=st.binary(max_size=20))
def test_a_secret_is_masked_wherever_its_pieces_are_cut(form, cuts, before, after):
    text = before + form.encode() + after
    mask = SecretMask([host_header(AT, secret=ODD)])
    ends = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[begin:end] for begin, end in itertools.pairwise(ends)]
    passed = b"".join(map(mask.feed, pieces)) + mask.end()
    assert len(passed) == len(text)
    assert form.encode() not in passed
    assert b"*" * 8 in passed


def test_a_text_without_a_secret_passes_at_once():
    mask = SecretMask([host_header(AT)])
    assert mask.feed(b"data: hello\n\n") == b"data: hello\n\n"
    assert mask.feed(b"the key is " + SECRET.encode()[:5]) == b"the key is "
    assert mask.end() == SECRET.encode()[:5]
