"""What a model reads of typical calls, and the catalogue, stay within the figures of `make bench-tokens`."""

import pytest

from bench.tokens import counted_calls, counted_catalogue

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]


async def test_every_figure_of_the_benchmark_is_within_its_bar(http):
    figures, _ = await counted_calls(http)
    figures += await counted_catalogue(http)
    barred = [figure for figure in figures if figure.bar is not None]
    assert [figure for figure in barred if not figure.is_met] == []
    assert len(barred) == 6
