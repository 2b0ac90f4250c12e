"""What several models of the gateway share: warnings and the base class of configuration documents."""

from typing import Any

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from proofbox.contracts.gateway.codes import WarningCode
from proofbox.contracts.wire_model import WireModel

JsonObject = dict[str, Any]


class ConfigurationModel(WireModel):
    """A part of a configuration document: keys in camelCase, no conversion of types, no unknown keys."""

    model_config = ConfigDict(alias_generator=to_camel, strict=True)


class GatewayWarning(WireModel):
    """What a caller should know although the request did what it asked for."""

    code: WarningCode
    """The stable code."""
    message: str
    """One sentence: what it concerns, and what to do."""
