"""The service, its containers and its clients die at the worst moment: one answer a call, and nothing is left."""

import contextlib
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from service_process import ServiceProcess, eventually, request, serving

from proofbox.service.app.settings import Settings

pytestmark = pytest.mark.docker

# A number that no other program sleeps for: it is looked for among the processes of containers.
SLEEPS = "import subprocess\nopen('out.txt', 'w').write('begun')\nsubprocess.run(['sleep', '987'])"
WRITES = "open('out.txt', 'w').write('x')"
DOCTOR = "; 'proofbox doctor' checks this machine"
IMAGE_HINT = {
    "docker": "",
    "oci": "; the engine 'oci' takes its image from there, or from PROOFBOX_OCI_IMAGE_ARCHIVE",
}


@pytest.fixture(scope="module")
def roomy(tmp_path_factory, engine) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("roomy") / "data"
    with serving(folder, engine, pool_size=1, running_max=10, starts_max=4, sweep_every_s=1) as process:
        yield process


@pytest.fixture(scope="module")
def narrow(tmp_path_factory, engine) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("narrow") / "data"
    with serving(folder, engine, pool_size=1, running_max=1, queue_max=1, wall_s=600) as process:
        yield process


def idle(service: ServiceProcess) -> ServiceProcess:
    """A service that tests share, as one that was just started: it runs, and all of its containers wait."""
    if not service.runs:
        service.start()
    ready, there = eventually(lambda: (service.ready_containers(), len(service.containers())), _is_idle)
    assert _is_idle((ready, there)), (ready, there)
    return service


def _is_idle(counted: tuple[int, int]) -> bool:
    ready, there = counted
    return ready == there >= 1


@pytest.fixture
def mortal(roomy) -> ServiceProcess:
    """A service that runs ten calls at a time, and that a test may kill."""
    return idle(roomy)


@pytest.fixture
def single(narrow) -> ServiceProcess:
    """A service that runs one call at a time while one waits, and that a test may kill."""
    return idle(narrow)


def begin(service: ServiceProcess, count: int = 1) -> list[dict]:
    """Calls that run for ever, their programs started."""
    bodies = [request(SLEEPS) for _ in range(count)]
    for body in bodies:
        assert service.post(body, Prefer="respond-async").status_code == 202
    assert len(eventually(service.busy, lambda busy: len(busy) == count)) == count
    return bodies


def without_nulls(problem: dict) -> dict:
    """A problem as it is sent by itself: what does not apply is left out."""
    return {name: value for name, value in problem.items() if value is not None}


# ---- the service is killed


def test_after_kill_9_no_container_is_left_although_the_service_does_not_come_back(mortal):
    begin(mortal, 10)
    mortal.signal(signal.SIGKILL)
    mortal.wait()
    assert eventually(mortal.containers, lambda left: left == []) == []


@pytest.mark.slow
def test_after_kill_9_in_the_middle_of_a_check_no_container_is_left_either(tmp_path, engine):
    # A pattern that backtracks without end holds the inspector until its time is over.
    endless = {"properties": {"x": {"pattern": "^(a+)+$"}}}
    promised = {"filename": "slow.json", "description": "slow to check", "json_schema": endless}
    code = "open('slow.json', 'w').write('{\"x\": \"' + 'a' * 60 + '!\"}')"
    with serving(tmp_path / "data", engine, pool_size=0, inspect_s_per_file=300) as service:
        assert service.post(request(code, promised), Prefer="respond-async").status_code == 202
        assert eventually(lambda: _checking(service), bool) is True
        service.signal(signal.SIGKILL)
        service.wait()
        assert eventually(service.containers, lambda left: left == []) == []


def _checking(service: ServiceProcess) -> bool:
    """Whether the inspector, a fork of the runner, is at work: the program has ended by then."""
    processes = [service.processes_in(container) for container in service.containers()]
    return any(told.count("/opt/proofbox/runner") > 1 and "launcher" not in told for told in processes)


