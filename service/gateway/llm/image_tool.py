"""The variant ``image``: an endpoint of the operator makes a picture, the sandbox opens it, the store has it."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.executions import ImageExecution
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import CallResponse, RunOutcome
from proofbox.service.errors import QueueFullError, QueueTimeoutError
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
from proofbox.service.gateway.result_files import ResultFiles, data_of, new_file
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

    async def run(self, call: GatewayCall, observer: CallObserver) -> RunOutcome:
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
        making = _Making(self._parts, call, observer, endpoint, time.monotonic() + execution.timeout / 1000)
        try:
            made = await making.ask(body)
            picture = await making.open(made)
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
        return await self._respond(call, picture, revised)

    async def _respond(self, call: GatewayCall, picture: Picture, revised: str) -> CallResponse:
        file = await new_file(call, picture.content, picture.mime)
        sides = {"width": picture.width, "height": picture.height}
        ret: dict[str, Any] = {"images": [{**data_of(file), **sides}]}
        if revised:
            ret["revised_prompt"] = revised
        path = file.path.logical
        report = f"made {path} ({picture.mime}, {picture.width} x {picture.height} px)"
        return await self._parts.files.succeed(call, ret, files=(file,), report=report)


@dataclass(frozen=True, slots=True)
class _Making:
    """The making of one picture, until a point on the monotonic clock."""

    parts: ImageParts
    call: GatewayCall
    observer: CallObserver
    endpoint: LlmEndpoint
    ends: float

    async def ask(self, body: dict[str, Any]) -> MadePicture:
        """What the endpoint answers.

        Raises:
            LlmFailedError, NoPictureError: nothing usable.
            QueueFullError, QueueTimeoutError: there was no place for the request; nothing was sent.
        """
        request = LlmRequest(_PATH, body, base64_bytes_max(self.parts.bytes_max), self._left_s)
        turn = Turn(
            self.observer.owner, self.observer.on_queued, self.observer.on_running, self.call.effects.append
        )
        response = await self.parts.client.send(self.endpoint, request, turn)
        return await asyncio.to_thread(read_made_picture, response.body)

    async def open(self, made: MadePicture) -> Picture:
        """The picture of an answer, opened in a sandbox.

        Raises:
            NoPictureError: there is none, or there was no place to fetch or open it.
            HttpRefusedError: it is too large, or its address is not allowed or does not answer.
            ServiceError: the service is at fault.
        """
        try:
            if made.base64_text is not None:
                content = await asyncio.to_thread(decode_picture, made.base64_text)
            else:
                content = await self._fetch(made.url or "")
            if len(content) > self.parts.bytes_max:
                message = f"it is larger than {self.parts.bytes_max} bytes"
                raise HttpRefusedError(GatewayCode.RESPONSE_TOO_LARGE, message)
            content = await asyncio.to_thread(self.endpoint.redactor.redact_bytes, content)
            return await self.parts.inspector.inspect(self.call, self.observer, content)
        except (QueueFullError, QueueTimeoutError) as exc:
            raise NoPictureError(f"it was made, but there was no place to open it: {exc.message}") from exc

    async def _fetch(self, address: str) -> bytes:
        try:
            url = WebUrl.parse(address)
        except UrlRefusedError as exc:
            raise NoPictureError("data[0].url is no http or https address") from exc
        request = OutgoingRequest("GET", url, [("Accept", "image/*")])
        bytes_max, left_s = self.parts.bytes_max, self._left_s
        policy = ExchangePolicy(left_s, attempts_of("GET", None), bytes_max, 0, file_bytes_max=bytes_max)
        deadline = time.monotonic() + min(self.parts.queue_s, left_s)
        with await self.parts.admission.enter(deadline, _ignore, self.observer.owner):
            response = await exchange(self.parts.sender, request, policy, self.call.effects.append)
        if not is_success(response.head.status):
            raise NoPictureError(f"its address answers with HTTP status {response.head.status}")
        return response.body

    @property
    def _left_s(self) -> float:
        return max(0.001, self.ends - time.monotonic())


def _ignore(_position: int) -> None:
    pass
