"""The image of the service: without root, on a read-only file system, through the proxy.

Run by `make test-deploy`.
"""

import json
import os
import subprocess
import time
import uuid
from contextlib import contextmanager

import pytest
from deploy_programs import DEBIAN, ENGINE, ROOT, debian_environment, docker, running

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1200)]  # the image is built for them
USER = "10002"
_READY_S = 60


def hardened(*volumes):
    """What compose.yaml gives the service."""
    yield from ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
    yield from ("--tmpfs", "/tmp", "--tmpfs", f"/var/lib/proofbox:uid={USER},gid={USER},mode=700")
    for volume in volumes:
        yield from ("--volume", volume)


def test_it_runs_as_a_user_without_root_and_without_package_managers(service_image):
    text = docker(
        "run",
        "--rm",
        "--network",
        "none",
        *hardened(),
        "--entrypoint",
        "/bin/sh",
        service_image,
        "-c",
        "id -u; command -v apt-get; command -v pip; true",
    )
    assert text.split() == [USER]
    found = docker(
        "run",
        "--rm",
        "--network",
        "none",
        "--user",
        "0",
        "--entrypoint",
        "/usr/bin/find",
        service_image,
        "/",
        "-xdev",
        "-perm",
        "/6000",
        "-not",
        "-path",
        "/proc/*",
    )
    assert found == ""


def test_its_history_and_files_name_no_mirror_of_the_machine_that_built_it(service_image):
    history = docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", service_image)
    assert "http" not in history


def test_all_extras_are_in_it(service_image):
    program = (
        "from proofbox.service.app.extras import EXTRAS, missing_modules;"
        "print([extra for extra in EXTRAS if missing_modules(extra)])"
    )
    text = docker(
        "run", "--rm", "--network", "none", *hardened(), "--entrypoint", "python3", service_image, "-c", program
    )
    assert text == "[]\n"


@pytest.mark.parametrize("port", [8080, 9191])
def test_the_service_answers_a_call_from_its_container_through_the_proxy(service_image, short_folder, port):
    with proxied(short_folder) as proxy, served(service_image, short_folder, port) as name:
        answer = json.loads(inside(name, _CALL.replace("8080", str(port))))
        assert (answer["ok"], answer["output"]["stdout"]) == (True, "42\n")
        assert f"is running on http://0.0.0.0:{port}" in logs(name)
        assert is_healthy(name)
        proxy.terminate()
        proxy.wait(_READY_S)
        assert not is_healthy(name)  # there is no engine


@contextmanager
def proxied(folder):
    """The proxy of the engine, with its socket in a folder."""
    path = folder / "engine.sock"
    environment = {**debian_environment(), "PROOFBOX_DOCKER_SOCKET": ENGINE, "PROOFBOX_PROXY_SOCKET": str(path)}
    command = [DEBIAN / "usr/sbin/haproxy", "-db", "-f", ROOT / "deploy/engine-proxy/haproxy.cfg"]
    with running(command, environment, folder / "log", path.exists) as proxy:
        os.chown(path, -1, int(USER))  # as the group of the proxy's process in compose.yaml
        folder.chmod(0o755)
        yield proxy


@contextmanager
def served(image, folder, port):
    """The name of a container of the service that is healthy."""
    name = f"proofbox-service-{uuid.uuid4().hex[:8]}"
    settings = {
        "ENGINE_HOST": "unix:///engine/engine.sock",
        "POOL_SIZE": "1",
        "PORT": str(port),
        "AUTH": "off",
        "BEHIND_AUTHENTICATING_PROXY": "true",  # as no key exists
    }
    variables = (text for key, value in settings.items() for text in ("--env", f"PROOFBOX_{key}={value}"))
    # A proxy of the environment is not for the address of the container itself.
    variables = (*variables, "--env", "http_proxy=http://127.0.0.1:1")
    hardening = hardened(f"{folder}:/engine")
    docker("run", "--detach", "--name", name, "--network", "none", *hardening, *variables, image)
    try:
        deadline = time.monotonic() + _READY_S
        while not is_healthy(name):
            assert time.monotonic() < deadline, logs(name)
            time.sleep(0.2)
        yield name
    finally:
        docker("rm", "--force", "--volumes", name)


_CALL = """
import json, urllib.request as u
body = {"tool_id": "exec_tools.execute_code_python", "tool_call_id": "c1", "conversation_id": "c",
        "turn_id": "turn_1", "params": {"explore": True}, "code": "print(6 * 7)"}
kind = {"Content-Type": "application/json"}
request = u.Request("http://127.0.0.1:8080/v1/tool-calls", json.dumps(body).encode(), kind)
print(u.build_opener(u.ProxyHandler({})).open(request).read().decode())
"""


def inside(name, program):
    return docker("exec", name, "python3", "-c", program)


def is_healthy(name):
    """Whether the health check of the image succeeds now."""
    kind, *command = json.loads(docker("inspect", "--format", "{{json .Config.Healthcheck.Test}}", name))
    assert kind == "CMD"
    return subprocess.run(["docker", "exec", name, *command], capture_output=True, check=False).returncode == 0


def logs(name):
    return subprocess.run(["docker", "logs", name], capture_output=True, text=True, check=False).stderr