def test_calls_that_were_running_at_kill_9_have_one_stored_answer_and_never_run_again(mortal):
    bodies = begin(mortal, 10)
    before = set(mortal.containers())
    mortal.signal(signal.SIGKILL)
    mortal.wait()
    mortal.start()
    assert eventually(lambda: before & set(mortal.containers()), lambda left: left == set()) == set()
    assert mortal.staged() == []
    for body in bodies:
        status = mortal.status(body)
        posted = [mortal.post(body) for _ in range(2)]
        assert (status["status"], status["response"]["error"]["code"]) == ("done", "sandbox_failed")
        assert [(r.status_code, r.headers["idempotent-replayed"]) for r in posted] == [(200, "true")] * 2
        assert [r.json() for r in posted] == [status["response"]] * 2
        assert "outcome is unknown" in status["response"]["report"]
    assert mortal.busy() == []


@pytest.mark.slow
def test_calls_that_ran_or_waited_at_kill_9_have_an_answer_although_less_is_allowed_after_it(single):
    running, waiting = (request(code, limits={"wall_s": 500}) for code in (SLEEPS, WRITES))
    assert single.post(running, Prefer="respond-async").status_code == 202
    assert len(eventually(single.busy, lambda busy: len(busy) == 1)) == 1
    assert single.post(waiting, Prefer="respond-async").status_code == 202
    assert single.status(waiting)["status"] == "queued"
    single.signal(signal.SIGKILL)
    single.wait()
    single.set(wall_s=10)
    try:
        single.start()
    finally:
        single.set(wall_s=600)
    assert single.status(running)["response"]["error"]["code"] == "sandbox_failed"
    ended = eventually(lambda: single.status(waiting), lambda status: status["status"] == "done")
    assert ended["response"]["ok"], ended


@pytest.mark.slow
def test_a_service_that_was_killed_serves_new_calls_and_earlier_answers_after_its_restart(mortal):
    earlier = request(WRITES)
    first = mortal.post(earlier)
    mortal.signal(signal.SIGKILL)
    mortal.wait()
    mortal.start()
    replayed = mortal.post(earlier)
    assert (replayed.text, replayed.headers["idempotent-replayed"]) == (first.text, "true")
    assert mortal.call(WRITES)["ok"] is True


@pytest.mark.slow
def test_a_second_service_on_the_same_data_folder_is_refused_in_one_line(mortal, engine):
    second = ServiceProcess(mortal.data_dir, engine)
    second.launch()
    assert second.wait() == 2
    assert [line[:10] for line in second.complaints] == ["proofbox: "]
    assert mortal.call(WRITES)["ok"] is True


# ---- a container is killed


def test_a_killed_container_is_a_failed_sandbox_and_the_service_goes_on(mortal):
    [body] = begin(mortal)
    [container] = mortal.busy()
    mortal.kill_container(container)
    ended = eventually(lambda: mortal.status(body), lambda status: status["status"] == "done")
    assert ended["response"]["error"]["code"] == "sandbox_failed"
    assert ended["response"]["artifacts"][0]["verdict"] == "missing_file"
    assert mortal.call(WRITES)["ok"] is True


@pytest.mark.slow
def test_a_waiting_container_that_was_killed_costs_the_next_call_nothing(mortal):
    for _ in range(3):
        eventually(mortal.ready_containers, lambda count: count >= 1)
        waiting = mortal.containers()
        for container in waiting:
            mortal.kill_container(container)
        eventually(lambda killed=waiting: any(map(mortal.has, killed)), lambda there: not there)
        assert mortal.call(WRITES)["ok"] is True


