"""The variant ``image``: an endpoint of the operator makes a picture, the sandbox opens it, the store has it."""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.executions import ImageExecution
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import Suspension
from proofbox.service.gateway.http_exchange import (
    ExchangePolicy,
    HttpRefusedError,
    HttpSender,
    attempts_of,
    exchange,
    is_success,
)
from proofbox.service.gateway.llm.client import LlmClient, LlmFailedError, LlmRequest, Turn
from proofbox.service.gateway.llm.endpoints import EndpointRefusedError, LlmEndpoint, LlmEndpoints
from proofbox.service.gateway.llm.pictures import (
    MadePicture,
    NoPictureError,
    Picture,
    PictureInspector,
    base64_bytes_max,
    decode_picture,
    read_made_picture,
)
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution
from proofbox.service.web.client.outgoing import OutgoingRequest
from proofbox.service.web.port import clean_text
from proofbox.service.web.urls import UrlRefusedError, WebUrl

_PATH = "/images/generations"


@dataclass(frozen=True, slots=True)
class ImageParts:
    """What tools that make pictures need.

    Attributes:
        endpoints: the operator's endpoints.
        client: asks them.
        sender: fetches a picture that an endpoint only names; over the checked network, as for any HTTP tool.
        admission: how many requests are made at the same time.
        inspector: opens pictures.
        files: stores them.
        bytes_max: the largest picture.
        queue_s: how long a request may wait for its place.
    """

    endpoints: LlmEndpoints
    client: LlmClient
    sender: HttpSender
    admission: Admission
    inspector: PictureInspector
    files: ResultFiles
    bytes_max: int
    queue_s: float


class ImageTool(ToolExecution):
    """Runs the calls of the variant ``image``."""

    def __init__(self, parts: ImageParts) -> None:
        self._parts = parts

    async def run(self, call: GatewayCall, observer: CallObserver) -> ToolCallResponse | Suspension:
        """See `ToolExecution.run`."""
        execution = call.execution_as(ImageExecution)
        prompt = call.input.get("prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            return call.refuse_input([{"field": "input.prompt", "message": "give a text that is not blank"}])
        try:
            endpoint = self._parts.endpoints.find(execution.provider, "images")
            model = endpoint.choose_model(execution.model)
        except EndpointRefusedError as exc:
            return call.fail(GatewayCode.ENDPOINT_NOT_CONFIGURED, str(exc))
        options = {"size": execution.size, "quality": execution.quality, "style": execution.style}
        body = {"model": model, "prompt": prompt, "n": 1}
        body |= {name: value for name, value in options.items() if value is not None}
        ends = time.monotonic() + execution.timeout / 1000
        try:
            made = await self._ask(call, observer, endpoint, body, ends)
            picture = await self._open(call, observer, endpoint, made, ends)
        except LlmFailedError as exc:
            code = GatewayCode.RESPONSE_TOO_LARGE if exc.is_too_large else GatewayCode.IMAGE_FAILED
            return call.fail(code, str(exc))
        except NoPictureError as exc:
            message = f"the endpoint {endpoint.name!r} made no picture: {exc}"
            return call.fail(GatewayCode.IMAGE_FAILED, endpoint.redactor.redact_text(message))
        except HttpRefusedError as exc:
            message = f"the picture cannot be fetched: {exc.message}"
            return call.fail(exc.code, endpoint.redactor.redact_text(message))
        revised = endpoint.redactor.redact_text(clean_text(made.revised_prompt))
        return await self._respond(call, observer, picture, revised)

    async def _ask(
        self, call: GatewayCall, observer: CallObserver, endpoint: LlmEndpoint, body: dict[str, Any], ends: float
    ) -> MadePicture:
        request = LlmRequest(_PATH, body, base64_bytes_max(self._parts.bytes_max), _left_s(ends))
        turn = Turn(observer.owner, observer.on_queued, observer.on_running, call.effects.append)
        response = await self._parts.client.send(endpoint, request, turn)
        try:
            return read_made_picture(await asyncio.to_thread(json.loads, response.body))
        except (ValueError, RecursionError) as exc:
            raise NoPictureError("its answer is no JSON") from exc

    async def _content(self, call: GatewayCall, observer: CallObserver, made: MadePicture, ends: float) -> bytes:
        """The bytes of a picture, from the answer or from where that says.

        Raises:
            NoPictureError: there is none.
            HttpRefusedError: it is too large, or its address is not allowed or does not answer.
        """
        bytes_max = self._parts.bytes_max
        if made.base64_text is not None:
            content = await asyncio.to_thread(decode_picture, made.base64_text)
            if len(content) > bytes_max:
                raise _too_large(bytes_max)
            return content
        try:
            url = WebUrl.parse(made.url or "")
        except UrlRefusedError as exc:
            raise NoPictureError("data[0].url is no http or https address") from exc
        request = OutgoingRequest("GET", url, [("Accept", "image/*")])
        policy = ExchangePolicy(_left_s(ends), attempts_of("GET", None), bytes_max, 0, bytes_max)
        deadline = time.monotonic() + min(self._parts.queue_s, _left_s(ends))
        with await self._parts.admission.enter(deadline, _ignore, observer.owner):
            response = await exchange(self._parts.sender, request, policy, on_effect)
        if not is_success(response.head.status):
            raise NoPictureError(f"its address answers with HTTP status {response.head.status}")
        return response.body

    async def _respond(
        self, call: GatewayCall, observer: CallObserver, picture: Picture, revised: str
    ) -> ToolCallResponse:
        file = await self._parts.files.store(call, observer, picture.content, picture.mime)
        sides = {"width": picture.width, "height": picture.height}
        ret: dict[str, Any] = {"images": [{**file.data, **sides}]}
        if revised:
            ret["revised_prompt"] = revised
        path = file.data["artifact_path"]
        report = f"made {path} ({picture.mime}, {picture.width} x {picture.height} px)"
        return await self._parts.files.succeed(call, observer, ret, files=(file,), report=report)


def _left_s(ends: float) -> float:
    return max(0.001, ends - time.monotonic())


def _too_large(bytes_max: int) -> HttpRefusedError:
    return HttpRefusedError(GatewayCode.RESPONSE_TOO_LARGE, f"it is larger than {bytes_max} bytes")


def _ignore(_position: int) -> None:
    pass
