"""``/metrics``: what a Prometheus server scrapes."""

from fastapi import APIRouter, Response

from proofbox.service.api.identity import ReadsMetrics
from proofbox.service.api.openapi_responses import answer, problems
from proofbox.service.api.responses import NO_STORE
from proofbox.service.api.services import InjectedServices

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    operation_id="get_metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={
        200: answer(
            "Counters, histograms and gauges, named `proofbox_*`.", {_CONTENT_TYPE: {"schema": {"type": "string"}}}
        ),
        **problems(),
    },
)
async def get_metrics(services: InjectedServices, _caller: ReadsMetrics) -> Response:
    """Calls, their phases and verdicts, the line before the sandboxes, the pool, and the process itself."""
    return Response(services.metrics(), media_type=_CONTENT_TYPE, headers=NO_STORE)
