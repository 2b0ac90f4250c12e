"""What is shown of a value that carries a password or a key."""

import pytest

from proofbox.service.app.config.hidden_values import hide_credentials, hide_in_message


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("https://user:pw@h/x", "https://********@h/x"),
        ("https://user:p/w@h/x", "https://********@h/x"),
        ("https://user:p@w@h/x", "https://********@h/x"),
        ("https://user:p?w@h/x", "https://********"),
        ("https://h/x?key=k", "https://h/x?********"),
        ("https://h/x?key=a@k", "https://********"),
        ("https://h/x#k", "https://h/x#********"),
        ("user:pw@h:1", "********@h:1"),
        (["https://u:p@h", 3], ["https://********@h", 3]),
        ({"a": {"b": "https://u:p@h"}}, {"a": {"b": "https://********@h"}}),
        ("https://h:1/x", "https://h:1/x"),
        ("registry:5000/proofbox-sandbox@sha256:00", "registry:5000/proofbox-sandbox@sha256:00"),
        ("what? a@b", "what? a@b"),
        (7, 7),
        (None, None),
    ],
)
def test_credentials_are_hidden_and_nothing_else(value, shown):
    assert hide_credentials(value) == shown


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("'http://u:pw/x@h' is no address", "'http://********@h' is no address"),
        ("the port cannot be 'pw'", "the port cannot be '********'"),
        ("the host 'h' is unknown", "the host 'h' is unknown"),
    ],
)
def test_a_message_quotes_no_credentials(message, shown):
    assert hide_in_message(message, "http://u:pw/x@h") == shown
