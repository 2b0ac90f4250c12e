"""The settings of many processes: who runs an accepted call, and the NATS servers between them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from proofbox.service.app.config.local_use import FOR_OTHERS


class DispatchSettings(BaseSettings):
    """The operator's decisions about the processes of one service."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    dispatch: Annotated[Literal["local", "nats"], FOR_OTHERS] = "local"
    """Who runs an accepted call: local, the process that accepted it; nats, a worker, over NATS JetStream."""
    role: Annotated[Literal["all", "api", "worker"], FOR_OTHERS] = "all"
    """What a process does with dispatch=nats: api accepts calls, worker runs them, all does both."""
    nats_urls: Annotated[str, FOR_OTHERS] = Field(
        default="", pattern=r"^((nats|tls)://[^,/?#@\s]+(,(nats|tls)://[^,/?#@\s]+)*)?$"
    )
    """NATS servers, with commas between them: nats://n1:4222,nats://n2:4222."""
    nats_prefix: Annotated[str, FOR_OTHERS] = Field(default="proofbox", pattern=r"^[A-Za-z0-9_-]{1,32}$")
    """Begin of the names of streams and subjects; it belongs to one service."""
    nats_credentials_file: Annotated[Path | None, FOR_OTHERS] = None
    """Credentials of the NATS user, a .creds file; none: one of the next three, or no authentication."""
    nats_nkey_file: Annotated[Path | None, FOR_OTHERS] = None
    """Seed of the NATS user's NKey, a file that begins with SU."""
    nats_token: Annotated[SecretStr, FOR_OTHERS] = SecretStr("")
    """Token of the NATS servers."""
    nats_user: Annotated[str, FOR_OTHERS] = ""
    """User name at the NATS servers."""
    nats_password: Annotated[SecretStr, FOR_OTHERS] = SecretStr("")
    """Password of nats_user."""
    nats_ca_file: Annotated[Path | None, FOR_OTHERS] = None
    """Certificate authorities of the NATS servers, PEM; none: those of the system. It requires TLS."""
    nats_certificate_file: Annotated[Path | None, FOR_OTHERS] = None
    """Client certificate for the NATS servers, PEM; needs nats_certificate_key_file."""
    nats_certificate_key_file: Annotated[Path | None, FOR_OTHERS] = None
    """Private key of nats_certificate_file, PEM."""
    dispatch_lease_s: Annotated[float, FOR_OTHERS] = Field(default=15, ge=2, le=600)
    """Time after which a call of a worker that is not heard of any more is taken from it."""
    dispatch_attempts_max: Annotated[int, FOR_OTHERS] = Field(default=5, ge=1, le=100)
    """Workers that may lose a call before its program began; after them it is set aside as a dead letter."""
    keys_dir: Annotated[Path | None, FOR_OTHERS] = None
    """Folder of the keys of links and webhooks, which the processes of a service share; none: data_dir."""

    @property
    def is_shared(self) -> bool:
        """Whether several processes may use the stores at the same time."""
        return self.dispatch == "nats"

    @property
    def runs_calls(self) -> bool:
        """Whether this process runs programs, and needs a sandbox engine."""
        return not self.is_shared or self.role != "api"

    @property
    def accepts_calls(self) -> bool:
        """Whether clients reach the API of this process."""
        return not self.is_shared or self.role != "worker"
