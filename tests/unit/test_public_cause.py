"""What an engine says is for anybody to read: in one bounded line, without paths of the host and secrets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.public_cause import CAUSE_CHARS_MAX, public_cause

RUNC = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: "
    "runc create failed: unable to start container process: error during container init: "
)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("exec: no such file", "exec: no such file"),
        (b'unknown or invalid runtime name: "runq"', 'unknown or invalid runtime name: "runq"'),
        ("error mounting /srv/data/secret to rootfs", "error mounting … to rootfs"),
        ('mkdir "/srv/my data": no space left on device', "mkdir …: no space left on device"),
        ("mounts (/etc/a,/etc/b): denied", "mounts (…,…): denied"),
        ("dial unix:///var/run/engine.sock: refused", "dial … refused"),
        ("src=/srv/a:/srv/b read only", "src=…:… read only"),
        ("get https://ann:pw@registry.example.org/v2/: 401", "get https://…@registry.example.org/v2/: 401"),
        ("login: password=hunter2, user=ann", "login: password=…, user=ann"),
        ('{"token": "abc", "x": 1}', '{"token": …", "x": 1}'),
        ("Authorization: Bearer abc.def", "Authorization: …"),
        ("container " + "0123abcd" * 8 + " is dead", "container … is dead"),
        ("one\n  two\r\n\tthree\x1b[0m\x00", "one two three [0m"),
        ("", ""),
    ],
)
def test_paths_and_secrets_are_left_out(said, shown):
    assert public_cause(said) == shown


def test_of_a_long_text_the_innermost_cause_is_left():
    shown = public_cause(RUNC * 3 + "cgroups: out of memory")
    assert len(shown) == CAUSE_CHARS_MAX
    assert shown.startswith("… ")
    assert shown.endswith("error during container init: cgroups: out of memory")


@given(st.text() | st.binary())
def test_whatever_is_said_is_one_bounded_line(said):
    shown = public_cause(said)
    assert len(shown) <= CAUSE_CHARS_MAX
    assert shown.isprintable()
