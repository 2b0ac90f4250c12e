"""The operator's endpoints of models, which speak OpenAI's API; configurations name them, never their addresses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from proofbox.service.gateway.environment import SECRET_CHARACTERS_MIN
from proofbox.service.gateway.filling import is_header_value
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.web.urls import WebUrl

Ability = Literal["chat", "images"]
DEFAULT_ENDPOINT = "default"
"""The endpoint of a sub-agent whose configuration names none."""
_SHOWN_CHARACTERS = 100


class EndpointRefusedError(Exception):
    """There is no such endpoint or model, or it cannot do this; the text is one sentence for model and author.

    Args:
        message: the sentence.
        part: what is wrong: the endpoint, or its model.
    """

    def __init__(self, message: str, part: Literal["endpoint", "model"]) -> None:
        super().__init__(message)
        self.part = part


@dataclass(frozen=True, slots=True)
class LlmEndpoint:
    """One endpoint.

    Attributes:
        name: the name by which configurations know it.
        url: what ``/chat/completions`` and ``/images/generations`` are appended to.
        models: the ids of the models that may be asked; the first one is the default.
        can: what it is used for.
        key: the key that is sent as ``Authorization: Bearer``; empty: none is sent.
    """

    name: str
    url: WebUrl
    models: tuple[str, ...]
    can: frozenset[Ability] = frozenset({"chat", "images"})
    key: str = field(default="", repr=False)

    @property
    def redactor(self) -> Redactor:
        """Removes the key from what comes back."""
        return Redactor([self.key])

    def url_of(self, path: str) -> WebUrl:
        """The address of a path below the endpoint, such as ``/chat/completions``."""
        base = self.url
        return WebUrl(base.scheme, base.host, base.port, base.target.rstrip("/") + path)

    def choose_model(self, asked: str | None) -> str:
        """A model by its id; None: the endpoint's first.

        Raises:
            EndpointRefusedError: the operator has not listed it.
        """
        if asked is None:
            return self.models[0]
        if asked not in self.models:
            listed = ", ".join(self.models[:20])
            raise EndpointRefusedError(
                f"the endpoint {self.name!r} has no model {asked[:_SHOWN_CHARACTERS]!r}; its models are {listed}",
                "model",
            )
        return asked


class LlmEndpoints:
    """The operator's endpoints by name.

    Args:
        endpoints: the endpoints.

    Raises:
        ValueError: a key is too short, or makes no header; the text does not have it.
    """

    def __init__(self, endpoints: Mapping[str, LlmEndpoint] | None = None) -> None:
        self._endpoints = dict(endpoints or {})
        for name, endpoint in self._endpoints.items():
            if not endpoint.key:
                continue
            if len(endpoint.key) < SECRET_CHARACTERS_MIN:
                raise ValueError(
                    f"{name}: the key has fewer than {SECRET_CHARACTERS_MIN} characters (got {len(endpoint.key)}); "
                    "use a longer one, so that it can be removed from responses"
                )
            if not is_header_value(endpoint.key):
                raise ValueError(
                    f"{name}: the key has a blank at an end, a control character or one beyond Latin-1, which no "
                    "header carries; correct the variable"
                )

    def knows(self, name: str) -> bool:
        """Whether the operator has an endpoint of that name."""
        return name in self._endpoints

    def find(self, name: str, ability: Ability) -> LlmEndpoint:
        """The endpoint of a name.

        Raises:
            EndpointRefusedError: there is none, or it is not for this.
        """
        endpoint = self._endpoints.get(name)
        shown = repr(name[:_SHOWN_CHARACTERS])
        if endpoint is None:
            raise EndpointRefusedError(
                f"there is no endpoint {shown}; the operator names endpoints in PROOFBOX_LLM_ENDPOINTS", "endpoint"
            )
        if ability not in endpoint.can:
            raise EndpointRefusedError(
                f"the endpoint {shown} is not for {ability}; the operator sets can in PROOFBOX_LLM_ENDPOINTS",
                "endpoint",
            )
        return endpoint
