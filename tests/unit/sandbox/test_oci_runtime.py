"""The program of an OCI runtime: its loss is noticed before a call needs it."""

import os

import pytest

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.oci.runtime import Runtime


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "crun"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_a_runtime_that_is_there_passes(program):
    Runtime("crun", (str(program),)).check()


@pytest.mark.parametrize("lose", [os.unlink, lambda file: file.chmod(0o644)])
def test_a_runtime_that_is_gone_or_may_not_be_run_is_named(program, lose):
    runtime = Runtime("crun", (str(program),))
    lose(program)
    with pytest.raises(EngineUnavailableError, match=f"no program {program.name};"):
        runtime.check()


def test_the_program_that_starts_a_runtime_in_its_namespace_is_looked_for_too(program):
    command = ("no_such_nsenter", "--mount=/proc/1/fd/3", "--", str(program))
    with pytest.raises(EngineUnavailableError, match="no_such_nsenter"):
        Runtime("crun", command, mounts_fd=3).check()
