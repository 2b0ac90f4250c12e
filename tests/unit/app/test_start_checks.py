"""What keeps the service from starting is found before an engine or a store is asked: ports, unknown settings."""

import os
import socket
import subprocess
import sys

import pytest

from proofbox.service.app.ports import PortUnavailableError, check_port
from proofbox.service.app.settings import Settings
from proofbox.service.app.unknown_settings import (
    OTHER_NAMES,
    UnknownSettingsError,
    find_unknown_settings,
    refuse_unknown_settings,
)


@pytest.fixture
def used_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def serve(**environment):
    """The program in an environment without an engine: it would fail there a moment later."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith("PROOFBOX_")}
    return subprocess.run(
        [sys.executable, "-m", "proofbox.cli", "serve"],
        env={**kept, "PROOFBOX_ENGINE_HOST": "unix:///nowhere/docker.sock", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_used_port_is_named_with_the_remedy_before_the_engine_is_asked(used_port):
    done = serve(PROOFBOX_PORT=str(used_port))
    assert done.returncode == 2
    assert done.stderr == (
        f"proofbox: cannot listen on 127.0.0.1, port {used_port}: another program listens there; "
        "choose another port with --port or PROOFBOX_PORT\n"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_a_free_port_is_left_free(host):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    check_port(host, port)
    check_port(host, port)


@pytest.mark.parametrize(
    ("host", "remedy"),
    [
        ("192.0.2.1", "this machine does not have the address"),
        ("no.such.host.invalid", "choose another with --host"),
    ],
)
def test_an_address_that_the_machine_does_not_have_is_refused(host, remedy):
    with pytest.raises(PortUnavailableError, match=remedy):
        check_port(host, 0)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PROOFBOX_POOLSIZE", "did you mean PROOFBOX_POOL_SIZE?"),
        ("PROOFBOX_WALLS", "did you mean PROOFBOX_WALL_S?"),
        ("proofbox_memory", "did you mean PROOFBOX_MEMORY_BYTES?"),
        ("PROOFBOX_COLOUR", "docs/settings.md lists the settings"),
        ("PROOFBOX_SERVICE_HOST", "set by Kubernetes for a service of this name: use enableServiceLinks: false"),
    ],
)
def test_a_variable_that_names_no_setting_is_refused_with_the_nearest(name, hint):
    with pytest.raises(UnknownSettingsError) as refused:
        refuse_unknown_settings({"PATH": "/bin", "PROOFBOX_PORT": "1", name: "3"})
    assert str(refused.value) == f"not a setting: {name} ({hint}). Correct or unset it"


def test_every_setting_and_the_variables_of_clients_are_known():
    names = {f"PROOFBOX_{name.upper()}" for name in Settings.model_fields} | OTHER_NAMES | {"proofbox_port"}
    assert find_unknown_settings(dict.fromkeys(names, "1")) == []


def test_serve_refuses_a_mistyped_setting():
    done = serve(PROOFBOX_POOLSIZE="3", PROOFBOX_PORT="0")
    assert done.returncode == 2
    assert "environment: PROOFBOX_POOLSIZE: not a setting; did you mean PROOFBOX_POOL_SIZE?" in done.stderr
