"""An import that points up or aside is seen by `make layers`."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINTER = Path(sys.executable).parent / "lint-imports"
WRONG = {
    "service/timeline/block_writer.py": "proofbox.service.api.routes.health",
    "service/sandbox/limits.py": "proofbox.service.app.settings",
    "service/storage/artifacts/durable_files.py": "proofbox.service.api.responses",
    "contracts/codes.py": "proofbox.service.sandbox.limits",
}


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
    return done.returncode, " ".join(done.stdout.split())


def test_an_import_that_points_up_or_aside_is_seen(tmp_path):
    for package in ("contracts", "sandbox_images", "service"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "proofbox", tmp_path / "proofbox", symlinks=True)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for module, imported in WRONG.items():
        source = tmp_path / module
        source.write_text(f"{source.read_text()}\nimport {imported}  # noqa\n")

    status, said = lint(tmp_path)

    named = {module: f"proofbox.{module.removesuffix('.py').replace('/', '.')}" for module in WRONG}
    unseen = [module for module, imported in WRONG.items() if f"{named[module]} -> {imported}" not in said]
    assert (status, unseen) == (1, []), said
