"""The settings of agents, their runs and the requests of their tools."""

from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from proofbox.service.app.config.local_use import FOR_OTHERS
from proofbox.service.web.urls import WebUrl

_MIB = 1024 * 1024
EndpointName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Origin = Annotated[str, Field(pattern=r"^https?://[a-z0-9.-]+(:[0-9]{1,5})?$")]
ModelId = Annotated[str, Field(min_length=1, max_length=200)]


class SecretOfTools(BaseModel):
    """A secret that configurations name as ``${env.X}``."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    variable: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    hosts: tuple[str, ...] = Field(min_length=1)
    projects: tuple[str, ...] | None = None


class EndpointOfModels(BaseModel):
    """An endpoint that speaks OpenAI's API, for pictures and sub-agents."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    url: str
    key: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    models: tuple[ModelId, ...] = Field(min_length=1)
    can: tuple[Literal["chat", "images"], ...] = Field(default=("chat", "images"), min_length=1)

    @field_validator("url")
    @classmethod
    def _is_base(cls, text: str) -> str:
        WebUrl.parse(text)
        if "?" in text or "#" in text:
            raise ValueError("give the address without ? and #, such as https://api.example.com/v1")
        return text


class GatewaySettings(BaseSettings):
    """The operator's decisions about agents."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    gateway_env: Annotated[dict[str, SecretOfTools], FOR_OTHERS] = {}
    """Secrets that tools may name as ${env.X}, as a JSON object: {"X": {"variable": "WX_KEY", "hosts":
    ["api.weather.com"], "projects": ["acme/books"]}}. WX_KEY is an environment variable; without projects, all may
    use it."""
    gateway_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks beyond the public internet for requests of agents' tools, as a JSON list: ["10.20.0.0/16"]."""
    gateway_ports: tuple[int, ...] = (80, 443)
    """Ports for requests of agents' tools, as a JSON list."""
    gateway_running_max: int = Field(default=64, ge=1)
    """Requests of agents' tools at the same time; more wait."""
    gateway_response_bytes_max: int = Field(default=_MIB, ge=1024)
    """Bytes of a response to a request of an agent's tool; one that becomes a file may have 10 times as many."""
    llm_endpoints: Annotated[dict[EndpointName, EndpointOfModels], FOR_OTHERS] = {}
    """Endpoints of OpenAI's API for pictures and sub-agents, as a JSON object: {"default": {"url":
    "https://api.example.com/v1", "key": "LLM_KEY", "models": ["small"], "can": ["chat", "images"]}}. LLM_KEY is an
    environment variable; the first model is the default. Endpoints may be on private networks."""
    run_s: float = Field(default=1_800, gt=0)
    """Working time of a run, without the time of its waits, in seconds."""
    run_lease_s: float = Field(default=60, ge=5)
    """Time after which a run whose holder neither calls a tool nor sends a heartbeat is given to another one."""
    agent_runs_max: int = Field(default=20, ge=1)
    """Runs of one agent at the same time; more stay queued."""
    wait_s_max: float = Field(default=7 * 24 * 3600, ge=1)
    """Time that a call may wait for an answer from outside, in seconds; timeouts of tools can only be shorter."""
    space_origins: Annotated[tuple[Origin, ...], FOR_OTHERS] = ()
    """Origins of web pages that may use the routes of spaces with a space token, as a JSON list:
    ["https://chat.example.com"]."""
