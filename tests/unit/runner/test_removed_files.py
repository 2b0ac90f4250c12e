"""What the runner says of files that a program removed: all of them, within what a frame holds."""

import importlib
import os
import shutil
from pathlib import Path

import pytest

from proofbox.service.sandbox.runner.responses import Summary

RUNNER = Path(__file__).parents[3] / "sandbox_images" / "runner"
NAMES_MAX = 2_000


@pytest.fixture(scope="module")
def runner():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RUNNER))
        yield importlib.import_module("out_dir"), importlib.import_module("elsewhere")


@pytest.mark.parametrize(
    ("stem", "count", "told"),
    [("a", 150, 150), ("a", NAMES_MAX + 1, NAMES_MAX), ("é" * 100, NAMES_MAX, 837)],
)
def test_all_removed_files_are_told_up_to_a_number_and_a_size(runner, tmp_path, stem, count, told):
    out_dir, elsewhere = runner
    root = tmp_path.resolve() / "out"
    root.mkdir()
    out = out_dir.OutDir(str(root))
    out.begin_turn("turn_1")
    paths = [f"turn_1/files/cache/{stem}{number:04}" for number in range(count)]
    for path in paths:
        os.close(out.create(path))
        out.seal(path, writable=True)
    shutil.rmtree(root / "turn_1/files/cache")
    removed = elsewhere.removed(out)
    assert removed == paths[:told]


def test_the_service_takes_as_many_as_the_runner_tells():
    said = {"extras_total": 0, "files_exceeded": False, "depth_exceeded": False}
    paths = tuple(f"turn_1/files/{number}" for number in range(NAMES_MAX))
    assert Summary.model_validate({**said, "removed": list(paths)}).removed == paths
    with pytest.raises(ValueError, match="at most 2000"):
        Summary.model_validate({**said, "removed": [*paths, "turn_1/files/a"]})
