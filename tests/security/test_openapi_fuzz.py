"""Requests made from the OpenAPI document, right ones and wrong ones, to the service as it is shipped."""

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from service_process import REPOSITORY, eventually, serving

from proofbox.service.app.settings import Settings

pytestmark = pytest.mark.docker

HERE = Path(__file__).parent
MINUTES = float(os.environ.get("PROOFBOX_TEST_FUZZ_MINUTES", "0"))
SCOPES = "calls:run,calls:read,artifacts:read,artifacts:write,timeline:read,timeline:write,metrics:read,keys:read"
UNLIMITED = (
    *("--scopes", SCOPES, "--limit", "requests_per_minute=0", "--limit", "calls_per_minute=0"),
    *("--limit", "upload_bytes_per_minute=0", "--limit", "queued_calls=0", "--limit", "running_calls=0"),
)
SEED = os.environ.get("PROOFBOX_TEST_FUZZ_SEED", "20260704")


@pytest.fixture
def key(tmp_path) -> str:
    """The secret of a key that may do everything, as often as it likes."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "proofbox.cli",
            "keys",
            "create",
            "--name",
            "fuzz",
            "--json",
            *UNLIMITED,
        ],
        cwd=REPOSITORY,
        env={**os.environ, "PROOFBOX_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        check=True,
    )
    secret: str = json.loads(done.stdout)["secret"]
    return secret


@pytest.fixture
def fuzzed(tmp_path, engine, key):
    settings = {"pool_size": 1, "wall_s": 5, "auth": "required"}
    with serving(tmp_path / "data", engine, engine=Settings().engine, **settings) as process:
        process.client.headers["Authorization"] = f"Bearer {key}"
        yield process


def schemathesis(url: str, key: str, secrets: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the program `schemathesis` against a service."""
    amount = ["--max-time", str(int(MINUTES * 30))] if MINUTES else ["--max-examples", "5"]
    return subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"),
            # A call that was deleted is a cancelled one: it stays, and says so.
            *("--checks", "all", "--exclude-checks", "use_after_free"),
            *("--phases", "examples,coverage,fuzzing,stateful", "--continue-on-failure"),
            *("--seed", SEED, *amount, "--request-timeout", "60", "--warnings", "off", "--no-color"),
            *("--header", f"Authorization: Bearer {key}"),
        ],
        cwd=folder,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "openapi_checks",
            "PYTHONPATH": f"{HERE}{os.pathsep}{REPOSITORY}",
            "PROOFBOX_TEST_FUZZ_SECRETS": "\n".join(secrets),
            "PROOFBOX_TEST_FUZZ_RUNS": "1000" if MINUTES else "8",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(900 + MINUTES * 60)
def test_what_the_service_answers_is_what_its_document_says_and_never_its_own_failure(fuzzed, key, tmp_path):
    done = schemathesis(fuzzed.url, key, [key, str(fuzzed.data_dir), str(REPOSITORY)], tmp_path)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    assert eventually(lambda: httpx.get(f"{fuzzed.url}/readyz").status_code, lambda status: status == 200) == 200
    assert [line for line in fuzzed.complaints if "ERROR" in line or "Traceback" in line] == []
    assert fuzzed.staged() == []
