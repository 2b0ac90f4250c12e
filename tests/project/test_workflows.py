"""The workflows of CI run targets of the Makefile and nothing else."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _commands(workflow: Path) -> list[str]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    commands = []
    for job in jobs.values():
        targets = job.get("strategy", {}).get("matrix", {}).get("target", [""])
        runs = [step["run"] for step in job["steps"] if "run" in step]
        commands += [run.replace("${{ matrix.target }}", target) for run in runs for target in targets]
    return commands


def test_there_are_workflows_for_changes_for_the_night_and_for_releases() -> None:
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "release.yml", "slow.yml"]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_is_make_with_targets_that_exist(workflow: Path) -> None:
    commands = [re.fullmatch(r"(?:sudo )?make ([a-z -]+?)(?: [A-Z]+=\S.*)?", line) for line in _commands(workflow)]

    assert commands != []
    assert None not in commands
    named = {target for found in commands if found for target in found[1].split()}
    assert named - TARGETS == set()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_has_a_version(workflow: Path) -> None:
    used = re.findall(r"uses: (\S+)", workflow.read_text())

    assert used != []
    assert [
        action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@(?:release/)?v\d+(?:\.\d+)*", action)
    ] == []
