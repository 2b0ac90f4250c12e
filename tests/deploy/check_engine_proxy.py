"""The proxy in front of the engine: a service works through it, and nothing else is let through.

Run by `make test-deploy`.
"""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from dataclasses import replace
from urllib.parse import quote, quote_plus

import pytest
from deploy_programs import DEBIAN, ROOT, debian_environment, running

from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.docker.container_config import ContainerSettings, container_config
from proofbox.service.sandbox.limits import CallLimits, limit_names
from proofbox.service.sandbox.service_cgroup import TotalLimits
from tests.support.served import served

pytestmark = pytest.mark.docker
ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
SOME_ID = "0" * 64
SERVICE = f"proxied-{uuid.uuid4().hex[:8]}"
LIST = "/v1.41/containers/json?limit=-1&all=1&size=0&trunc_cmd=0"
OURS = quote_plus('{"label": ["proofbox.service=x"]}')
CREATED = quote_plus('{"label": ["proofbox.boot"], "status": ["created"]}')
OTHERS = quote_plus('{"label": ["other"]}')


@pytest.fixture
def proxy(short_folder):
    """The socket of the proxy."""
    path = short_folder / "engine.sock"
    environment = {**debian_environment(), "PROOFBOX_DOCKER_SOCKET": ENGINE, "PROOFBOX_PROXY_SOCKET": str(path)}
    command = [DEBIAN / "usr/sbin/haproxy", "-db", "-f", ROOT / "deploy/engine-proxy/haproxy.cfg"]
    with running(command, environment, short_folder / "log", path.exists):
        yield path
    # A container of a request that should have been refused.
    label = ("--filter", f"label=proofbox.service={SERVICE}")
    listed = subprocess.run(
        ["docker", "ps", "--all", "--quiet", *label], capture_output=True, text=True, check=True
    )
    for container in listed.stdout.split():
        subprocess.run(["docker", "rm", "--force", container], capture_output=True, check=True)


