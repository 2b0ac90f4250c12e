"""``/livez`` and ``/readyz``: whether the process runs, and whether it can take a call now."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict

from proofbox.service.api.openapi_responses import json_answer, problems
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.services import InjectedServices
from proofbox.service.errors import (
    EngineUnavailableError,
    ShuttingDownError,
    StoreFailedError,
    StoreFullError,
    StoreNotReadyError,
)

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The service is well, as far as it was asked."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    status: Literal["ok"] = "ok"
    """Always ``ok``: anything else is a problem document."""


class PartAway(BaseModel):
    """A part of the service that is away."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    part: str
    """Its name: ``nats``."""
    cause: str
    """Why, and what becomes of calls."""


class Readiness(Health):
    """The service takes requests."""

    degraded: list[PartAway] = []
    """What is away that accepted calls wait for."""


@router.get(
    "/livez",
    operation_id="live",
    summary="Whether the process is alive",
    response_class=Response,
    responses={200: json_answer("It is.", Health)},
)
async def live() -> Response:
    """Answers as long as the process serves requests; asks nothing else."""
    return model_response(Health(), headers=NO_STORE)


@router.get(
    "/readyz",
    operation_id="ready",
    summary="Whether the service can take a call",
    response_class=Response,
    responses={
        200: json_answer("It can.", Readiness),
        **problems(
            EngineUnavailableError, ShuttingDownError, StoreFailedError, StoreNotReadyError, for_anybody=True
        ),
    },
)
async def ready(services: InjectedServices) -> Response:
    """Asks engine, database, data folder and object store; who shuts down or starts no sandbox is not ready.

    Without NATS a process is ready: it accepts and reads.
    """
    if services.draining():
        raise ShuttingDownError("the service is shutting down; ask another one")
    try:
        async with asyncio.timeout(services.ping_s_max):
            await (services.ping_engine or services.engine.ping)()
    except TimeoutError as exc:
        raise EngineUnavailableError(
            f"the container engine did not answer within {services.ping_s_max:g} s"
        ) from exc
    try:
        async with asyncio.timeout(services.ping_s_max):
            await services.check_stores()
    except StoreFullError as exc:
        raise StoreNotReadyError(str(exc)) from exc
    except TimeoutError as exc:
        raise StoreFailedError(
            f"the database, the data folder or the object store did not answer within {services.ping_s_max:g} s"
        ) from exc
    away = await services.find_away()
    degraded = [PartAway(part=part, cause=cause) for part, cause in away.items()]
    return model_response(Readiness(degraded=degraded), headers=NO_STORE)
