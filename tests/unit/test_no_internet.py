"""The tests reach this machine only."""

import socket

import pytest


@pytest.mark.parametrize(
    ("family", "address"), [(socket.AF_INET, "8.8.8.8"), (socket.AF_INET6, "2001:4860:4860::8888")]
)
def test_a_connection_to_the_internet_is_refused(family, address):
    with socket.socket(family) as client, pytest.raises(RuntimeError, match="this machine only"):
        client.connect((address, 53))
