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


def in_pieces(mask, text, cuts):
    """What each piece of a text passes on, and the end."""
    ends = [0, *sorted(cut for cut in cuts if cut <= len(text)), len(text)]
    return [*(mask.feed(text[begin:end]) for begin, end in itertools.pairwise(ends)), mask.end()]


CUTS = st.lists(st.integers(0, 4_000), max_size=12)
LONG = "".join(f"{number:04}-abcd" for number in range(200))
TWO_OF_A_LENGTH = [
    (SECRET, "tk-test-0a1b2c3d4e5f6g7h"),
    ("a secret with spaces", "in its words and xyz"),
    (LONG, LONG[::-1]),
]


@pytest.mark.parametrize(("right", "wrong"), TWO_OF_A_LENGTH, ids=["usual", "spaces", "long"])
@given(data=st.data(), cuts=CUTS)
def test_the_sizes_of_what_passes_are_the_same_whatever_the_secret_is(right, wrong, data, cuts):
    parts = st.one_of(
        st.integers(0, len(right)).map(lambda size: right[:size].encode()),
        st.sampled_from([b" ", b"\n", b"\r\n", b"\0", b"\xe9", b"x" * 1_500]),
        st.binary(max_size=20),
    )
    text = b"".join(data.draw(st.lists(parts, max_size=8)))
    sizes = [
        [len(passed) for passed in in_pieces(SecretMask([host_header(AT, secret=secret)]), text, cuts)]
        for secret in (right, wrong)
    ]
    assert sizes[0] == sizes[1]


def test_an_echo_at_the_end_of_a_piece_does_not_show_the_next_character():
    for known in range(len(SECRET) - 1):
        guesses = [SECRET[:known] + chr(code) for code in range(0x21, 0x7F)]
        passed = {SecretMask([host_header(AT)]).feed(f"you sent {guess}".encode()) for guess in guesses}
        assert passed == {b"you sent "}


@pytest.mark.parametrize("right", [SECRET, "a secret with spaces", "abababababab", LONG])
@given(data=st.data(), cuts=CUTS)
def test_a_text_is_masked_in_the_same_places_however_it_is_cut(right, data, cuts):
    parts = st.one_of(
        st.just(right.encode()),
        st.just(base64.b64encode(b"x" + right.encode())),
        st.integers(0, len(right)).map(lambda size: right[:size].encode()),
        st.binary(max_size=20),
        st.just(b"y" * 1_100),
    )
    text = b"".join(data.draw(st.lists(parts, max_size=6)))
    whole = SecretMask([host_header(AT, secret=right)]).mask(text)
    passed = b"".join(in_pieces(SecretMask([host_header(AT, secret=right)]), text, cuts))
    assert passed == whole
    assert right.encode() not in passed
    assert all(new in (old, ord("*")) for old, new in zip(text, passed, strict=True))


@pytest.mark.parametrize("secret", [SECRET, "a secret with spaces", LONG])
@pytest.mark.parametrize("line", [b"data: {}\n\n", b"data: {}\r\n\r\n", b"[1]\n"])
def test_lines_pass_at_once(secret, line):
    mask = SecretMask([host_header(AT, secret=secret)])
    assert [mask.feed(line), mask.feed(line)] == [line, line]


def test_a_secret_that_repeats_itself_is_masked_to_its_last_byte():
    mask = SecretMask([host_header(AT, secret="ab" * 6)])
    assert mask.mask(b"<" + b"ab" * 7 + b">") == b"<" + b"*" * 14 + b">"


def test_a_run_without_a_line_end_passes_but_for_its_last_1024_bytes():
    mask = SecretMask([host_header(AT)])
    assert len(mask.feed(b"x" * 10_000)) == 10_000 - 1_024
    assert len(mask.feed(b"\n")) == 1_025


@pytest.mark.parametrize("prefix", ["Basic ", "basic ", ""])
@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("reader", "pass word-1"),
        ("sk_live_0123456789", ""),
        ("long-user-name", "long:password"),
        ("u", "p\u00e4ss-w\u00f6rd"),
    ],
)
@given(cuts=CUTS)
def test_user_and_password_of_basic_are_masked_too(prefix, user, password, cuts):
    secret = ("" if prefix else "Basic ") + base64.b64encode(f"{user}:{password}".encode()).decode()
    header = host_header(AT, secret=secret, prefix=prefix)
    shown = [f"{user}:{password}", *(part for part in (user, password) if len(part.encode()) >= 8)]
    shown += [json.dumps(part)[1:-1] for part in shown] + [quote(part, safe="") for part in shown]
    shown.append(secret.removeprefix("Basic "))
    for text in shown:
        passed = b"".join(in_pieces(SecretMask([header]), f"<{text}>".encode(), cuts))
        assert passed == b"<" + b"*" * len(text.encode()) + b">"


def test_a_basic_secret_that_is_no_base64_is_masked_as_it_is():
    mask = SecretMask([host_header(AT, secret="no-base64!", prefix="Basic ")])
    assert mask.mask(b"<no-base64!>") == b"<**********>"


def test_the_part_after_the_scheme_is_masked_where_the_secret_has_both():
    mask = SecretMask([host_header(AT, secret=f"Bearer {SECRET}", prefix="")])
    assert mask.mask(f"<{SECRET}>".encode()) == b"<" + b"*" * len(SECRET) + b">"


def test_a_text_without_a_secret_passes_at_once():
    mask = SecretMask([host_header(AT)])
    assert mask.feed(b"data: hello\n\n") == b"data: hello\n\n"
    assert mask.feed(b"the key is " + SECRET.encode()[:5]) == b"the key is "
    assert mask.end() == SECRET.encode()[:5]
