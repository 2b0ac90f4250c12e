"""Plans of agents. Imported on first use: models of configurations take long."""

import json
from collections.abc import Mapping
from typing import Any

from proofbox.client.api import Api, target
from proofbox.client.exchange import Plan, Request
from proofbox.contracts.gateway.imports import AgentImported

_JSON = {"Content-Type": "application/json"}


def import_agent(api: Api, config: Mapping[str, Any], save_as: str | None) -> Plan[AgentImported]:
    """Convert a configuration of version 1, and save it as an agent if asked to."""
    body = json.dumps({"config": dict(config), "save_as": save_as}).encode()
    return api.parse(AgentImported, (yield from api.request(Request("POST", target("agent-imports"), _JSON, body))))
