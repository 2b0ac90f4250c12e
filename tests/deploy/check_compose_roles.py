"""The compose files of many processes, started: a call goes through API process, NATS and worker.

Images that come from a registry are replaced by one that is built here and has the same programs; all other lines
of the files are in effect. Run by `make test-deploy`.
"""

import json
import os
import resource
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from deploy_programs import DEBIAN, ENGINE, ROOT, docker, run_compose

from tests.services.free_ports import choose_ports

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1200)]  # the image is built for them
BIN = Path(sys.executable).parent
SERVERS = "proofbox-deploy-servers:latest"
FILES = ("compose.yaml", "compose.workers.yaml", "stand-ins.json")
STARTED = ("proofbox", "worker", "prometheus")  # with what they need; Grafana is an image of a registry
WORKERS = 3
_READY_S = 300


def stand_ins():
    """What the tests put in the place of images of a registry."""

    def program(path):
        return [f"{path}:/usr/local/bin/{path.name}:ro"]

    haproxy = ["haproxy", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
    services = {
        "engine-proxy": {"entrypoint": haproxy, "volumes": [f"{ENGINE}:/var/run/docker.sock"]},
        "postgres": {"entrypoint": ["postgres-entrypoint"]},
        "s3": {"entrypoint": ["weed"], "volumes": program(BIN / "weed")},
        "s3-bucket": {"volumes": program(BIN / "weed")},
        "nats": {"entrypoint": ["nats-server"], "volumes": program(BIN / "nats-server")},
        "prometheus": {"entrypoint": ["prometheus"], "volumes": program(DEBIAN / "usr/bin/prometheus")},
    }
    replaced = {name: {"image": SERVERS, **service} for name, service in services.items()}
    # An engine in a machine with limits of its own cannot give more than it has.
    files = min(65536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    own = {"ulimits": {"nofile": files}, "environment": {"PROOFBOX_POOL_SIZE": "1"}}
    return {"services": replaced | dict.fromkeys(("proofbox", "worker"), own)}


class Stack:
    """The services of the files, as a project of its own.

    Args:
        folder: a copy of `deploy` without secrets.
        image: of the service.
    """

    def __init__(self, folder, image):
        self.folder = folder
        self.name = f"proofbox-test-{secrets.token_hex(4)}"
        self.port = choose_ports(["proofbox"], {})["proofbox"]
        self.key = ""
        self._environment = {
            **os.environ,
            "COMPOSE_FILE": ":".join(FILES),
            "COMPOSE_PROJECT_NAME": self.name,
            "PROOFBOX_SERVICE_IMAGE": image,
            "PROOFBOX_PORT": str(self.port),
            "DOCKER_GID": str(Path(ENGINE).stat().st_gid),
        }

    def compose(self, *arguments):
        """What Docker Compose prints; it has to succeed."""
        done = run_compose(self.folder, *arguments, environment=self._environment)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{self.logs()}"
        return done.stdout

    def logs(self):
        options = ("logs", "--no-color", "--tail", "40")
        return run_compose(self.folder, *options, environment=self._environment).stdout

    def start(self):
        """As docs/deploy.md has it."""
        create = ("run", "--rm", "-T", "proofbox", "keys", "create", "--name")
        (self.folder / "secrets/metrics_key").write_text(
            self.compose(*create, "prometheus", "--scopes", "metrics:read")
        )
        self.key = self.compose(*create, "first").strip()
        self.compose("up", "--detach", "--scale", f"worker={WORKERS}", *STARTED)
        wait_for(lambda: set(self.states()) == {"healthy"}, self.logs)

    def containers(self, service):
        """The containers of a service."""
        return self.compose("ps", "--quiet", service).split()

    def states(self):
        """What the health check of the image has found, of each process."""
        processes = [*self.containers("proofbox"), *self.containers("worker")]
        assert len(processes) == 1 + WORKERS
        return [docker("inspect", "--format", "{{.State.Health.Status}}", each).strip() for each in processes]

    def labelled(self, kind):
        """What the engine has of this project: containers, networks or volumes."""
        listed = {"container": ("ps", "--all"), "network": ("network", "ls"), "volume": ("volume", "ls")}
        return docker(*listed[kind], "--quiet", "--filter", f"label=com.docker.compose.project={self.name}").split()

    def ask(self, path, body=None):
        """What the API process answers at its published port."""
        method, url = "GET" if body is None else "POST", f"http://127.0.0.1:{self.port}{path}"
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = httpx.request(method, url, json=body, headers=headers, timeout=_READY_S, trust_env=False)
        assert answer.status_code == httpx.codes.OK, f"{answer.text}\n{self.logs()}"
        return answer.content

    def query(self, path):
        """What Prometheus answers, which is asked by the API process: it has no port outside."""
        program = (
            f"import urllib.request as u; print(u.urlopen('http://prometheus:9090/api/v1/{path}').read().decode())"
        )
        return json.loads(self.compose("exec", "-T", "proofbox", "python3", "-c", program))["data"]

    def service_names(self):
        """The names under which the workers' sandboxes are on the engine."""
        return [docker("exec", worker, "python3", "-c", _NAME).strip() for worker in self.containers("worker")]


_NAME = """
from proofbox.service.app.sandbox_engine import service_name
from proofbox.service.app.settings import Settings
print(service_name(Settings()))
"""


@pytest.fixture(scope="module")
def stack(service_image, tmp_path_factory):
    """A running stack, of which nothing is left."""
    subprocess.run([ROOT / "tests/deploy/servers.sh", SERVERS], check=True, capture_output=True)
    deploy = tmp_path_factory.mktemp("roles") / "deploy"
    for part in ("compose", "engine-proxy", "prometheus", "grafana"):
        shutil.copytree(ROOT / "deploy" / part, deploy / part, ignore=shutil.ignore_patterns("secrets"))
    prometheus = deploy / "prometheus/prometheus.workers.yaml"
    prometheus.write_text(prometheus.read_text().replace("15s", "1s"))
    (deploy / "compose/stand-ins.json").write_text(json.dumps(stand_ins()))
    subprocess.run(["bash", deploy / "compose/make-secrets.sh"], check=True, capture_output=True)
    stack = Stack(deploy / "compose", service_image)
    names = []
    try:
        stack.start()
        names = stack.service_names()
        yield stack
    finally:
        stack.compose("down", "--volumes", "--timeout", "30")
    assert [stack.labelled(kind) for kind in ("container", "network", "volume")] == [[], [], []]
    assert len(names) == WORKERS
    assert [sandboxes_of(name) for name in names] == [[]] * WORKERS


def sandboxes_of(name):
    return docker("ps", "--all", "--quiet", "--filter", f"label=proofbox.service={name}").split()


def test_a_call_goes_through_the_api_process_to_a_worker_and_its_file_comes_back(stack):
    body = {
        "tool_id": "exec_tools.execute_code_python",
        "tool_call_id": "c1",
        "conversation_id": "c",
        "turn_id": "turn_1",
        "params": {"contract": [{"filename": "result.txt", "description": "an answer"}]},
        "code": "open('result.txt', 'w').write(str(6 * 7))",
    }
    assert json.loads(stack.ask("/v1/tool-calls", body))["ok"]
    assert stack.ask("/v1/conversations/c/artifacts/fi:turn_1.files/result.txt") == b"42"


def test_each_process_is_healthy_and_each_worker_has_sandboxes_of_its_own(stack):
    assert set(stack.states()) == {"healthy"}
    names = stack.service_names()
    assert len(set(names)) == WORKERS
    wait_for(lambda: all(map(sandboxes_of, names)), stack.logs)


def test_the_api_process_has_no_way_to_the_engine(stack):
    program = "import os; print(os.path.exists('/run/proofbox-engine/engine.sock'))"
    seen = [stack.compose("exec", "-T", name, "python3", "-c", program).strip() for name in ("proofbox", "worker")]
    assert seen == ["False", "True"]


def test_prometheus_gets_the_metrics_of_each_process_and_of_the_queue(stack):
    def scraped():
        found = stack.query("query?query=proofbox_build_info")["result"]
        return len({one["metric"]["instance"] for one in found}) == 1 + WORKERS

    wait_for(scraped, stack.logs)
    targets = stack.query("targets?state=active")["activeTargets"]
    assert [target["lastError"] for target in targets if target["health"] != "up"] == []
    wait_for(
        lambda: (
            [one["value"][1] for one in stack.query("query?query=max(proofbox_workers)")["result"]]
            == [str(WORKERS)]
        ),
        stack.logs,
    )
    names = {rule["name"] for group in stack.query("rules")["groups"] for rule in group["rules"]}
    assert {"ProofboxNoWorkers", "ProofboxNatsDown"} <= names


def wait_for(is_so, read_logs):
    deadline = time.monotonic() + _READY_S
    while not is_so():
        assert time.monotonic() < deadline, read_logs()
        time.sleep(1)