@pytest.mark.slow
def test_a_paused_container_counts_as_lost_after_its_time(tmp_path, engine):
    with serving(tmp_path / "data", engine, pool_size=1, lost_grace_s=1) as service:
        body = request(SLEEPS, limits={"wall_s": 4})
        assert service.post(body, Prefer="respond-async").status_code == 202
        [container] = eventually(service.busy, lambda busy: len(busy) == 1)
        engine.pause(container)
        ended = eventually(lambda: service.status(body), lambda status: status["status"] == "done")
        assert ended["response"]["error"]["code"] == "sandbox_failed"
        assert eventually(lambda: service.has(container), lambda there: not there) is False


# ---- the service is told to stop


def test_a_call_that_ends_within_the_grace_is_answered_and_new_ones_are_refused_meanwhile(mortal):
    body = request(f"{SLEEPS}\n{WRITES}")
    with ThreadPoolExecutor(1) as clients:
        running = clients.submit(mortal.post, body)
        assert len(eventually(mortal.busy, lambda busy: len(busy) == 1)) == 1
        mortal.signal(signal.SIGTERM)
        ready = eventually(lambda: mortal.client.get("/readyz").status_code, lambda status: status != 200)
        refused = mortal.post(request(WRITES))
        mortal.end_sleeps()
        answered = running.result()
    assert ready == 503
    assert (refused.status_code, refused.json()["code"]) == (503, "shutting_down")
    assert (answered.status_code, answered.json()["ok"]) == (200, True)
    assert mortal.wait() == 0
    assert mortal.containers() == []


@pytest.mark.slow
def test_a_call_that_outlives_the_grace_is_told_so_and_is_answered_the_same_after_a_restart(tmp_path, engine):
    with serving(tmp_path / "data", engine, shutdown_grace_s=0.2, pool_size=1) as service:
        [body] = begin(service)
        service.signal(signal.SIGTERM)
        assert service.wait() == 0
        assert service.containers() == []
        service.start()
        status = service.status(body)
        assert (status["status"], status["problem"]["code"]) == ("failed", "shutting_down")
        assert service.post(body).json() == without_nulls(status["problem"])


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_an_idle_service_ends_well_and_leaves_no_container(mortal, number):
    assert mortal.containers() != []
    mortal.signal(number)
    assert mortal.wait() == 0
    assert mortal.containers() == []


# ---- the client goes away, or cancels


@contextlib.contextmanager
def lost(service: ServiceProcess, body: dict) -> Iterator[str]:
    """A client that makes a call and loses its connection at the end of the block; the call's container."""
    raw = httpx.Request("POST", f"{service.url}/v1/tool-calls", json=body)
    raw.read()
    host, port = raw.url.host, raw.url.port
    head = "".join(f"{name}: {value}\r\n" for name, value in raw.headers.items())
    with socket.create_connection((host, port)) as client:
        client.sendall(f"POST /v1/tool-calls HTTP/1.1\r\n{head}\r\n".encode() + raw.content)
        [container] = eventually(service.busy, lambda busy: len(busy) == 1)
        yield container


def blocks_of(service: ServiceProcess, body: dict) -> list[dict]:
    """The blocks on the timeline of a call's conversation."""
    return service.client.get(f"/v1/conversations/{body['conversation_id']}/timeline").json()["blocks"]


@pytest.mark.slow
def test_a_call_whose_client_was_lost_is_cancelled_after_the_grace_time_and_its_container_goes(tmp_path, engine):
    settings = {"pool_size": 1, "running_max": 1, "lost_connection_grace_s": 0.5}
    with serving(tmp_path / "data", engine, **settings) as service:
        body = request(SLEEPS)
        with lost(service, body) as container:
            pass
        # Nobody asks for the call meanwhile, or it would go on.
        assert eventually(lambda: service.has(container), lambda there: not there) is False
        ended = eventually(lambda: service.status(body), lambda status: status["status"] != "running")
        again = service.post(body)
        assert (ended["status"], ended["problem"]["code"]) == ("cancelled", "cancelled")
        assert (again.status_code, again.json()) == (409, without_nulls(ended["problem"]))
        assert service.call(WRITES)["ok"] is True  # in the only place


