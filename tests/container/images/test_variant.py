"""Variants of the sandbox image, made as docs/image.md describes: what they add, and that they add nothing else."""

import json
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from proofbox.contracts.tools import Language
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.own_image import own_image
from proofbox.service.app.settings import Settings
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.of_docker]

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "sandbox_images"
NAME = "proofbox-sandbox"


@pytest.fixture(scope="module")
def engine() -> dict[str, str]:
    host = subprocess.run([IMAGES / "engine.sh", "--print-host"], capture_output=True, text=True, check=True)
    return os.environ | {"DOCKER_HOST": host.stdout.strip()}


@contextmanager
def image_built(command: list[str], tag: str, engine: dict[str, str]) -> Iterator[str]:
    """An image that a command builds, for as long as it is needed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=engine, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        yield f"{NAME}:{tag}"
    finally:
        subprocess.run(["docker", "rmi", "--force", f"{NAME}:{tag}"], check=True, env=engine, capture_output=True)


@pytest.fixture(scope="module")
def variant(engine: dict[str, str]) -> Iterator[str]:
    tag = f"test-{uuid.uuid4().hex[:12]}"
    with image_built(["make", "image-with", f"TAG={tag}", "PIP=inflection", "APT=figlet"], tag, engine) as image:
        yield image


@asynccontextmanager
async def caller_of(image: str, data_dir: Path) -> AsyncIterator[Caller]:
    """A conversation with a service that runs its programs in an image."""
    service = build(Settings(data_dir=data_dir, image=image, pool_size=1))
    async with running(service):
        yield Caller(service)


def output_of(image: str, *command: str, engine: dict[str, str]) -> str:
    start = ["docker", "run", "--rm", "--network=none", "--entrypoint", command[0], image, *command[1:]]
    return subprocess.run(start, capture_output=True, text=True, check=False, env=engine).stdout


def settings_of(image: str, engine: dict[str, str]) -> dict[str, object]:
    inspected = subprocess.run(
        ["docker", "image", "inspect", image], capture_output=True, text=True, check=True, env=engine
    )
    return {
        key: json.loads(inspected.stdout)[0]["Config"][key] for key in ("Env", "User", "Entrypoint", "WorkingDir")
    }


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_programs_use_what_was_added(variant, tmp_path):
    async with caller_of(variant, tmp_path / "data") as call:
        code = "import inflection, pandas\nopen('files/a.txt', 'w').write(inflection.pluralize('post'))"
        response = await call(code, ["a.txt"])
        assert response.ok, response.report
        assert await call.text("a.txt") == "posts"
        assert (await call("figlet x >a.txt && test -s a.txt", language=Language.BASH)).ok


@pytest.mark.slow
def test_the_variant_has_neither_installer_nor_other_settings(variant, engine):
    assert settings_of(variant, engine) == settings_of(own_image(), engine)
    script = (
        r"which apt-get pip; find / -xdev \( -perm /6000 -o -path /build -o -path /etc/apt -o -path /var/lib/apt"
        r" -o -name 'sources.list*' -o -name pip.conf -o -path '/opt/proofbox/*' -not -readable \) 2>/dev/null"
    )
    assert output_of(variant, "bash", "-c", script, engine=engine) == ""


@pytest.mark.slow
def test_the_bill_of_materials_of_the_variant_names_what_was_added(variant, engine):
    def components(image: str) -> set[str]:
        bill = json.loads(output_of(image, "cat", "/opt/proofbox/sbom.cdx.json", engine=engine))
        return {component["name"] for component in bill["components"]}

    assert components(variant) - components(own_image()) == {"inflection", "figlet"}
    assert components(own_image()) - components(variant) == set()


@pytest.mark.slow
def test_a_package_that_needs_another_version_of_what_is_there_is_refused(engine):
    command = [str(IMAGES / "variant.sh"), f"test-{uuid.uuid4().hex[:12]}", "--pip", "pandas<2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=engine)
    assert done.returncode == 1
    assert "conflicting dependencies" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the variant: variant.sh TAG"),
        (["latest", "--pip", "inflection"], "'latest' is the image itself"),
        (["mine"], "name packages: --pip 'NAME…'"),
        (["mine", "--conda", "x"], "unknown argument --conda"),
    ],
)
def test_wrong_arguments_are_refused_in_one_sentence(arguments, message):
    done = subprocess.run([IMAGES / "variant.sh", *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"variant: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_a_dockerfile_of_one_from_line_adds_a_module_of_ones_own(engine, tmp_path):
    (tmp_path / "greeting.py").write_text("TEXT = 'hello'\n", encoding="utf-8")
    (tmp_path / "Dockerfile").write_text(
        f"FROM {own_image()}\nCOPY greeting.py /opt/proofbox/venv/lib/python3.13/site-packages/\n", encoding="utf-8"
    )
    tag = f"test-{uuid.uuid4().hex[:12]}"
    with image_built(["docker", "build", "--tag", f"{NAME}:{tag}", str(tmp_path)], tag, engine) as image:
        async with caller_of(image, tmp_path / "data") as call:
            response = await call("import greeting\nopen('a.txt', 'w').write(greeting.TEXT)", ["a.txt"])
            assert response.ok, response.report
