import asyncio
import logging
import socket
import threading
from dataclasses import replace

import httpx
import pytest

from proofbox.service.api.app import create_app
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.s3_client import Bucket
from proofbox.service.storage.readiness import StoreReadiness


async def ready(services):
    """The answer of a service about itself."""
    transport = httpx.ASGITransport(create_app(services))
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        return await client.get("/readyz")


async def test_the_process_is_alive_whatever_the_engine_does(client, engine, flags):
    engine.is_down = flags.draining = True
    answer = await client.get("/livez")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_the_service_is_ready_when_the_engine_answers(client):
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "degraded": []})
    assert answer.headers["cache-control"] == "no-store"


async def test_a_part_that_calls_can_wait_for_is_named_and_the_service_is_ready(services):
    async def find_away():
        return {"nats": "no server answers; calls are accepted and wait"}

    answer = await ready(replace(services, find_away=find_away))
    away = {"part": "nats", "cause": "no server answers; calls are accepted and wait"}
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "degraded": [away]})


async def test_an_engine_that_is_down_makes_the_service_unready(client, engine):
    engine.is_down = True
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "engine_unavailable")


async def test_each_probe_of_an_engine_that_is_down_is_one_line_with_the_cause(client, engine, caplog):
    engine.is_down = True
    with caplog.at_level(logging.WARNING, "proofbox.api"):
        answer = await client.get("/readyz")
    [line] = caplog.records
    assert (line.getMessage(), line.exc_info) == (f"not ready: {answer.json()['detail']}", None)


async def test_a_service_that_shuts_down_is_unready(client, flags):
    flags.draining = True
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "shutting_down")


async def test_an_engine_that_hangs_makes_the_service_unready(services, engine):
    engine.is_hanging = True
    transport = httpx.ASGITransport(create_app(replace(services, ping_s_max=0.05)))
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "engine_unavailable")
    assert "0.05 s" in answer.json()["detail"]


async def test_a_database_whose_file_is_gone_makes_the_service_unready(client, stores):
    for file in stores.database.data_dir.glob("proofbox.sqlite3*"):
        file.unlink()
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")
    assert (await client.get("/livez")).status_code == 200


async def test_a_full_disk_makes_the_service_unready(services, stores, tmp_path):
    check = StoreReadiness(stores.database, tmp_path, free_bytes_min=2**62).check
    answer = await ready(replace(services, check_stores=check))
    assert (answer.status_code, answer.json()["code"]) == (503, "store_full")
    assert answer.json()["detail"].startswith("data_dir: ")
    assert "bytes are free" in answer.json()["detail"]


async def test_a_database_that_finds_no_space_makes_the_service_unready(services):
    async def full():
        raise StoreFullError("the database has no space left; the operator has to free some")

    answer = await ready(replace(services, check_stores=full))
    assert (answer.status_code, answer.json()["code"]) == (503, "store_full")


async def test_a_data_folder_that_is_gone_makes_the_service_unready(services, stores, tmp_path):
    check = StoreReadiness(stores.database, tmp_path / "gone").check
    answer = await ready(replace(services, check_stores=check))
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")
    assert answer.json()["detail"].startswith("data_dir: ")


async def test_a_database_whose_file_was_replaced_makes_the_service_unready(client, stores):
    file = stores.database.data_dir / "proofbox.sqlite3"
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    copy.replace(file)
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")
    assert "database" in answer.json()["detail"]


async def test_a_database_that_hangs_makes_the_service_unready(services):
    never = asyncio.Event()
    transport = httpx.ASGITransport(create_app(replace(services, ping_s_max=0.05, check_stores=never.wait)))
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")


async def test_an_object_store_that_does_not_answer_makes_the_service_unready(services, stores, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    bucket = Bucket("proofbox", endpoint=endpoint, access_key="a", secret_key="b")
    blobs = S3BlobStore(bucket, tmp_path / "staging", 5_000_000, 900)
    check = StoreReadiness(stores.database, tmp_path, check_bytes=blobs.check).check
    answer = await ready(replace(services, check_stores=check))
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")
    assert "the object store does not answer; its address is the setting s3_endpoint" in answer.json()["detail"]


async def test_many_probes_are_one_question_to_the_object_store(services, stores, tmp_path):
    asked, open_again = [], threading.Event()

    def slow():
        asked.append(1)
        open_again.wait()
        raise StoreFailedError("no")

    check = StoreReadiness(stores.database, tmp_path, check_bytes=slow).check
    hasty = replace(services, check_stores=check, ping_s_max=0.2)
    answers = [await ready(hasty), *await asyncio.gather(*(ready(hasty) for _ in range(3)))]
    open_again.set()
    answers.append(await ready(services_with_time := replace(hasty, ping_s_max=5.0)))
    answers.append(await ready(services_with_time))
    assert [answer.status_code for answer in answers] == [503] * 6
    assert [answer.json()["detail"] for answer in answers[-2:]] == ["no"] * 2
    assert len(asked) == 1


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_health_answers_are_json(client, path):
    assert (await client.get(path)).headers["content-type"] == "application/json"
