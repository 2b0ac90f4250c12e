"""The settings of the network of programs."""

from ipaddress import IPv4Network, IPv6Network

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from proofbox.contracts.network import EndpointText

_MIB = 1024 * 1024


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
    sandbox_pip_index_url: str = Field(default="", pattern=r"^(https?://[^?#@\s]+)?$")
    """Package index for pip in calls with a network, PIP_INDEX_URL; empty: pip's own."""
