"""The speed benchmark's own judgements: percentiles, ratios with their spread, what counts, what is met."""

import asyncio
import json
from pathlib import Path

import pytest

from bench.speed.bar import BARS, bar_table
from bench.speed.clients import DRAINING, busily, calmly, turned
from bench.speed.docker_api import daemons_socket, stdout_of
from bench.speed.jobs import chart, contract, large_file, many_files, one_page, printing, thirty_pages
from bench.speed.model import DOCKER, OURS, OURS_OCI, CallFailedError, Job, Measured, Results, Turn
from bench.speed.plan import FULL, QUICK, Plan
from bench.speed.report import text_of, write
from bench.speed.spread import Spread, percentile, ratio, ratio_of_medians, spread

_MACHINE = {
    "cores": "2",
    "processor": "A",
    "memory": "8 GB",
    "load before": "0.1",
    "Linux": "6",
    "image": "abc",
    "settings": "none",
}


class Clockwork:
    """A side whose calls take as long as told, and that counts them."""

    name = "clockwork"
    pause_s = 0.0

    def __init__(self, took_s: float) -> None:
        self._took_s = took_s
        self.started = 0
        self.running: list[int] = []

    async def prepare(self, job: Job) -> None:
        pass

    async def run(self, job: Job) -> None:  # noqa: ARG002 - the port has it
        self.started += 1
        self.running.append(self.running[-1] + 1 if self.running else 1)
        await asyncio.sleep(self._took_s)
        self.running.append(self.running[-1] - 1)


def _results() -> Results:
    row = Measured("print", "print(1)", 1)
    row.sides = {
        OURS: [Turn([10.0, 30.0, 20.0]), Turn([40.0])],
        OURS_OCI: [Turn([5.0]), Turn([10.0])],
        DOCKER: [Turn([200.0]), Turn([200.0, 1200.0])],
    }
    return Results(machine=_MACHINE, calm=[row])


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([3.0], 99, 3.0),
        ([4.0, 1.0, 3.0, 2.0], 50, 2.5),
        ([1.0, 2.0, 3.0, 4.0, 5.0], 90, 4.6),
        ([5.0, 1.0], 0, 1.0),
        ([5.0, 1.0], 100, 5.0),
    ],
)
def test_a_percentile_lies_between_neighbours_in_proportion(
    values: list[float], percent: float, expected: float
) -> None:
    assert percentile(values, percent) == pytest.approx(expected)


@pytest.mark.parametrize(("values", "percent"), [([], 50), ([1.0], 101), ([1.0], -1)])
def test_there_is_no_percentile_of_nothing_or_beyond_a_hundred(values: list[float], percent: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, percent)


def test_a_spread_is_the_median_and_the_quartiles() -> None:
    assert spread([5.0, 1.0, 2.0, 4.0, 3.0]) == Spread(median=3.0, low=2.0, high=4.0)


def test_ratios_are_taken_within_a_round_so_that_a_slow_spell_cancels_out() -> None:
    theirs = [[100.0, 110.0, 90.0], [1000.0, 1100.0, 900.0], [200.0]]
    ours = [[10.0], [100.0], [10.0]]

    assert ratio_of_medians(theirs, ours) == Spread(median=10.0, low=10.0, high=15.0)


def test_sides_of_different_rounds_have_no_ratio() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratio([1.0, 2.0], [1.0])


def test_calls_that_used_up_the_pool_do_not_count() -> None:
    side = Clockwork(0.01)

    turn = asyncio.run(busily(side, printing(), clients=3, calls=7))

    assert (len(turn.latencies_ms), side.started) == (7, DRAINING + 7)
    assert turn.rate == pytest.approx(7 / turn.elapsed_s)


def test_a_rate_is_not_taken_from_less_than_two_calls_of_each_client() -> None:
    with pytest.raises(ValueError, match="8 are needed"):
        asyncio.run(busily(Clockwork(0.0), printing(), clients=4, calls=7))


@pytest.mark.parametrize("plan", [FULL, QUICK], ids=["full", "quick"])
def test_every_load_of_a_plan_has_enough_calls(plan: Plan) -> None:
    loads = [load for loads in plan.busy.values() for load in loads]

    assert [load for load in loads if load.calls < 2 * load.clients] == []


def test_a_calm_client_makes_its_calls_one_after_another() -> None:
    side = Clockwork(0.001)

    turn = asyncio.run(calmly(side, printing(), 5))

    assert (len(turn.latencies_ms), max(side.running)) == (5, 1)


def test_every_side_comes_first_once() -> None:
    sides = [Clockwork(number) for number in range(3)]

    assert [turned(sides, number)[0] for number in range(3)] == sides


