"""The tests reach this machine only."""

import socket

import pytest


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888"])
def test_a_connection_to_the_internet_is_refused(address):
    with pytest.raises(RuntimeError, match="this machine only"):
        socket.create_connection((address, 53), 1)
