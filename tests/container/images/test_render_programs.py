"""The tests of tests/container/in_image, run where the renderer runs: with the image's libraries and fonts."""

import importlib.util
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proofbox.service.app.settings import Settings

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[3]
# The test runner is no part of the image; all of it is Python alone, so that of this environment does.
RUNNER = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging")
PARTS = 2
"""Hostile documents are rendered in so many containers side by side."""
PYTEST = "python3 -m pytest -q -p no:cacheprovider -c /dev/null --rootdir /src"


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runner")
    for name in RUNNER:
        origin = Path(importlib.util.find_spec(name).origin)
        if origin.name == "__init__.py":
            shutil.copytree(origin.parent, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, folder)
    folder.chmod(0o755)
    return folder


def in_the_image(runner: Path, tests: str, memory: str) -> subprocess.CompletedProcess[str]:
    """Runs tests, a folder and options of the runner, inside the sandbox image, confined as its programs are."""
    command = [
        *("docker", "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--memory", memory),
        *("--tmpfs", "/tmp:rw,size=256m,uid=10001", "--tmpfs", "/out:rw,size=256m,uid=10001"),
        *(
            "--volume",
            f"{ROOT}/tests/container/in_image:/src/tests/container/in_image:ro",
            "--volume",
            f"{runner}:/src/runner:ro",
        ),
        *("--env", "PYTHONPATH=/opt/proofbox:/src/runner", "--env", "HOME=/tmp/home"),
        *("--entrypoint", "bash", Settings().sandbox_image, "-c"),
        f"cp -rT /opt/proofbox/skel /tmp/home && cd /src && {PYTEST} {tests}",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.timeout(600)
def test_the_renderer_passes_its_own_tests_in_the_image(runner):
    done = in_the_image(runner, "-m 'not slow' --first-rows 2 tests/container/in_image/render", "2g")
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_renderer_passes_all_rows_of_its_own_tests_in_the_image(runner):
    done = in_the_image(runner, "tests/container/in_image/render", "2g")
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr[-2_000:]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_hostile_documents_reach_nothing_and_end_in_time(runner):
    def part(number: int) -> subprocess.CompletedProcess[str]:
        # With the memory that the service gives a call by default.
        return in_the_image(runner, f"--part {number}/{PARTS} tests/container/in_image/hostile", "1g")

    with ThreadPoolExecutor(PARTS) as threads:
        parts = list(threads.map(part, range(1, PARTS + 1)))
    failed = [done.stdout[-8_000:] + done.stderr[-2_000:] for done in parts if done.returncode != 0]
    assert failed == []