def ask(path, method, target, body=None, **headers):
    """The status and the body of an answer; all is sent at once, as a refusal may come before a body is read."""
    data = body.encode() if isinstance(body, str) else body or b""
    lines = [f"{method} {target} HTTP/1.1", "Host: engine", "Connection: close"]
    if body is not None:
        lines += ["Content-Type: application/json"]
        lines += [] if headers else [f"Content-Length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        # It may refuse and close before it has taken the whole body; its answer can be read all the same.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + data)
        answer = http.client.HTTPResponse(connection, method=method)
        answer.begin()
        return answer.status, answer.read()


def allowed_body():
    """The body of the service's own request for a sandbox."""
    settings = Settings()
    container = ContainerSettings(
        image=settings.sandbox_image,
        runtime="",
        seccomp_profile=settings.seccomp_profile.read_text(encoding="utf-8"),
        cgroup_parent="",
        totals=TotalLimits.of_machine(0, 0, 0),
        service_name=SERVICE,
        boot_id="boot",
    )
    limits = CallLimits(**{name: getattr(settings, name) for name in limit_names()})
    return container_config(replace(container), limits, time.time() + 60, 20_000)


def create(path, body, name=f"proofbox-{SERVICE}"):
    text = body if isinstance(body, str | bytes) else json.dumps(body)
    return ask(path, "POST", f"/v1.41/containers/create?name={name}", text)


def post(url, body):
    request = urllib.request.Request(
        f"{url}/v1/tool-calls", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def call(number, code, **more):
    return {
        "tool_id": "exec_tools.execute_code_python",
        "tool_call_id": f"c{number}",
        "conversation_id": "c",
        "turn_id": "turn_1",
        "params": {"explore": True},
        "code": code,
        **more,
    }


def wait_until_ready(url):
    """Until the service has started a first sandbox through the proxy."""
    for _ in range(600):
        with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(f"{url}/readyz"):
            return
        time.sleep(0.1)
    pytest.fail("no sandbox was started")


def test_a_service_does_all_that_it_does_through_the_proxy(proxy, short_folder):
    settings = {"engine_host": f"unix://{proxy}", "import_once": "off", "pool_size": 1}
    with served(short_folder, **settings) as url:
        wait_until_ready(url)
        plain = post(url, call(1, "print(6 * 7)"))
        limited = post(url, call(2, "print(1)", limits={"pids": 64}))  # changes a waiting container
        named = post(url, call(3, "import time; time.sleep(1.5); print('named')"))  # is renamed after a second
        hungry = post(
            url,
            call(
                4, "b = bytearray(900_000_000)\nb[::4096] = b'x' * len(b[::4096])", limits={"memory_bytes": 2**28}
            ),
        )
    assert [answer["output"]["stdout"] for answer in (plain, limited, named)] == ["42\n", "1\n", "named\n"]
    assert (hungry["ok"], hungry["error"]["code"]) == (False, "out_of_memory"), hungry["error"]
    assert "refused" not in (short_folder / "service.log").read_text()


def test_the_services_own_request_is_let_through(proxy):
    status, answer = create(proxy, allowed_body())
    assert status == 201, answer
    created = json.loads(answer)["Id"]
    assert ask(proxy, "GET", f"/v1.41/containers/{created}/json")[0] == 200
    assert ask(proxy, "DELETE", f"/v1.41/containers/{created}?v=True&link=False&force=True")[0] == 204


@pytest.mark.parametrize(
    "change",
    [
        {"Privileged": True},
        {"privileged": True},
        {"Binds": ["/:/host"]},
        {"Mounts": [{"Type": "bind", "Source": "/", "Target": "/host"}]},
        {"Devices": [{"PathOnHost": "/dev/sda"}]},
        {"VolumesFrom": ["other"]},
        {"PidMode": "host"},
        {"UsernsMode": "host"},
        {"CapAdd": ["SYS_ADMIN"]},
        {"CapDrop": []},
        {"NetworkMode": "host"},
        {"IpcMode": "host"},
        {"CgroupnsMode": "host"},
        {"ReadonlyRootfs": False},
        {"CgroupParent": "/system.slice"},
        {"SecurityOpt": ["no-new-privileges", "seccomp=unconfined"]},
        {"SecurityOpt": ["seccomp=unconfined"]},
        {"SecurityOpt": ["no-new-privileges", "seccomp={\n}", "apparmor=unconfined"]},
        {"SecurityOpt": ["no-new-privileges", "seccomp={\n}", "systempaths=unconfined"]},
        {"RestartPolicy": {"Name": "always"}},
        {"MaskedPaths": []},
        {"ReadonlyPaths": []},
        {"CgroupParent": "/proofbox/../system.slice"},
        {"LogConfig": {"Type": "json-file"}},
        {"Tmpfs": {"/etc": "rw,exec,suid,dev"}},
        {"Tmpfs": {}},
        {"Runtime": "crun"},
        {"Memory": 0},
        {"PidsLimit": 0},
        {"PidsLimit": -1},
        {"Ulimits": []},
        {"ShmSize": 0},
    ],
)
def test_a_container_with_more_rights_is_refused(proxy, change):
    body = allowed_body()
    body["HostConfig"] = {**body["HostConfig"], **change}
    assert create(proxy, body)[0] == 403


@pytest.mark.parametrize(
    "change", [{"Image": "debian"}, {"User": "0:0"}, {"User": ""}, {"Entrypoint": ["sh"]}, {"Volumes": {"/x": {}}}]
)
def test_another_image_user_or_program_is_refused(proxy, change):
    assert create(proxy, {**allowed_body(), **change})[0] == 403


@pytest.mark.parametrize(
    "name",
    ["CapDrop", "NetworkMode", "IpcMode", "CgroupnsMode", "ReadonlyRootfs", "SecurityOpt", "MaskedPaths", "Memory"],
)
def test_what_is_left_out_is_refused_since_the_engines_default_is_weaker(proxy, name):
    body = allowed_body()
    del body["HostConfig"][name]
    assert create(proxy, body)[0] == 403


@pytest.mark.parametrize(
    "inserted",
    [
        '"Priv\\u0069leged": true, ',
        '"PRIVILEGED": true, ',
        '"NetworkMode": "host", ',
        '"networkmode": "host", ',
        '"CapDrop": [], ',
        '"Device\u017f": [], ',  # the engine takes a long s for an s
    ],
)
def test_a_second_or_disguised_name_is_refused(proxy, inserted):
    text = json.dumps(allowed_body()).replace('"HostConfig": {', '"HostConfig": {' + inserted)
    assert create(proxy, text.encode())[0] == 403


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1] + ', "HostConfig": null}',
        lambda text: text[:-1] + ', "HostConfig": {}}',
        lambda text: text.replace('"/out":', '"\\/etc":'),
        lambda text: text + '{"HostConfig": {"Privileged": true}}',
    ],
    ids=["null", "empty", "backslash", "behind"],
)
def test_a_body_of_another_form_is_refused(proxy, change):
    assert create(proxy, change(json.dumps(allowed_body())))[0] == 403


