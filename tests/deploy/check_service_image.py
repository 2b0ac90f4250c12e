"""The image of the service: without root, on a read-only file system, through the proxy.

Run by `make test-deploy`.
"""

import json
import os
import subprocess
import time
import uuid

import pytest
from deploy_programs import DEBIAN, ROOT, debian_environment, running

pytestmark = pytest.mark.docker
ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
USER = "10002"
_READY_S = 60


@pytest.fixture(scope="module")
def image():
    """The image of the wheel in dist, built if need be."""
    tag = f"proofbox:test-{uuid.uuid4().hex[:8]}"
    environment = {**os.environ, "TAG": tag}
    done = subprocess.run([ROOT / "deploy/build.sh"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    yield tag
    docker("image", "rm", "--force", tag)


def docker(*arguments):
    done = subprocess.run(["docker", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def hardened(*volumes):
    """What compose.yaml gives the service."""
    yield from ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
    yield from ("--tmpfs", "/tmp", "--tmpfs", f"/var/lib/proofbox:uid={USER},gid={USER},mode=700")
    for volume in volumes:
        yield from ("--volume", volume)


def test_it_runs_as_a_user_without_root_and_without_package_managers(image):
    text = docker(
        "run",
        "--rm",
        "--network",
        "none",
        *hardened(),
        "--entrypoint",
        "/bin/sh",
        image,
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
        image,
        "/",
        "-xdev",
        "-perm",
        "/6000",
        "-not",
        "-path",
        "/proc/*",
    )
    assert found == ""


def test_its_history_and_files_name_no_mirror_of_the_machine_that_built_it(image):
    history = docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", image)
    assert "http" not in history.replace("http://127.0.0.1:8080/readyz", "")


def test_all_extras_are_in_it(image):
    program = (
        "from proofbox.service.app.extras import EXTRAS, missing_modules;"
        "print([extra for extra in EXTRAS if missing_modules(extra)])"
    )
    text = docker("run", "--rm", "--network", "none", *hardened(), "--entrypoint", "python3", image, "-c", program)
    assert text == "[]\n"


def test_the_service_answers_a_call_from_its_container_through_the_proxy(image, short_folder):
    path = short_folder / "engine.sock"
    environment = {**debian_environment(), "PROOFBOX_DOCKER_SOCKET": ENGINE, "PROOFBOX_PROXY_SOCKET": str(path)}
    command = [DEBIAN / "usr/sbin/haproxy", "-db", "-f", ROOT / "deploy/engine-proxy/haproxy.cfg"]
    with running(command, environment, short_folder / "log", path.exists):
        os.chown(path, -1, int(USER))  # as the group of the proxy's process in compose.yaml
        short_folder.chmod(0o755)
        name = f"proofbox-service-{uuid.uuid4().hex[:8]}"
        settings = {"ENGINE_HOST": "unix:///engine/engine.sock", "POOL_SIZE": "1", "HOST": "127.0.0.1"}
        docker(
            "run",
            "--detach",
            "--name",
            name,
            "--network",
            "none",
            *hardened(f"{short_folder}:/engine"),
            *(text for key, value in settings.items() for text in ("--env", f"PROOFBOX_{key}={value}")),
            image,
            "serve",
        )
        try:
            wait_until_ready(name)
            answer = json.loads(inside(name, _CALL))
            assert (answer["ok"], answer["output"]["stdout"]) == (True, "42\n")
        finally:
            log = subprocess.run(["docker", "logs", name], capture_output=True, text=True, check=False)
            docker("rm", "--force", name)
        assert "is running on http://127.0.0.1:8080" in log.stderr


_READY = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8080/readyz', timeout=5).status)"
_CALL = """
import json, urllib.request as u
body = {"tool_id": "exec_tools.execute_code_python", "tool_call_id": "c1", "conversation_id": "c",
        "turn_id": "turn_1", "params": {"explore": True}, "code": "print(6 * 7)"}
kind = {"Content-Type": "application/json"}
request = u.Request("http://127.0.0.1:8080/v1/tool-calls", json.dumps(body).encode(), kind)
print(u.urlopen(request).read().decode())
"""


def inside(name, program):
    return docker("exec", name, "python3", "-c", program)


def wait_until_ready(name):
    deadline = time.monotonic() + _READY_S
    while True:
        command = ["docker", "exec", name, "python3", "-c", _READY]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.stdout == "200\n":
            return
        assert time.monotonic() < deadline, done.stderr + docker("logs", name)
        time.sleep(0.2)
