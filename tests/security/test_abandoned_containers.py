"""A service is killed between the creation of a container and its start: another service removes it."""

import contextlib
import os

import docker
import pytest
from engine_sides import DockerSide
from service_process import ServiceProcess, eventually, serving

from tests.support.gate import Gate

pytestmark = pytest.mark.docker


def states(service: ServiceProcess) -> list[str]:
    """The states of all containers of a service."""
    with contextlib.closing(docker.from_env()) as engine:
        filters = {"label": f"proofbox.service={service.name}"}
        return [row["State"] for row in engine.api.containers(all=True, filters=filters)]


@pytest.mark.slow
def test_a_container_that_was_only_created_at_kill_9_is_removed_by_another_service(tmp_path):
    side = DockerSide()
    engine_socket = os.environ.get("DOCKER_HOST", "").removeprefix("unix://") or "/var/run/docker.sock"
    with Gate(engine_socket) as gate:
        gate.hold(rb"POST /v[\d.]+/containers/[0-9a-f]+/start")
        behind_gate = {"engine": "docker", "engine_host": f"tcp://127.0.0.1:{gate.port}", "import_once": "off"}
        with serving(tmp_path / "killed", side, pool_size=1, **behind_gate) as killed:
            assert gate.held.wait(60)
            killed.process.kill()
            killed.wait()
            gate.cut()
            assert states(killed) == ["created"]
            # No start takes longer than two requests; until then the container may be that of a service that lives.
            quick = {"engine_timeout_s": 5, "sweep_every_s": 1}
            with serving(tmp_path / "other", side, engine="docker", pool_size=0, **quick):
                assert eventually(killed.containers, lambda left: left == []) == []
    side.close()