def test_names_of_what_is_required_are_not_enough(proxy):
    names = ["User", "NetworkMode", "IpcMode", "CgroupnsMode", "ReadonlyRootfs", "CapDrop", "SecurityOpt"]
    assert create(proxy, {"Image": "proofbox-sandbox:latest", "Cmd": names, "HostConfig": {}})[0] == 403


def test_http_2_is_refused_with_whatever_body(proxy):
    """Its bodies have no length, and none is examined."""
    url = "http://engine/v1.41/containers/create?name=proofbox-x"
    told = subprocess.run(
        ["curl", "-sS", "--http2-prior-knowledge", "--unix-socket", proxy, "-w", "%{http_code}", "-d", "{}", url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode != 0, told
    assert "message" not in told.stdout  # of the engine


@pytest.mark.parametrize(
    "target",
    [
        f"{LIST}&%66ilters={OTHERS}&filters={OURS}",
        f"{LIST}&filters={OURS}&filters={OTHERS}",
        f"{LIST}&filters={OTHERS}&filters={OURS}",
        f"{LIST}&filters={OURS};filters={OTHERS}",
        f"{LIST}&filters={OURS}#",
        f"http://engine{LIST}&filters={OURS}",
        f"/v1.41/events?%66ilters={OTHERS}&filters="
        + quote_plus('{"event": ["oom"], "label": ["proofbox.service=x"]}'),
    ],
)
def test_a_disguised_or_repeated_parameter_is_refused(proxy, target):
    status, answer = ask(proxy, "GET", target)
    assert status in (400, 403), answer


@pytest.mark.parametrize(
    "target",
    [
        "/v1.41/containers/create?%6eame=other&name=proofbox-x",
        "/v1.41/containers/create?name=proofbox-x&name=other",
        "/v1.41/containers/create?name=proofbox-x&platform=other",
        f"/v1.41/containers/create?name=proofbox-x&filters={OURS}",
    ],
)
def test_a_container_with_a_disguised_name_is_refused(proxy, target):
    assert ask(proxy, "POST", target, json.dumps(allowed_body()))[0] == 403


def test_only_the_stream_of_a_container_leaves_http(proxy):
    status, _ = ask(proxy, "GET", "/v1.41/info", None, Connection="Upgrade", Upgrade="h2c")
    assert status == 403


def test_a_body_that_is_too_large_to_be_examined_is_refused(proxy):
    text = json.dumps({**allowed_body(), "Cmd": ["x" * 300_000]})
    assert create(proxy, text)[0] == 413


def test_a_body_without_a_length_is_refused(proxy):
    status, _ = ask(
        proxy,
        "POST",
        "/v1.41/containers/create?name=proofbox-x",
        b"2\r\n{}\r\n0\r\n\r\n",
        **{"Transfer-Encoding": "chunked"},
    )
    assert status == 403
    body = json.dumps(allowed_body())
    assert ask(proxy, "POST", "/v1.41/containers/create?name=proofbox-x", body, **{"X-Other": "none"})[0] == 403


def test_the_runtime_of_the_environment_is_the_only_one(monkeypatch, request):
    monkeypatch.setenv("PROOFBOX_PROXY_RUNTIME", "runsc")
    proxy = request.getfixturevalue("proxy")
    body = allowed_body()
    assert create(proxy, body)[0] == 403
    for runtime in ("runc", "runsc"):
        host = {}
        for name, value in body["HostConfig"].items():  # the service's order
            host |= {"Runtime": runtime} if name == "CpuShares" else {}
            host[name] = value
        status, answer = create(proxy, {**body, "HostConfig": host})
        assert (status == 403) == (runtime == "runc"), answer  # the engine may have no runsc


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", f"/v1.41/containers/{SOME_ID}/exec"),
        ("POST", f"/v1.41/exec/{SOME_ID}/start"),
        ("POST", "/v1.41/images/create?fromImage=debian&tag=latest"),
        ("POST", "/v1.41/build"),
        ("POST", "/v1.41/commit"),
        ("POST", "/v1.41/volumes/create"),
        ("POST", "/v1.41/networks/create"),
        ("POST", "/v1.41/swarm/init"),
        ("POST", "/v1.41/containers/create?name=other"),
        ("POST", "/v1.41/containers/create"),
        ("POST", f"/v1.41/containers/{SOME_ID}/kill"),
        ("POST", "/v1.41/containers/other/start"),
        ("POST", f"/v1.41/containers/{SOME_ID}/rename?name=other"),
        ("PUT", f"/v1.41/containers/{SOME_ID}/archive?path=/"),
        ("GET", f"/v1.41/containers/{SOME_ID}/archive?path=/"),
        ("GET", f"/v1.41/containers/{SOME_ID}/logs?stdout=1"),
        ("GET", "/v1.41/containers/other/json"),
        ("GET", "/v1.41/containers/json?all=1"),
        ("GET", f"/v1.41/containers/json?filters={quote(json.dumps({'label': ['other']}))}"),
        ("GET", f"/v1.41/containers/json?filters={quote(json.dumps({'status': ['running']}))}"),
        ("GET", "/v1.41/events"),
        ("GET", "/v1.41/images/json"),
        ("GET", "/v1.41/images/debian/json"),
        ("GET", "/v1.41/images/x/../proofbox-sandbox/json"),
        ("GET", "/v1.41/images/proofbox-sandbox/get"),
        ("GET", "/v1.41/secrets"),
        ("GET", "/v1.41//info"),
        ("DELETE", "/v1.41/containers/other?force=1"),
        ("DELETE", "/v1.41/images/proofbox-sandbox"),
        ("CONNECT", "example.com:443"),
    ],
)
def test_every_other_call_is_refused(proxy, method, target):
    status, answer = ask(proxy, method, target)
    assert status in (400, 403), answer  # HAProxy itself takes no CONNECT of this form
    assert b"message" not in answer  # it never came to the engine


