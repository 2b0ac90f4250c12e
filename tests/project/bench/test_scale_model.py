"""The model of many workers: its arithmetic, and that it names what is full first."""

import json
from dataclasses import asdict, replace

import pytest

from bench.scale_model import Assumptions, Figures, Model, build_text, main, read_figures

ONE = Figures(
    sql_statements=20,
    sql_transactions=5,
    sql_bytes=30_000,
    database_bytes=10_000,
    s3_writes=2,
    s3_reads=1,
    s3_bytes=4_000,
    service_cpu_ms=10,
    connections=8,
    sql_idle_s=0.5,
    machine="a desk",
    queue_messages=6,
    queue_running_s=0.1,
    queue_idle_s=0,
)
SMALL = Assumptions(workers=10, slots=4, used=0.5, program_s=2, file_bytes=2_000)
COUNTED = {
    "apis": 2,
    "workers": 3,
    "per_call": {"nats_sent": 4, "nats_received": 5, "statements": 40, "transactions": 12, "s3_requests": 3},
    "per_idle_s": {"nats_sent": 1, "nats_received": 4, "statements": 10, "transactions": 10, "s3_requests": 0},
    "per_running_s": {
        "nats_sent": 0.2,
        "nats_received": 0.1,
        "statements": 0.4,
        "transactions": 0.4,
        "s3_requests": 0,
    },
    "connections": {"api-1": {"postgres": 7, "nats": 1, "s3": 0}, "worker-1": {"postgres": 9, "nats": 1, "s3": 2}},
}


def test_rates_follow_from_slots_and_the_duration_of_programs():
    model = Model(ONE, SMALL)
    assert (model.calls_per_s, model.running) == (10, 20)  # 10 workers, 4 slots, half used, 2 s each
    assert model.api_processes == 2
    assert model.messages_per_s == 62  # six for each call, and 20 calls that each renew their lease every 10 s
    assert model.statements_per_s == 206  # 20 for each call, and half a statement for each of 12 processes


def test_twice_the_workers_are_twice_the_load_and_the_same_cost_of_workers():
    one, two = (Model(ONE, replace(SMALL, workers=workers)) for workers in (1_000, 2_000))
    assert two.calls_per_s == 2 * one.calls_per_s
    shares = [{limit.name: limit.share for limit in model.limits()} for model in (one, two)]
    for name, share in shares[0].items():
        assert shares[1][name] == pytest.approx(2 * share, rel=0.01)  # API processes come in whole ones
    assert two.costs()["workers"] == pytest.approx(one.costs()["workers"])
    assert two.costs()["database"] == pytest.approx(one.costs()["database"] / 2)


def test_connections_are_those_of_all_processes():
    model = Model(ONE, replace(SMALL, workers=1_000, api_cpu_used=0.5, api_cpu_share=0.5))
    assert model.api_processes == 10  # 1,000 calls a second, 5 ms each, half a core for each process
    assert model.connections == 8_080


def test_the_fullest_resource_is_the_first():
    limits = Model(ONE, replace(SMALL, workers=1_000)).limits()
    assert [limit.share for limit in limits] == sorted((limit.share for limit in limits), reverse=True)
    assert limits[0].name == "connections of the database"
    assert limits[0].share == pytest.approx(8_080 / 2_000)
    assert {limit.name: limit.load for limit in limits}["transactions of the database per second"] == 5_000


def test_the_cost_of_a_million_calls():
    costs = Model(ONE, SMALL).costs()
    hours = 1_000_000 / 10 / 3_600
    assert costs["workers"] == pytest.approx(hours * 10 * 0.20)
    assert costs["queue"] == pytest.approx(hours * 0.60)
    assert costs["requests to the bucket"] == pytest.approx(2 * 5.00 + 1 * 0.40)
    assert costs["records stored"] == pytest.approx(10 * 0.12)  # 10 kB a call are 10 GB, for a month
    assert costs["files stored"] == pytest.approx(4 * 0.023)
    assert Model(ONE, replace(SMALL, days=60)).costs()["files stored"] == pytest.approx(8 * 0.023)


def test_each_assumption_is_shown_and_can_be_changed(tmp_path, capsys):
    file = tmp_path / "figures.json"
    file.write_text(json.dumps(asdict(ONE)))
    main(
        [
            "--figures",
            str(file),
            "--scale",
            str(tmp_path / "none"),
            "--file-bytes",
            "2000",
            "--workers",
            "10",
            "--slots",
            "4",
            "--used",
            "0.5",
            "--program-s",
            "2",
        ]
    )
    printed = capsys.readouterr().out
    assert printed == build_text(Model(ONE, SMALL))
    assert "| calls | 1 | 10/s |" in printed
    assert [name for name in asdict(SMALL) if f"| `--{name.replace('_', '-')}` |" not in printed] == []


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf", "many"])
def test_an_assumption_that_makes_no_sense_is_refused(value, capsys):
    with pytest.raises(SystemExit):
        main(["--workers", value])
    assert "--workers" in capsys.readouterr().err


def test_counts_of_several_processes_replace_those_of_one(tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(asdict(ONE)))
    (tmp_path / "many.json").write_text(json.dumps({"operations": COUNTED}))
    figures = read_figures(tmp_path / "one.json", tmp_path / "many.json")
    assert (figures.sql_statements, figures.sql_transactions, figures.connections) == (40, 12, 9)
    assert (figures.queue_messages, figures.queue_idle_s, figures.sql_idle_s) == (9, 1, 2)
    assert (figures.queue_running_s, figures.sql_running_s) == (pytest.approx(0.3), 0.4)
    assert (figures.s3_writes, figures.service_cpu_ms) == (ONE.s3_writes, ONE.service_cpu_ms)
    assert "as `make bench-scale` counted them" in build_text(Model(figures, SMALL))
    (tmp_path / "many.json").write_text(json.dumps({"throughput": {}}))
    assert read_figures(tmp_path / "one.json", tmp_path / "many.json") == ONE


def test_the_measured_figures_are_whole():
    figures = read_figures()
    assert figures.sql_statements >= figures.sql_transactions > 0
    assert figures.s3_writes > 0
    assert figures.connections >= 1
