"""Builds what waits need: their limits, the tools that wait, and what ends them."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from proofbox.contracts.problems import FieldError
from proofbox.service.api.gateway_services import WaitServices
from proofbox.service.app.ports import format_url
from proofbox.service.app.settings import Settings
from proofbox.service.calls.port import CallStore
from proofbox.service.calls.service import Calls
from proofbox.service.calls.suspension import CallResponse
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.http_exchange import HttpSender
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.schema_check import check_schema
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution
from proofbox.service.gateway.waits.answers import WaitAnswers
from proofbox.service.gateway.waits.callbacks import CallbackWaits
from proofbox.service.gateway.waits.policy import WaitPolicy
from proofbox.service.gateway.waits.port import WAITS_TOPIC
from proofbox.service.gateway.waits.space_tool import SpaceTool
from proofbox.service.gateway.waits.timer import WaitTimer
from proofbox.service.gateway.waits.webhook_signing import CallbackTokens, SigningSecrets
from proofbox.service.gateway.waits.webhook_tool import WebhookParts, WebhookTool
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.signing import MasterKeyFile, SqlGenerationStore
from proofbox.service.storage.gateway.waits import SqlWaitStore


@dataclass(frozen=True, slots=True)
class WaitParts:
    """The parts of waits that calls need; built before `Calls`.

    Attributes:
        policy: the limits of waits.
        secrets: the secrets that sign webhooks.
        tokens: the tokens that services call back with.
        executions: runs the calls of the variants ``space`` and ``webhook``.
    """

    policy: WaitPolicy
    secrets: SigningSecrets
    tokens: CallbackTokens
    executions: dict[str, ToolExecution]


@dataclass(frozen=True, slots=True)
class WaitEnds:
    """What ends waits; built after `Calls`.

    Attributes:
        services: for the routes.
        timer: ends those that nobody answers in time.
    """

    services: WaitServices
    timer: WaitTimer


def build_wait_parts(
    settings: Settings, database: Database, files: ResultFiles, sender: HttpSender, environment: Environment
) -> WaitParts:
    """Build what the calls of waiting tools need."""
    master_key = MasterKeyFile(settings.keys_folder).read
    secrets = SigningSecrets(master_key, SqlGenerationStore(database))
    tokens = CallbackTokens(master_key)
    policy = WaitPolicy(settings.wait_s_max, settings.run_lease_s, partial(_succeed, files))
    webhooks = WebhookParts(
        sender, environment, secrets, tokens, public_url_of(settings), settings.gateway_response_bytes_max
    )
    executions: dict[str, ToolExecution] = {"space": SpaceTool(policy), "webhook": WebhookTool(webhooks, policy)}
    return WaitParts(policy, secrets, tokens, executions)


def build_wait_ends(
    settings: Settings, database: Database, parts: WaitParts, store: CallStore, calls: Calls
) -> WaitEnds:
    """Build what ends waits."""
    waits = SqlWaitStore(database)
    answers = WaitAnswers(waits, store, calls.waiting, _check_result, settings.run_lease_s)
    services = WaitServices(answers, waits, parts.secrets, parts.tokens, CallbackWaits(waits, database.changes))
    return WaitEnds(services, WaitTimer(answers, waits, database.changes, WAITS_TOPIC))


def public_url_of(settings: Settings) -> str:
    """The URL of the service for those who call back; of this machine, if the operator has given none."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    return format_url(settings.host, settings.port)


async def _succeed(files: ResultFiles, call: GatewayCall, value: Any) -> CallResponse:
    return await files.succeed(call, value)


def _check_result(schema: dict[str, Any], value: Any) -> list[FieldError]:
    return check_schema(schema).check(value, "result")
