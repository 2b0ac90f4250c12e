"""What the wheel holds: one package, with all that the service and the build of the sandbox image need."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from proofbox.service.app.own_image import FOLDER, content_hash, own_image

INSTALLED_BYTES_MAX = 120 * 1024 * 1024  # as du counts it


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def installed_package(installed) -> Path:
    (package,) = installed.glob("lib/python*/site-packages/proofbox")
    return package


def test_nothing_but_the_package_is_at_the_top(names):
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"proofbox"}
    assert not any("__pycache__" in name or "_cache/" in name or "/tests/" in name for name in names)


def test_every_file_of_the_image_and_every_script_is_in_the_wheel(names):
    needed = {
        path.relative_to(FOLDER).as_posix()
        for path in FOLDER.rglob("*")
        if path.is_file() and "_cache" not in str(path) and "__pycache__" not in path.parts
    } - {"mypy.ini"}
    assert {name.removeprefix("proofbox/sandbox_images/") for name in names if "sandbox_images/" in name} == needed


def test_data_files_of_the_service_are_in_the_wheel(names):
    assert {
        "proofbox/service/timeline/llama_vocabulary.json",
        "proofbox/service/react/memsearch/unrelated.json",
        "proofbox/contracts/schemas/tool_call_request.schema.json",
        "proofbox/demo_programs/analysis.py",
        "proofbox/docs_site.zip",
    } <= names


def test_the_built_console_is_in_the_wheel_without_its_sources(names):
    console = {name for name in names if name.startswith("proofbox/service/console/") and not name.endswith(".py")}
    built = {path.name for path in (FOLDER.parent / "service" / "console" / "static").iterdir()}
    assert {"console.js", "console.css", "page.html", "icon.svg", "licences.txt"} == built
    assert console == {f"proofbox/service/console/static/{name}" for name in built}


def test_the_installed_package_names_the_image_of_the_checkout(installed):
    images = installed_package(installed) / "sandbox_images"
    assert content_hash(images) == content_hash(FOLDER)
    printed = subprocess.run([images / "build.sh", "--print-reference"], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == own_image()


def test_an_installation_without_extras_is_bounded(installed):
    (site_packages,) = installed.glob("lib/python*/site-packages")
    size = sum(path.stat().st_blocks * 512 for path in site_packages.rglob("*") if path.is_file())
    assert size <= INSTALLED_BYTES_MAX


def test_no_module_of_an_extra_is_in_an_installation_without_extras(installed):
    code = "from proofbox.service.app.extras import EXTRAS, missing_modules\n"
    code += "print([extra for extra in EXTRAS if missing_modules(extra) == list(EXTRAS[extra])])"
    command = [installed / "bin" / "python", "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['memory', 'gateway', 's3', 'postgres', 'packages', 'nats', 'otlp']"
