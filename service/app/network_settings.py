"""The settings of the network of programs."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from proofbox.contracts.exec_params import check_variable_name
from proofbox.contracts.network import Endpoint, EndpointText
from proofbox.service.app.config.local_use import FOR_OTHERS
from proofbox.service.egress.program_variables import PROXY_VARIABLES

_MIB = 1024 * 1024
_OF_NETWORK = frozenset({*PROXY_VARIABLES, "PIP_INDEX_URL"})


def _variable_of_programs(name: str) -> str:
    check_variable_name(name)
    if name in _OF_NETWORK:
        raise ValueError(f"{name} is set for programs with a network; use another name")
    return name


VariableName = Annotated[str, AfterValidator(_variable_of_programs)]
ProjectPattern = Annotated[str, Field(pattern=r"^[^/\s]+/[^/\s]+$")]


class SecretOfHosts(BaseModel):
    """A header with a secret, which the service sets in requests of programs to some hosts."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    hosts: tuple[EndpointText, ...] = Field(min_length=1)
    projects: tuple[ProjectPattern, ...] = Field(min_length=1)
    variable: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    file: Path | None = None
    header: str = Field(default="Authorization", min_length=1, max_length=100)
    prefix: str = Field(default="", max_length=100)

    @field_validator("hosts")
    @classmethod
    def _are_names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            endpoint = Endpoint.parse(host)
            if endpoint.is_below or endpoint.is_address:
                raise ValueError(
                    f"{host} is not one host by its name; write it exactly, such as api.example.com:443"
                )
        return hosts

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.variable is None) == (self.file is None):
            raise ValueError("give either variable or file, where the secret is")
        return self


class NetworkSettings(BaseSettings):
    """The operator's decisions about the network of programs."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    sandbox_network: tuple[EndpointText, ...] = ()
    """Hosts and ports that calls may ask for, as a JSON list: ["pypi.org:443", "*.example.com:443"]; empty: no call
    gets a network."""
    sandbox_network_ranges: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks beyond the public internet that these hosts may be in, as a JSON list: ["10.20.0.0/16"]."""
    sandbox_network_open_max: int = Field(default=16, ge=1, le=256)
    """Connections of a program at the same time; more wait."""
    sandbox_network_connections_max: int = Field(default=200, ge=1, le=10_000)
    """Connections of a program in all."""
    sandbox_network_bytes_max: int = Field(default=2048 * _MIB, ge=1024)
    """Bytes of all connections of a program, in both directions together."""
    sandbox_network_idle_s: float = Field(default=300, gt=0)
    """Time for which a connection of a program may stay open without a byte."""
    sandbox_network_secrets: Annotated[dict[VariableName, SecretOfHosts], FOR_OTHERS] = {}
    """Headers with secrets for hosts of programs, as a JSON object: {"API_KEY": {"hosts": ["api.example.com:443"],
    "projects": ["acme/books"], "variable": "EXAMPLE_KEY", "header": "Authorization", "prefix": "Bearer "}}.
    Programs find a placeholder in API_KEY. EXAMPLE_KEY is an environment variable of the service; "file" names a
    file instead. A project is tenant/project, either of which may be *."""
    sandbox_network_ca_file: Path | None = None
    """Certificate authorities beyond the public ones, PEM, for hosts with secrets and programs with a network."""
    sandbox_pip_index_url: str = Field(default="", pattern=r"^(https?://[^?#@\s]+)?$")
    """Package index for pip in calls with a network, PIP_INDEX_URL; empty: pip's own."""
