"""Programs on Podman: they run, fail and draw as on Docker, and nothing more is in their reach.

`make tests-podman` runs it, on an engine of its own.
"""

import importlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from proofbox.service.app.bootstrap import Service, build, running
from proofbox.service.app.settings import Settings
from tests.container.calling import Caller

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECURITY = Path(__file__).parents[1] / "security"
# What differs from Docker: no option for the inodes of a tmpfs, other files of /etc and other kernel files.
# On version 1 of control groups their namespace is the machine's. See docs/engines.md.
_OF_ETC = ["image nodev,noexec,nosuid,ro"]
_READ_ONLY = ["tmpfs nodev,noexec,nosuid,ro,mode=755,size=4k"]
MOUNTS = {
    "/dev": ["tmpfs noexec,nosuid,rw,mode=755,size=65536k"],
    **dict.fromkeys(("/etc/hostname", "/etc/hosts", "/etc/resolv.conf"), _OF_ETC),
    "/job": ["tmpfs nodev,noexec,nosuid,rw,mode=755,size=73728k,uid=20007"],
    "/out": ["tmpfs nodev,nosuid,rw,mode=755,size=8192k,uid=20007"],
    "/sys/dev/block": ["tmpfs ro"],
    "/tmp": ["tmpfs nodev,nosuid,rw,mode=755,size=131072k,uid=20007"],
    **dict.fromkeys(("/run", "/var/tmp"), _READ_ONLY),
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    service = build(Settings(data_dir=tmp_path_factory.mktemp("data"), pool_size=1))
    async with running(service):
        yield service


@pytest.fixture
def call(service: Service) -> Caller:
    return Caller(service)


async def test_a_program_runs_and_prints(call: Caller) -> None:
    response = await call("print(1)")
    assert response.ok, response.report
    assert response.output.stdout == "1\n"
    assert response.sandbox is not None
    assert not response.sandbox.user_namespace


async def test_a_program_fails_with_its_own_error(call: Caller) -> None:
    response = await call("raise ValueError('mine')")
    assert not response.ok
    assert response.error is not None
    assert response.error.code == "nonzero_exit"
    assert "ValueError: mine" in response.report


async def test_a_chart_is_drawn(call: Caller) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig(OUT_DIR / 'turn_1/files/a.png')\n"
    code = "from pathlib import Path\nimport os\nOUT_DIR = Path(os.environ['OUT_DIR'])\n" + code
    response = await call(code, ["a.png"])
    assert response.ok, response.report


async def test_a_document_is_rendered(call: Caller) -> None:
    response = await call.tool("rendering_tools.write_pdf", {"path": "a.pdf", "content": "# Title\n\nText"})
    assert response.ok, response.report


async def test_memory_and_time_are_bounded(call: Caller) -> None:
    hungry = await call("x = bytearray(10 ** 9); print(len(x))", limits={"memory_bytes": 64 << 20})
    assert hungry.error is not None
    assert hungry.error.code == "out_of_memory"
    slow = await call("while True: pass", timeout_s=1)
    assert slow.error is not None
    assert slow.error.code == "timeout"


async def test_no_more_is_in_reach_than_on_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SECURITY))
    probe = importlib.import_module("test_probe")
    told = probe.reduced(await probe.probed(data_dir=tmp_path))
    reviewed = json.loads((SECURITY / "golden" / "docker-runc.json").read_text())
    reviewed["mounts"] |= MOUNTS
    for seen in (told, reviewed):
        seen["sandbox"].pop("runtime")
        seen["namespaces"].pop("cgroup")
        seen["limits"].pop("control group's path")
    assert {name: value for name, value in told.items() if value != reviewed[name]} == {}
