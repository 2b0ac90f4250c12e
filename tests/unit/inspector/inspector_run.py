"""Runs the inspector as the sandbox does, as a process of its own, on files that a test module describes."""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INSPECTOR = Path(__file__).parents[3] / "sandbox_images" / "inspector"
# A text, and checks that are never done with it.
ENDLESS = {"json_schema": {"pattern": "^(a+)+$"}}
ENDLESS_TEXT = json.dumps("a" * 60 + "!")


@dataclass(frozen=True)
class Case:
    """One file and the verdict it must get.

    Attributes:
        claim: What the case shows; the test's id.
        path: Where the file lies below the root; its extension is the promise.
        content: Its bytes.
        problem: The whole sentence, or its start if it ends with an ellipsis; None for a file that is fine.
        checks: The contract's checks.
        facts: The facts that must have been measured; facts not named here are not compared.
    """

    claim: str
    path: str
    content: bytes
    problem: str | None = None
    checks: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def run_inspector(root: Path, files: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """Send one request; returns its lines. Fails if the inspector does anything but answer."""
    request = {"root": str(root), "seconds_per_file": 30, "files": files} | more
    done = subprocess.run(
        [sys.executable, "-I", str(INSPECTOR)],
        input=json.dumps(request).encode(),
        capture_output=True,
        check=False,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return [json.loads(line) for line in done.stdout.splitlines()]


def verdicts_of(cases: Iterable[Case], root: Path, **limits: Any) -> dict[str, dict[str, Any]]:
    """Write the files of all cases and judge them in one run; returns the verdicts by claim."""
    files = []
    for number, case in enumerate(cases):
        path = f"{number}/{case.path}"
        (root / path).parent.mkdir(parents=True)
        (root / path).write_bytes(case.content)
        files.append({"id": case.claim, "path": path, "checks": case.checks})
    verdicts = run_inspector(root, files, **limits)
    assert [verdict["id"] for verdict in verdicts] == [file["id"] for file in files]
    return {verdict["id"]: verdict for verdict in verdicts}


def compared(verdict: dict[str, Any], case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the part of a verdict that a case speaks of, and what it must be."""
    said = verdict["problem"]
    if case.problem and case.problem.endswith("…") and said is not None:
        said = said[: len(case.problem) - 1] + "…"
    actual = {
        "ok": verdict["ok"],
        "problem": said,
        "facts": {name: verdict["facts"].get(name) for name in case.facts},
    }
    return actual, {"ok": case.problem is None, "problem": case.problem, "facts": case.facts}
