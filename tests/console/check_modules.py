"""The modules of the console in Node.js, without a page: bundled by esbuild, then run by `node --test`."""

import os
import subprocess
from pathlib import Path

import pytest

MODULES = Path(os.environ.get("CONSOLE_MODULES", ".console/node_modules")).absolute()
TESTS = sorted((Path(__file__).parent / "modules").glob("*.test.mjs"))
# What the modules read of the page when they are loaded.
_PAGE = (
    "globalThis.location = new URL('http://localhost/');"
    "globalThis.sessionStorage = globalThis.localStorage = {getItem: () => null, setItem() {}, removeItem() {}};"
)
_TIME_LIMIT_S = 120


@pytest.mark.parametrize("module", TESTS, ids=lambda path: path.name)
def test_the_modules_of_the_console(module, tmp_path):
    bundle = tmp_path / f"{module.stem}.mjs"
    bundled = [
        str(MODULES / ".bin" / "esbuild"), str(module), "--bundle", "--platform=node", "--format=esm",
        "--log-level=warning", f"--banner:js={_PAGE}", f"--outfile={bundle}",
        '--define:import.meta.url="http://localhost/console/console.js"',
    ]  # fmt: skip
    made = subprocess.run(
        bundled, capture_output=True, text=True, check=False, env={**os.environ, "NODE_PATH": str(MODULES)}
    )
    assert made.returncode == 0, made.stderr
    run = subprocess.run(
        ["node", "--test", str(bundle)], capture_output=True, text=True, check=False, timeout=_TIME_LIMIT_S
    )
    assert run.returncode == 0, run.stdout + run.stderr
