"""The scripts of the compose file and the chart, run by a shell with programs that fail first.

Run by `make test-deploy`.
"""

import os
import re
import subprocess
import textwrap

import pytest
import yaml
from deploy_programs import ROOT

TEMPLATE = (ROOT / "deploy/helm/proofbox/templates/_pod.tpl").read_text()
BUCKET = yaml.safe_load((ROOT / "deploy/compose/compose.yaml").read_text())["services"]["s3-bucket"]["command"][0]
# Each takes the number of its run, from 1, as $run.
COUNTED = (
    '#!/bin/sh\nrun=$(($(cat "$0.runs" 2>/dev/null || echo 0) + 1)); echo $run >"$0.runs"\necho "$*" >>"$0.log"\n'
)


def script_of(container):
    """The script of a container of the chart."""
    if container == "first-key":  # it is in a pod or in a Job
        return re.search(r'define "proofbox.firstKey" -}}\n(.*?){{- end', TEMPLATE, re.DOTALL)[1]
    found = re.search(rf"- name: {container}\n.*?args:\n +- \|\n(.*?)\n {{4}}env:", TEMPLATE, re.DOTALL)
    return textwrap.dedent(found[1])


@pytest.fixture
def shell(tmp_path):
    """Run a script with programs of this test; its exit status."""

    def run(script, **programs):
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        for name, text in {"sleep": "", **programs}.items():
            path = folder / name.replace("_", "-")
            path.write_text(COUNTED + text)
            path.chmod(0o755)
        path = f"{folder}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "SANDBOX_IMAGE": "proofbox-sandbox"}
        done = subprocess.run(["sh", "-ec", script], env=environment, capture_output=True, timeout=20, check=False)
        return done.returncode

    run.log = lambda name: (tmp_path / "bin" / f"{name}.log").read_text().splitlines()
    return run


def test_the_bucket_is_asked_for_until_it_is_there(shell):
    weed = 'if [ $run -ge 6 ] && [ "$(cat)" = s3.bucket.list ]; then echo "  proofbox size:0"; fi\n'
    assert shell(BUCKET, weed=weed) == 0
    assert len(shell.log("weed")) == 7  # it lists, makes, lists, …; at first in vain, without an exit status


@pytest.mark.parametrize(
    ("docker", "calls"),
    [
        ('[ "$1" != pull ]\n', ["info", "image inspect proofbox-sandbox"]),  # it was pulled before
        (
            '[ "$1" = info ] || [ $run -ge 5 ]\n',
            ["info", "image inspect proofbox-sandbox"] + ["pull --quiet proofbox-sandbox"] * 3,
        ),
    ],
)
def test_the_engine_pulls_the_image_once_and_until_it_succeeds(shell, docker, calls):
    assert shell(script_of("engine"), docker=docker, **{"dockerd-entrypoint.sh": ""}) == 0
    assert shell.log("docker") == calls


@pytest.fixture
def first_key(shell, tmp_path):
    return lambda proofbox: shell(
        script_of("first-key").replace("/var/lib/proofbox", str(tmp_path)), proofbox=proofbox
    )


def test_the_first_key_is_made_once(first_key, shell, tmp_path):
    assert [first_key('[ "$2" = create ] && echo "{}" || echo "[]"\n') for _ in range(2)] == [0, 0]
    assert shell.log("proofbox") == ["keys list --json", "keys create --name first --json"]
    assert (tmp_path / "first-key.json").read_text() == "{}\n"


def test_a_list_of_keys_that_fails_ends_the_start_and_is_tried_again(first_key, shell):
    assert first_key("exit 3\n") == 3
    assert first_key('[ "$2" = create ] && echo "{}" || echo "[]"\n') == 0
    assert shell.log("proofbox")[1:] == ["keys list --json", "keys create --name first --json"]


def test_no_first_key_is_made_where_there_are_keys(first_key, shell):
    assert first_key('echo "[1]"\n') == 0
    assert shell.log("proofbox") == ["keys list --json"]
