"""A call whose stream goes past its engine, while that engine is killed: it has what it needs, and goes on."""

import os
import signal

import engine_sides
import pytest
from engine_sides import DockerSide
from service_process import eventually, request, serving

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="an engine of one's own needs root"),
    pytest.mark.skipif("runsc" in os.environ.get("PROOFBOX_RUNTIME", ""), reason="nothing is forked into gVisor"),
]

SLEEPS = "import subprocess\nsubprocess.run(['sleep', '987'])\nopen('out.txt', 'w').write('x')"


@pytest.mark.skipif("docker" not in engine_sides.tested(), reason="the engine docker is not tested here")
def test_a_call_that_runs_is_not_touched_when_its_engine_is_killed_and_nothing_is_left(private_docker, tmp_path):
    side = DockerSide(private_docker.host)
    settings = {"engine_host": private_docker.host, "import_once": "on", "pool_size": 0, "sweep_every_s": 0.5}
    with serving(tmp_path / "data", side, engine="docker", **settings) as service:
        body = request(SLEEPS)
        assert service.post(body, Prefer="respond-async").status_code == 202
        assert len(eventually(service.busy, lambda busy: len(busy) == 1)) == 1
        [container] = service.busy()
        private_docker.end("dockerd", signal.SIGKILL)
        try:
            side.end_sleeps(container)  # found by its processes: the engine is not asked
            told = eventually(lambda: service.status(body), lambda status: status["status"] == "done")
        finally:
            private_docker.start_dockerd()
        assert told["response"]["ok"] is True
        assert eventually(service.containers, lambda left: left == []) == []
        ended = eventually(lambda: service.post(request("open('out.txt', 'w').write('x')")), _is_well)
        assert _is_well(ended)
    side.close()


def _is_well(response) -> bool:
    return response.status_code == 200 and response.json()["ok"]
