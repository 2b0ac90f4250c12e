"""Imports point down only, and an import that does not is seen."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINTER = Path(sys.executable).parent / "lint-imports"


def lint(folder):
    done = subprocess.run(
        [LINTER, "--no-cache", "--config", "pyproject.toml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        # The copy is looked at, not what is installed.
        env={"PYTHONPATH": str(folder), "PATH": "", "COLUMNS": "200", "TERM": "dumb"},
    )
    return done.returncode, " ".join(done.stdout.split()), done.stderr


@pytest.fixture
def copied(tmp_path):
    for package in ("contracts", "sandbox_images", "service"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "proofbox", tmp_path / "proofbox", symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_imports_point_down_only():
    status, said, _ = lint(ROOT)
    assert (status, "5 kept, 0 broken." in said) == (0, True), said


@pytest.mark.parametrize(
    ("module", "imported", "shown"),
    [
        (
            "service/timeline/block_writer.py",
            "proofbox.service.api.routes.health",
            "proofbox.service.timeline.block_writer -> proofbox.service.api.routes.health",
        ),
        (
            "service/sandbox/limits.py",
            "proofbox.service.app.settings",
            "proofbox.service.sandbox.limits -> proofbox.service.app.settings",
        ),
        (
            "service/storage/artifacts/durable_files.py",
            "proofbox.service.api.responses",
            "proofbox.service.storage.artifacts.durable_files -> proofbox.service.api.responses",
        ),
        (
            "contracts/codes.py",
            "proofbox.service.sandbox.limits",
            "proofbox.contracts.codes -> proofbox.service.sandbox.limits",
        ),
    ],
)
def test_an_import_that_points_up_or_aside_is_seen(copied, module, imported, shown):
    source = copied / module
    source.write_text(source.read_text() + f"\nimport {imported}  # noqa\n")
    status, said, _ = lint(copied)
    assert (status, shown in said) == (1, True), said