def test_a_call_that_prints_something_else_or_writes_too_little_is_an_error() -> None:
    with pytest.raises(CallFailedError, match="printed"):
        printing().check(b"2\n", {})
    with pytest.raises(CallFailedError, match="missing or too small"):
        chart().check(b"1\n", {"chart.png": 3})


@pytest.mark.parametrize(
    "job",
    [printing(), chart(), contract(), one_page(), thirty_pages(), many_files(), large_file()],
    ids=lambda job: job.name,
)
def test_a_job_is_either_a_program_or_a_document(job: Job) -> None:
    assert (job.code is None) != (job.document is None)
    if job.code is not None:
        compile(job.code, job.name, "exec")


def test_a_bar_is_met_on_its_limit_and_missed_beyond() -> None:
    latency = next(bar for bar in BARS if bar.unit == "ms" and bar.limit == 50)
    times = next(bar for bar in BARS if bar.limit == 20)

    assert [latency.is_met(value) for value in (50.0, 50.1)] == [True, False]
    assert [times.is_met(value) for value in (20.0, 19.9)] == [True, False]


def test_a_figure_is_not_rounded_onto_its_limit() -> None:
    latency = next(bar for bar in BARS if bar.unit == "ms" and bar.limit == 50)
    times = next(bar for bar in BARS if bar.limit == 20)

    assert [times.shown(value) for value in (19.97, 19.9996, 20.04, 20.0)] == [
        "19.97 times",
        "19.9996 times",
        "20 times",
        "20 times",
    ]
    assert [latency.shown(value) for value in (49.96, 50.02, 1234.5)] == ["50 ms", "50.02 ms", "1234 ms"]


def test_the_bars_say_what_was_reached_and_what_was_not_measured() -> None:
    lines = bar_table(_results()).splitlines()

    assert lines[2:5] == [
        (
            "| `print(1)`, pool warm, engine `docker`: `docker run` ÷ ours, p50 | ≥ 15 times | 13.8 times | **no** "
            "| not measured |  |"
        ),
        (
            "| `print(1)`, pool warm, engine `oci`: `docker run` ÷ ours, p50 | ≥ 20 times | not measured |  "
            "| 55 times | yes |"
        ),
        "| 3 promised files, checked: `docker run` ÷ ours | ≥ 8 times | not measured |  | not measured |  |",
    ]


def test_the_tables_show_percentiles_and_ratios_with_their_quartiles() -> None:
    ours = "**25.0 / 37.0 / 39.7** | **7.5 / 9.5 / 9.9**"
    assert f"| print(1) | {ours} | 200 / 1,000 / 1,180 | 14 (12 to 16); 55 (48 to 62) |" in text_of(_results())


def test_a_run_is_written_as_figures_tables_charts_and_between_the_marks_of_the_pages(tmp_path: Path) -> None:
    page, front = tmp_path / "docs" / "speed.md", tmp_path / "README.md"
    page.parent.mkdir()
    for each in (page, front):
        each.write_text("before\n<!-- bench-speed -->\nold\n<!-- /bench-speed -->\nafter\n")

    write(_results(), tmp_path)

    lines = page.read_text().splitlines()
    figures = json.loads((tmp_path / "bench/results/speed.json").read_text())
    assert (lines[:3], lines[-2:]) == (
        ["before", "<!-- bench-speed -->", "<picture>"],
        ["<!-- /bench-speed -->", "after"],
    )
    assert "old" not in lines
    assert 'src="docs/bench/speed.svg"' in front.read_text()
    assert bar_table(_results()) in page.read_text()
    assert bar_table(_results()) not in front.read_text()
    assert figures["calm"][0]["sides"][OURS][0]["latencies_ms"] == [10.0, 30.0, 20.0]
    assert (tmp_path / "bench/results/speed.md").read_text() == text_of(_results())
    assert sorted(path.name for path in (tmp_path / "docs/bench").iterdir()) == ["speed-dark.svg", "speed.svg"]


def test_standard_output_is_read_out_of_the_frames_of_a_container() -> None:
    frames = [(1, b"one\n"), (2, b"a warning"), (1, b""), (1, b"two")]
    stream = b"".join(bytes([number, 0, 0, 0]) + len(said).to_bytes(4) + said for number, said in frames)
    assert stdout_of(stream) == b"one\ntwo"


@pytest.mark.parametrize(
    ("host", "socket"), [("unix:///run/docker.sock", "/run/docker.sock"), ("tcp://there:2375", None)]
)
def test_a_daemon_of_another_machine_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, host: str, socket: str | None
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    assert daemons_socket() == socket
