"""The entries of an allow-list: one spelling, and what each of them covers."""

import pytest
from pydantic import ValidationError

from proofbox.contracts.network import Endpoint, NetworkAccess


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("pypi.org:443", "pypi.org:443"),
        ("PyPI.org", "pypi.org:443"),
        ("*.example.com:8443", "*.example.com:8443"),
        ("xn--bcher-kva.example:80", "xn--bcher-kva.example:80"),
        ("192.0.2.1:80", "192.0.2.1:80"),
        ("[2001:DB8::1]:443", "[2001:db8::1]:443"),
        ("[2001:db8::1]", "[2001:db8::1]:443"),
        ("db_1.internal:5432", "db_1.internal:5432"),
    ],
)
def test_an_entry_is_read_in_one_spelling(text, read):
    assert NetworkAccess(allow=[text]).allow == [read]


@pytest.mark.parametrize(
    "text",
    [
        *("", ":443", "*", "*:443", "*.:443", "a.*.com:443", "**.com:443", "a..com", ".com"),
        *("a.com.", "bücher.example"),
        *("https://pypi.org", "pypi.org/simple", "user@pypi.org", "pypi.org:", "pypi.org:0", "pypi.org:65536"),
        *("pypi.org:44x", "pypi.org:0443", "pypi.org:443:443", "2130706433", "0x7f.1:80", "127.1:80"),
        "1.2.3.04:80",
        *("*.1.2.3.4:80", "2001:db8::1", "[2001:db8::1%eth0]:80", "[1.2.3.4]:80", "a b.com"),
        *("a\n.com", "-a.com:80"),
        "a" * 64 + ".com",
        "a." * 127 + "com:443",
        "pypi.org:\uff14\uff14\uff13",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_how_to_write_it(text):
    with pytest.raises(ValidationError, match=r"write|port"):
        NetworkAccess(allow=[text])


@pytest.mark.parametrize(
    ("allowed", "asked", "is_covered"),
    [
        ("pypi.org:443", "pypi.org:443", True),
        ("pypi.org:443", "pypi.org:80", False),
        ("pypi.org:443", "*.pypi.org:443", False),
        ("*.pypi.org:443", "a.pypi.org:443", True),
        ("*.pypi.org:443", "a.b.pypi.org:443", True),
        ("*.pypi.org:443", "*.pypi.org:443", True),
        ("*.pypi.org:443", "*.b.pypi.org:443", True),
        ("*.b.pypi.org:443", "*.pypi.org:443", False),
        ("*.pypi.org:443", "pypi.org:443", False),
        ("*.pypi.org:443", "evilpypi.org:443", False),
        ("192.0.2.1:80", "192.0.2.1:80", True),
        ("192.0.2.1:80", "192.0.2.2:80", False),
    ],
)
def test_an_entry_covers_what_it_stands_for(allowed, asked, is_covered):
    assert Endpoint.parse(allowed).covers(Endpoint.parse(asked)) is is_covered


@pytest.mark.parametrize("allow", [[], ["a.test"] * 51])
def test_an_empty_or_endless_list_is_refused(allow):
    with pytest.raises(ValidationError):
        NetworkAccess(allow=allow)
