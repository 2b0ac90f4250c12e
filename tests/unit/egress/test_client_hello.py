"""The server name of a ClientHello: read as OpenSSL reads it, or refused, whatever the bytes are."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofbox.service.egress.client_hello import ClientHelloReader, NoClientHelloError
from tests.support.examples import examples
from tests.support.program_proxy import as_records, client_hello, with_extension

HELLO = client_hello("allowed.test")
fuzzed = settings(max_examples=examples(150), deadline=None, derandomize=True, database=None)


def test_the_name_is_read_in_lower_case():
    hello = ClientHelloReader().feed(client_hello("Allowed.Test"))
    assert hello is not None
    assert (hello.server_name, hello.is_encrypted) == ("allowed.test", False)


@pytest.mark.parametrize("kind", [0xFE0D, 0xFFCE])
def test_an_encrypted_name_is_seen(kind):
    hello = ClientHelloReader().feed(with_extension(HELLO, kind, b"\0" * 40))
    assert hello is not None
    assert hello.is_encrypted


@pytest.mark.parametrize("size", [16, 100])
def test_records_and_pieces_are_cut_anywhere(size):
    reader = ClientHelloReader()
    whole = as_records(HELLO[5:], size)
    found = [reader.feed(whole[at : at + 7]) for at in range(0, len(whole), 7)]
    assert [hello.server_name for hello in found if hello] == ["allowed.test"]
    assert found[-1] is not None
    assert bytes(reader.received) == whole


def test_a_hello_in_over_64_records_is_refused():
    whole, reader = as_records(HELLO[5:], 1), ClientHelloReader()
    assert reader.feed(whole[: 64 * 6]) is None
    with pytest.raises(NoClientHelloError, match="over 64 records"):
        reader.feed(whole[64 * 6 : 65 * 6])


def test_what_follows_in_the_record_of_a_hello_is_refused():
    reader = ClientHelloReader()
    longer = as_records(HELLO[5:] + b"\x01")
    assert reader.feed(longer[:-1]) is None
    with pytest.raises(NoClientHelloError, match="followed by another message"):
        reader.feed(longer[-1:])


@pytest.mark.parametrize(
    "name", [b"\0\x0b\0\0\x08a\0b.test", b"\0\x0a\0\0\x07\xc3\xa4.test", b"\0\x03\0\0\0", b"\0\x05\1\0\2ab", b"\0"]
)
def test_a_server_name_that_is_no_single_printable_name_is_refused(name):
    with pytest.raises(NoClientHelloError):
        ClientHelloReader().feed(with_extension(client_hello(None), 0, name))


@fuzzed
@given(
    at=st.integers(0, len(HELLO) - 1),
    byte=st.integers(0, 255),
    cut=st.integers(1, len(HELLO)),
    more=st.binary(max_size=40),
)
def test_a_damaged_hello_is_read_as_openssl_reads_it_or_refused(at, byte, cut, more):
    damaged = bytearray(HELLO)
    damaged[at] = byte
    with contextlib.suppress(NoClientHelloError):
        hello = ClientHelloReader().feed(bytes(damaged[:cut]) + more)
        assert hello is None or hello.server_name is None or hello.server_name.isprintable()


@fuzzed
@given(data=st.binary(max_size=300))
def test_any_bytes_are_refused_or_wanted_more_of(data):
    with contextlib.suppress(NoClientHelloError):
        assert ClientHelloReader().feed(b"\x16\x03\x01" + data) is None
