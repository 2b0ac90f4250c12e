"""The settings of the link to the NATS servers."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """URLs, names and credentials.

    Attributes:
        urls: their URLs.
        prefix: the begin of the names of streams and subjects.
        name: this process, as the servers show it.
        lease_s: after which time a call that was delivered is delivered again.
        credentials_file: the credentials of the user, a .creds file.
        nkey_file: the seed of the user's NKey.
        token: the token of the servers.
        user: its name, with ``password``.
        password: see ``user``.
        ca_file: the certificate authorities of the servers.
        certificate: the client's certificate and its key.
    """

    urls: tuple[str, ...]
    prefix: str
    name: str
    lease_s: float
    credentials_file: Path | None = None
    nkey_file: Path | None = None
    token: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: Path | None = None
    certificate: tuple[Path, Path] | None = None

    @property
    def requires_tls(self) -> bool:
        """Whether nothing may be sent without TLS."""
        has_files = self.ca_file is not None or self.certificate is not None
        return has_files or any(url.startswith("tls://") for url in self.urls)

    @property
    def credential(self) -> str:
        """The setting of the credentials that are used, with its value if that is no secret."""
        if self.credentials_file is not None:
            return f"nats_credentials_file ({self.credentials_file})"
        if self.nkey_file is not None:
            return f"nats_nkey_file ({self.nkey_file})"
        if self.token:
            return "nats_token"
        return f"nats_user ({self.user}) and nats_password" if self.user else "nats_user, nats_token or a file"