def test_the_same_body_gets_the_answer_of_a_call_whose_client_was_lost_and_it_runs_once(single):
    body = request(f"print('begun')\n{SLEEPS}\n{WRITES}")
    with lost(single, body):
        pass
    with ThreadPoolExecutor(1) as clients:
        posted = clients.submit(single.post, body)
        single.end_sleeps()
        answer = posted.result()
    again = single.post(body)
    assert (answer.status_code, answer.json()["ok"]) == (200, True)
    assert (again.text, again.headers["idempotent-replayed"]) == (answer.text, "true")
    events = single.client.get(f"/v1/tool-calls/{body['tool_call_id']}/events").text
    printed = [event for event in events.split("\n\n") if "event: stdout" in event and "begun" in event]
    assert (events.count("event: started"), len(printed)) == (1, 1)
    assert [block["type"] for block in blocks_of(single, body)].count("react.tool.call") == 1
    assert single.call(WRITES)["ok"] is True  # in the only place


def test_a_cancelled_call_leaves_its_blocks_with_what_its_program_had_printed(mortal):
    body = request(f"print('step 1', flush=True)\n{SLEEPS}", notes="I look.")
    assert mortal.post(body, Prefer="respond-async").status_code == 202
    assert len(eventually(mortal.busy, lambda busy: len(busy) == 1)) == 1
    status, blocks = mortal.cancel(body).json(), blocks_of(mortal, body)
    types = ["react.notes", "react.tool.code", "react.tool.call", "react.tool.result"]
    assert [block["type"] for block in blocks] == types
    assert (blocks, blocks[-1]["text"]) == (status["response"]["blocks"], status["response"]["report"])
    assert "cancelled while it ran" in blocks[-1]["text"]
    assert "step 1" in blocks[-1]["text"]
    assert mortal.status(body) == status


def test_a_client_that_hangs_up_leaves_a_call_alone_that_another_waits_for(mortal):
    body = request(f"{SLEEPS}\n{WRITES}")
    with ThreadPoolExecutor(2) as clients:
        stays = clients.submit(mortal.post, body)
        eventually(mortal.busy, lambda busy: len(busy) == 1)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{mortal.url}/v1/tool-calls", json=body, timeout=httpx.Timeout(30, read=0.3))
        mortal.end_sleeps()
        assert stays.result().json()["ok"] is True


def test_cancelling_is_the_same_however_often_it_is_asked(mortal):
    [body] = begin(mortal)
    [container] = mortal.busy()
    answers = [mortal.cancel(body) for _ in range(3)]
    assert [(r.status_code, r.json()["status"]) for r in answers] == [(200, "cancelled")] * 3
    assert answers[0].json() == answers[2].json()
    assert mortal.post(body).json() == without_nulls(answers[0].json()["problem"])
    assert eventually(lambda: mortal.has(container), lambda there: not there) is False


def test_cancelling_a_call_that_has_ended_changes_nothing(mortal):
    body = request(WRITES)
    answer = mortal.post(body).json()
    assert mortal.cancel(body).json()["status"] == "done"
    assert mortal.status(body)["response"] == answer


def test_cancelling_a_queued_call_frees_its_place_and_runs_nothing(single):
    [holding] = begin(single)
    queued, next_one = request(WRITES), request(WRITES)
    assert single.post(queued, Prefer="respond-async").json()["status"] == "queued"
    assert single.post(next_one).status_code == 429
    assert single.cancel(queued).json()["status"] == "cancelled"
    assert single.cancel(queued).json()["status"] == "cancelled"
    assert single.post(next_one, Prefer="respond-async").status_code == 202
    assert single.cancel(holding).json()["status"] == "cancelled"
    ended = eventually(lambda: single.status(next_one), lambda status: status["status"] == "done")
    assert ended["response"]["ok"] is True


