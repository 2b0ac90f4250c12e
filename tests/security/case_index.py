"""The index of hostile cases: `cases.toml` beside this file, a sentence and a test for each."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INDEX = Path(__file__).with_name("cases.toml")
# Tried inside the image, by one test of ours for all of them.
IN_IMAGE = "tests/container/in_image/hostile/"
TRIED_BY = "tests/container/images/test_render_programs.py::test_hostile_documents_reach_nothing_and_end_in_time"

COLLECTED = pytest.StashKey[tuple[frozenset[str], tuple[str, ...]]]()
"""The collected files, and the ids of the hostile cases among their tests, whether they are selected or not."""


@dataclass(frozen=True)
class Case:
    """One hostile case.

    Attributes:
        family: what it belongs to.
        tried: what is tried, in a sentence.
        named: the test as the index names it, or the document of the image's own tests.
    """

    family: str
    tried: str
    named: str

    @property
    def test(self) -> str:
        """The id of the test that pytest collects for it."""
        return TRIED_BY if self.named.startswith(IN_IMAGE) else self.named

    @property
    def function(self) -> str:
        """The same without the parameters of the test."""
        return self.test.partition("[")[0]

    def is_proven_by(self, collected: str) -> bool:
        """Whether a test, by its id, is one that the case names."""
        return collected == self.test or collected.startswith(f"{self.test}[")


@cache
def cases() -> tuple[Case, ...]:
    """All cases, in the order of the index."""
    index = tomllib.loads(INDEX.read_text(encoding="utf-8"))
    return tuple(Case(family, tried, named) for family, rows in index.items() for tried, named in rows.items())


@cache
def functions() -> frozenset[str]:
    """The tests that the index names, without parameters."""
    return frozenset(case.function for case in cases())