def test_a_body_where_none_belongs_is_refused(proxy):
    status, _ = ask(proxy, "POST", f"/v1.41/containers/{SOME_ID}/start", json.dumps({"Privileged": True}))
    assert status == 403


def test_limits_are_all_that_can_be_changed(proxy):
    target = f"/v1.41/containers/{SOME_ID}/update"
    assert ask(proxy, "POST", target, json.dumps({"RestartPolicy": {"Name": "always"}}))[0] == 403
    assert ask(proxy, "POST", target, json.dumps({"PidsLimit": 64}))[0] == 403
    limits = {"PidsLimit": 64, "Memory": 2**28, "MemorySwap": 2**28, "NanoCpus": 10**9}
    assert ask(proxy, "POST", target, json.dumps({**limits, "Memory": 0}))[0] == 403
    assert ask(proxy, "POST", target, json.dumps(limits))[0] == 404  # the engine has no such container
    assert ask(proxy, "POST", target, json.dumps({"CpuShares": 1024}))[0] == 404


def test_what_a_service_lists_is_let_through(proxy):
    assert ask(proxy, "GET", f"{LIST}&filters={OURS}") == (200, b"[]\n")
    assert ask(proxy, "GET", f"{LIST}&filters={CREATED}")[0] == 200
    for label, status in (("proofbox.boot", "running"), ("other", "created")):
        other = quote_plus(json.dumps({"label": [label], "status": [status]}))
        assert ask(proxy, "GET", f"{LIST}&filters={other}")[0] == 403