@pytest.mark.slow
def test_a_cancel_at_the_very_end_of_a_call_leaves_one_answer_for_all_who_ask(mortal):
    seen = set()
    for round_number in range(12):
        body = request(WRITES)
        with ThreadPoolExecutor(2) as clients:
            posted = clients.submit(mortal.post, body)
            # From the middle of the run to after its end.
            threading.Event().wait(0.02 * round_number)
            clients.submit(mortal.cancel, body).result()
            first = posted.result()
        status = mortal.status(body)
        seen.add(status["status"])
        stored = status["response"] if status["status"] == "done" else without_nulls(status["problem"])
        assert stored == first.json()
        assert mortal.post(body).json() == first.json()
    assert seen <= {"done", "cancelled"}


def test_a_call_that_does_not_exist_cannot_be_cancelled(mortal):
    gone = mortal.client.delete("/v1/tool-calls/call_of_nobody")
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown_call")


# ---- names of a call


def test_the_same_id_with_another_payload_is_refused_and_the_first_answer_stays(mortal):
    body = request(WRITES)
    first = mortal.post(body)
    other = mortal.post({**body, "code": "open('out.txt', 'w').write('other')"})
    assert (other.status_code, other.json()["code"]) == (409, "id_reused")
    assert mortal.post(body).text == first.text


def test_an_idempotency_key_is_a_second_name_of_its_call(mortal):
    body = request(WRITES)
    first = mortal.post(body, **{"Idempotency-Key": "key-1"})
    again = mortal.post(body, **{"Idempotency-Key": "key-1"})
    other = mortal.post(request(WRITES), **{"Idempotency-Key": "key-1"})
    assert (first.status_code, again.text, again.headers["idempotent-replayed"]) == (200, first.text, "true")
    assert (other.status_code, other.json()["code"]) == (409, "id_reused")


# ---- engines and neighbours


@pytest.mark.slow
def test_an_engine_that_cannot_be_reached_is_told_in_one_line_at_the_start(tmp_path, engine):
    service = ServiceProcess(tmp_path / "data", engine, engine_host=f"unix://{tmp_path}/nobody.sock")
    service.launch()
    assert service.wait() == 2
    told = f"proofbox: the container engine could not be reached at unix://{tmp_path}/nobody.sock"
    told += ": no such file or directory"
    assert service.complaints == [f"{told}{IMAGE_HINT[Settings().engine]}{DOCTOR}"]


@pytest.mark.slow
def test_an_image_that_the_engine_does_not_have_is_told_in_one_line_at_the_start(tmp_path, engine):
    service = ServiceProcess(tmp_path / "data", engine, image="proofbox-sandbox:never-built")
    service.launch()
    assert service.wait() == 2
    [told] = service.complaints
    assert told.startswith("proofbox: the engine has no sandbox image (")
    assert "o such image: proofbox-sandbox:never-built" in told  # the engine's own words
    remedy = "run 'proofbox image build', or in a checkout 'make images'"
    assert told.endswith(f"); {remedy}{IMAGE_HINT[Settings().engine]}{DOCTOR}")


@pytest.mark.slow
def test_two_services_on_one_engine_leave_each_other_alone(mortal, tmp_path, engine):
    [body] = begin(mortal)
    own = set(mortal.containers())
    with serving(tmp_path / "other", engine, pool_size=1, sweep_every_s=0.2) as other:
        assert other.name != mortal.name
        assert other.call(WRITES)["ok"] is True
        other.signal(signal.SIGKILL)
        other.wait()
        other.start()
        assert other.call(WRITES)["ok"] is True
    assert own <= set(mortal.containers())
    assert mortal.status(body)["status"] == "running"
    assert mortal.cancel(body).json()["status"] == "cancelled"


def test_what_an_earlier_life_left_is_swept_and_what_others_left_is_not(mortal, engine):
    mine, theirs = engine.leave(mortal.name), engine.leave(f"{mortal.name}-other")
    try:
        assert eventually(lambda: mortal.has(mine), lambda there: not there) is False
        assert mortal.has(theirs) is True
    finally:
        engine.remove(theirs)
