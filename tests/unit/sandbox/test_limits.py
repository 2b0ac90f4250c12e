"""The limits of a call: the operator's, lowered by the request."""

from dataclasses import fields

import pytest

from proofbox.contracts.tool_call_request import Limits
from proofbox.service.errors import LimitNotAllowedError
from proofbox.service.sandbox.limits import CallLimits, limit_names

MIB = 1024 * 1024
OPERATOR = CallLimits(
    wall_s=600,
    cpus=2.0,
    memory_bytes=1024 * MIB,
    pids=256,
    out_dir_bytes=256 * MIB,
    out_dir_inodes=20_000,
    file_bytes=256 * MIB,
    files=5_000,
    depth=32,
    output_bytes=256 * MIB,
    artifact_bytes=100 * MIB,
)
LOWER = {
    "wall_s": 5.0,
    "cpus": 0.5,
    "memory_bytes": 600 * MIB,
    "pids": 16,
    "out_dir_bytes": MIB,
    "out_dir_inodes": 99,
}
LOWER |= {"file_bytes": 5, "files": 6, "depth": 7, "output_bytes": 8, "artifact_bytes": 9}


def test_a_request_can_speak_of_every_limit_and_of_nothing_else():
    assert list(Limits.model_fields) == list(limit_names()) == [field.name for field in fields(CallLimits)]
    assert set(LOWER) == set(limit_names())


def test_nothing_asked_leaves_the_operators_limits():
    assert OPERATOR.lowered(Limits()) == OPERATOR


def test_every_limit_can_be_lowered():
    lowered = OPERATOR.lowered(Limits(**LOWER))
    assert {name: getattr(lowered, name) for name in limit_names()} == LOWER


@pytest.mark.parametrize("name", limit_names())
def test_a_limit_above_the_operators_is_refused_with_both_numbers(name):
    allowed = getattr(OPERATOR, name)
    assert getattr(OPERATOR.lowered(Limits(**{name: allowed})), name) == allowed
    with pytest.raises(LimitNotAllowedError) as refused:
        OPERATOR.lowered(Limits(**{name: allowed + 1}))
    assert refused.value.message == (
        f"limits.{name} is {float(allowed + 1) if name in {'wall_s', 'cpus'} else allowed + 1}, "
        f"the operator allows {allowed} at most; ask for less or leave it out"
    )


@pytest.mark.parametrize(
    ("asked", "timeout_s", "wall_s"), [(None, 5, 5), (None, 601, 600), (10, 5, 5), (10, 20, 10), (10, None, 10)]
)
def test_the_models_timeout_is_capped_and_never_refused(asked, timeout_s, wall_s):
    assert OPERATOR.lowered(Limits(wall_s=asked), timeout_s=timeout_s).wall_s == wall_s


def test_out_dir_never_fills_more_than_half_of_a_lowered_memory():
    assert OPERATOR.lowered(Limits(memory_bytes=100 * MIB)).out_dir_bytes == 50 * MIB
    both = Limits(memory_bytes=100 * MIB, out_dir_bytes=80 * MIB)
    assert OPERATOR.lowered(both).out_dir_bytes == 50 * MIB
    assert OPERATOR.lowered(Limits(memory_bytes=600 * MIB)).out_dir_bytes == 256 * MIB


@pytest.mark.parametrize("name", limit_names())
def test_what_is_mounted_needs_a_container_of_its_own_and_what_is_a_control_groups_an_update(name):
    lowered = OPERATOR.lowered(Limits(**{name: LOWER[name]}))
    is_mounted, is_grouped = name in {"out_dir_bytes", "out_dir_inodes"}, name in {"cpus", "memory_bytes", "pids"}
    assert (lowered.needs_own_container(OPERATOR), lowered.needs_update(OPERATOR)) == (is_mounted, is_grouped)
    assert (OPERATOR.needs_own_container(OPERATOR), OPERATOR.needs_update(OPERATOR)) == (False, False)


def test_memory_that_is_too_little_for_the_operators_out_dir_needs_a_container_of_its_own():
    needs = [
        OPERATOR.lowered(Limits(memory_bytes=mebibytes * MIB)).needs_own_container(OPERATOR)
        for mebibytes in (512, 511)
    ]
    assert needs == [False, True]
