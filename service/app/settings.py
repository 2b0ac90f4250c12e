"""Every limit, image and path: a named setting with its unit in the name, a default and a sentence.

Set by environment variables, ``PROOFBOX_`` and the name in capitals: ``PROOFBOX_WALL_S=60``; or in the TOML file
that ``PROOFBOX_CONFIG`` names: ``wall_s = 60``. The environment wins.
"""

import os
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from proofbox.service.app.config.local_use import FOR_OTHERS, ForOthers, local_values
from proofbox.service.app.config.sources import ConfigFileSource, Replaceable, SecretFiles
from proofbox.service.app.gateway_settings import GatewaySettings
from proofbox.service.app.log_settings import LogSettings
from proofbox.service.app.network_settings import NetworkSettings
from proofbox.service.app.own_image import own_image
from proofbox.service.app.packages.settings import PackageSettings
from proofbox.service.app.processes.settings import DispatchSettings
from proofbox.service.app.setting_rules import find_conflicts
from proofbox.service.web.urls import WebUrl

_MIB = 1024 * 1024
_ROOT = Path(__file__).parents[2]


def _checked_url(value: str) -> str:
    if value:
        WebUrl.parse(value)  # raises ValueError
    return value


class Settings(LogSettings, GatewaySettings, NetworkSettings, PackageSettings, DispatchSettings):
    """The operator's decisions: of the environment, files of secrets and the file that PROOFBOX_CONFIG names.

    Raises:
        ValidationError: a value is wrong, or settings do not fit together.
        ConfigurationError: a file has mistakes.
    """

    model_config = SettingsConfigDict(
        env_prefix="PROOFBOX_", use_attribute_docstrings=True, extra="forbid", hide_input_in_errors=True
    )

    # ---- where ----
    host: Annotated[str, FOR_OTHERS] = "127.0.0.1"
    """Address to listen on."""
    port: Annotated[int, ForOthers(locally=0)] = Field(default=8080, ge=0, le=65535)
    """Port to listen on."""
    address_file: Annotated[Path | None, FOR_OTHERS] = None
    """File in which the process writes its URL when it listens, for health checks; none: no file."""
    auth: Annotated[Literal["auto", "required", "off"], ForOthers(locally="required")] = "auto"
    """Who needs an API key: auto, all clients unless host is loopback; required, all clients; off, none."""
    behind_authenticating_proxy: Annotated[bool, FOR_OTHERS] = False
    """A proxy in front authenticates clients; required for auth=off beyond loopback."""
    allowed_hosts: Annotated[tuple[str, ...], FOR_OTHERS] = ()
    """Additional values of Host for a service without required keys, as a JSON list."""
    public_url: Annotated[str, FOR_OTHERS] = Field(default="", pattern=r"^(https?://[^?#]+)?$")
    """URL of the service for clients, used in links; empty: links have no host."""
    mcp: Annotated[bool, FOR_OTHERS] = True
    """Offer the tools to MCP clients at /mcp."""
    console: Annotated[bool, FOR_OTHERS] = True
    """Serve the web console at /."""
    head_s: Annotated[float, FOR_OTHERS] = Field(default=10, gt=0)
    """Time limit for the head of a request."""
    unread_s: Annotated[float, FOR_OTHERS] = Field(default=60, gt=0)
    """Time for which a client may read less than 1 KiB/s of an answer before its connection ends."""
    connections_max: Annotated[int, FOR_OTHERS] = Field(default=8_000, ge=1)
    """Client connections, at most half of the limit of open files; more get 429."""
    connections_per_address_max: Annotated[int, FOR_OTHERS] = Field(default=2_000, ge=1)
    """Connections per client address (IPv6: per /64 network); raise it behind a proxy."""
    body_s: Annotated[float, FOR_OTHERS] = Field(default=60, gt=0)
    """Time limit for the body of a request, plus a second for each 64 KiB."""
    data_dir: Path = Path(".proofbox")
    """Folder of files, staging and, without database_url, the database."""
    database_url: Annotated[SecretStr, FOR_OTHERS] = SecretStr("")
    """PostgreSQL database, postgresql://user:password@host/name; empty: SQLite in data_dir."""
    database_timeout_s: Annotated[float, FOR_OTHERS] = Field(default=30, gt=0)
    """Time limit for a statement of a PostgreSQL server."""
    service_name: Annotated[str, FOR_OTHERS] = ""
    """Name of this service on its engine, for the sweeper; empty: derived from data_dir."""
    tenant: str = "default"
    """Tenant of requests without key."""
    project: str = "default"
    """Project of requests without key."""
    user_type: str = "registered"
    """User type of requests without key."""
    user: str = "local"
    """User of requests without key."""
    gotenberg: Annotated[bool, FOR_OTHERS] = False
    """Serve Gotenberg's API below /gotenberg."""
    asset_roots: tuple[Path, ...] = ()
    """Folders for assets by file:// URI, as a JSON list."""
    skills_dir: Path | None = None
    """Folder of skills, <id>/SKILL.md or <id>.md, which react.read loads by sk:<id>."""

    # ---- APIs of other products ----
    librechat: Annotated[bool, FOR_OTHERS] = False
    """Serve the code interpreter API of LibreChat at /librechat/v1."""
    librechat_key_file: Annotated[Path | None, FOR_OTHERS] = None
    """Public key of LibreChat's tokens, PEM or JSON Web Key Set; none: API keys only."""
    librechat_issuer: Annotated[str, FOR_OTHERS] = Field(default="librechat", min_length=1)
    """Issuer of LibreChat's tokens."""
    librechat_audience: Annotated[str, FOR_OTHERS] = Field(default="codeapi", min_length=1)
    """Audience of LibreChat's tokens."""

    # ---- signed heads of the audit lines ----
    audit_head_s: Annotated[float, ForOthers(locally=0)] = Field(default=5, ge=0)
    """Pause between signatures of audit chain heads; 0: no signatures."""
    audit_key_file: Annotated[Path | None, FOR_OTHERS] = None
    """Private key for signatures, PEM, made at the first start; none: audit-key.pem in data_dir."""
    audit_heads_file: Annotated[Path | None, FOR_OTHERS] = None
    """File of the signatures; none: audit-heads.jsonl in data_dir."""

    # ---- artifacts in a bucket; without one they are in data_dir ----
    s3_bucket: Annotated[str, FOR_OTHERS] = ""
    """Bucket of files on an S3-compatible server; empty: files are in data_dir."""
    s3_prefix: Annotated[str, FOR_OTHERS] = Field(
        default="", max_length=200, pattern=r"^([A-Za-z0-9_.=-]*[A-Za-z0-9_=-](/|$))*$"
    )
    """Prefix of object names; a bucket and prefix belong to one service."""
    s3_endpoint: Annotated[str, FOR_OTHERS] = Field(default="", pattern=r"^(https?://[^/?#]+/?)?$")
    """URL of the S3-compatible server; empty: AWS."""
    s3_link_endpoint: Annotated[str, FOR_OTHERS] = Field(default="", pattern=r"^(https?://[^/?#]+/?)?$")
    """URL of the same server for clients, used in links; empty: s3_endpoint."""
    s3_region: Annotated[str, FOR_OTHERS] = ""
    """Region of the bucket; empty: from the AWS variables and files, else us-east-1."""
    s3_access_key: Annotated[str, FOR_OTHERS] = ""
    """Access key; empty: from the AWS variables, files or role."""
    s3_secret_key: Annotated[SecretStr, FOR_OTHERS] = SecretStr("")
    """Secret of s3_access_key."""
    s3_part_bytes: Annotated[int, FOR_OTHERS] = Field(default=8 * _MIB, ge=5 * _MIB, le=1024 * _MIB)
    """Part size of larger files; each of up to 8 transfers has one part in memory."""
    s3_retry_s: Annotated[float, FOR_OTHERS] = Field(default=60, ge=0)
    """Time for which files are saved and read again while the server does not answer; 0: not again."""
    link_s: int = Field(default=900, ge=1, le=7 * 24 * 3600)
    """Lifetime of a download link."""

    # ---- limits of an API key, unless it has its own; 0: no limit ----
    limits_without_key: Annotated[bool, FOR_OTHERS] = False
    """Apply these limits per tenant to requests without key."""
    key_requests_per_minute: int = Field(default=6_000, ge=0)
    """Requests of any kind."""
    key_calls_per_minute: int = Field(default=600, ge=0)
    """Tool calls."""
    key_upload_bytes_per_minute: int = Field(default=1024 * _MIB, ge=0)
    """Bytes of request bodies."""
    key_running_calls: int | None = Field(default=None, ge=0)
    """Calls that run at the same time; none: three quarters of running_max."""
    key_queued_calls: int = Field(default=100, ge=0)
    """Calls that wait for a slot."""
    key_stored_bytes: int = Field(default=0, ge=0)
    """Bytes of all versions of files and attachments of the tenant's project."""

    # ---- engine ----
    engine: Literal["docker", "oci"] = "docker"
    """docker: a Docker engine; oci: an OCI runtime that the service starts as root."""
    engine_host: str = ""
    """Address of the Docker engine, in the form of DOCKER_HOST; empty: from the environment."""
    engine_timeout_s: float = Field(default=30, gt=0)
    """Time limit for a request to the engine."""
    image: str = ""
    """The sandbox image; empty: the one of this version, which 'proofbox image build' builds."""
    runtime: str = ""
    """OCI runtime of the Docker engine, such as runsc; empty: the engine's default."""
    oci_runtime: str = ""
    """Runtime of the engine oci, a name or path; empty: crun, else runc."""
    oci_image_archive: Path | None = None
    """Sandbox image for the engine oci, from 'docker save'; none: from a Docker engine."""
    oci_cache_dir: Path = Path("/var/cache/proofbox")
    """Folder of unpacked images of the engine oci; services on a machine share it."""
    oci_run_dir: Path = Path("/run/proofbox")
    """Folder of the engine oci for bundles and records of containers."""
    cgroup_parent: str = ""
    """Control group above all sandboxes, a slice with systemd; empty: proofbox."""
    sandbox_user_first: int = Field(default=20_000, ge=1_000, le=60_000)
    """First user id of sandboxes, one per container; the image names 20000 to 21999."""
    sandbox_users: int = Field(default=2_000, ge=1, le=5_000)
    """Number of user ids of sandboxes; each service claims blocks of 50."""
    import_once: Literal["auto", "on", "off"] = "auto"
    """Import libraries once and fork them into sandboxes: auto, if possible; on, required; off."""
    total_memory_bytes: int = Field(default=0, ge=0)
    """Memory of all sandboxes together; 0: 7/8 of the machine's, at least 512 MiB."""
    total_pids: int = Field(default=0, ge=0)
    """Processes and threads of all sandboxes together; 0: half of the kernel's limit."""
    total_cpus: float = Field(default=0, ge=0)
    """CPU cores of all sandboxes together; 0: all, with the weight of one process."""
    seccomp_profile: Path = _ROOT / "sandbox_images" / "seccomp" / "sandbox.json"
    """Seccomp profile of every sandbox."""
    pool_size: Annotated[int, ForOthers(locally=1)] = Field(default=8, ge=0, le=100)
    """Waiting containers at low load; 0: no pool."""
    pool_reserve: Annotated[int | None, FOR_OTHERS] = Field(default=None, ge=0, le=100)
    """Additional containers for callers without a running call; none: a fourth of pool_size, at most 2."""
    pool_max: int = Field(default=32, ge=0, le=1000)
    """Waiting containers at high load, preloaded ones included."""
    pool_memory_bytes: int = Field(default=0, ge=0)
    """Memory of waiting containers; 0: an eighth of the available memory at the start."""
    pool_unused_s: float = Field(default=600, gt=0)
    """Time for which preloaded containers wait after the last program that needs them."""
    starts_max: int = Field(default_factory=lambda: max(2, os.cpu_count() or 1), ge=1, le=64)
    """Containers that start at the same time; default: one per core, at least two."""
    ready_s: float = Field(default=30, gt=0)
    """Time limit for the start of a container."""
    waiting_lifetime_s: float = Field(default=1800, gt=0)
    """Age at which a waiting container is replaced."""
    sweep_every_s: float = Field(default=5, gt=0)
    """Interval of the sweeper."""

    # ---- calls ----
    running_max: int = Field(default_factory=lambda: max(2, 2 * (os.cpu_count() or 1)), ge=1)
    """Calls that run at the same time; default: two per core."""
    queue_max: int = Field(default=1000, ge=0)
    """Calls that wait for a slot; more are refused with Retry-After."""
    queue_s: float = Field(default=60, gt=0)
    """Time for which a call may wait for a slot, beyond its own wall clock."""
    overhead_s: float = Field(default=120, gt=0)
    """Time for which a sandbox may exist beyond the program's wall clock."""
    collect_s: float = Field(default=60, gt=0)
    """Time limit for putting files in, and for taking them out."""
    lost_grace_s: float = Field(default=10, gt=0)
    """Time after the wall clock at which a sandbox counts as lost."""
    lost_connection_grace_s: float = Field(default=120, ge=0)
    """Time for which a call continues after its connection was lost; 0: it is cancelled at once."""
    event_log_bytes_max: int = Field(default=64 * _MIB, ge=0)
    """Output of ended calls that is available as events."""
    inline_bytes_max: int = Field(default=16 * _MIB, ge=0)
    """Bytes of PDFs and images that one answer carries as base64; others are only hosted."""
    shutdown_grace_s: float = Field(default=20, ge=0)
    """Time for running calls to end at shutdown."""
    body_bytes_max: int = Field(default=100 * _MIB, ge=1024)
    """Size of a request's body."""
    bodies_bytes_max: int = Field(default=512 * _MIB, ge=1024)
    """Size of all request bodies in memory, without attachments; half of it per caller."""
    attachment_bytes_max: int = Field(default=100 * _MIB, ge=1)
    """Size of an uploaded attachment."""
    heartbeat_s: float = Field(default=15, gt=0)
    """Interval of heartbeats in an event stream."""

    # ---- limits of one call; a request can only lower them ----
    wall_s: float = Field(default=600, gt=0)
    """Wall clock of the program."""
    cpus: float = Field(default_factory=lambda: float(os.cpu_count() or 1), gt=0)
    """CPU share of a sandbox, in cores; default: all."""
    memory_bytes: int = Field(default=1024 * _MIB, ge=32 * _MIB)
    """Memory of a sandbox, its temporary file systems included."""
    pids: int = Field(default=256, ge=8)
    """Processes and threads of a sandbox."""
    out_dir_bytes: int = Field(default=256 * _MIB, ge=4096)
    """Size of OUT_DIR."""
    out_dir_inodes: int = Field(default=20_000, ge=16)
    """Files and folders in OUT_DIR."""
    file_bytes: int = Field(default=256 * _MIB, ge=1)
    """Size of each file that a program writes."""
    files: int = Field(default=5_000, ge=1)
    """Files that a program may leave."""
    depth: int = Field(default=32, ge=1)
    """Depth of folders that a program may leave."""
    output_bytes: int = Field(default=256 * _MIB, ge=1)
    """Output on stdout and stderr together, after which a program is ended."""
    artifact_bytes: int = Field(default=100 * _MIB, ge=1)
    """Size of each file that is taken out of a sandbox."""
    pass_on_bytes: int = Field(default=_MIB, ge=0)
    """Bytes of each of stdout and stderr that become events; of the rest only the end is stored."""

    render_wall_s: float = Field(default=120, gt=0)
    """Wall clock of one rendering."""

    file_search_s: float = Field(default=2, gt=0, le=60)
    """Processor time of the regular expressions of one file search."""
    read_tokens_max: int = Field(default=20_000, ge=100)
    """Tokens of text that one react.read shows; the first path is always shown."""

    # ---- timelines ----
    cache_point_min_rounds: int = Field(default=6, ge=1, le=1000)
    """Rounds before a timeline has a pre-tail cache point."""
    cache_point_offset_rounds: int = Field(default=4, ge=1, le=1000)
    """Rounds after the pre-tail cache point, which react.hide can reach."""
    editable_tail_tokens: int = Field(default=10_000, ge=0)
    """Tokens of text after a block that react.hide can hide."""

    # ---- retention ----
    retention_days: float = Field(default=0, ge=0, le=36_500)
    """Time without use after which a conversation is deleted; 0: never."""
    retention_every_s: float = Field(default=3600, gt=0)
    """Pause between two passes of the retention sweeper."""

    # ---- the web tools, and searching the memory ----
    web_allowed_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks beyond the public internet for page fetches, as a JSON list: ["10.20.0.0/16"]."""
    web_ports: tuple[int, ...] = (80, 443)
    """Ports for page fetches, as a JSON list."""
    web_ca_file: Path | None = None
    """Additional trusted certificate authorities, PEM."""
    web_page_s: float = Field(default=20, gt=0)
    """Time limit for fetching one page, with redirects."""
    web_call_s: float = Field(default=60, gt=0)
    """Time limit for fetching all pages of a call."""
    web_page_bytes_max: int = Field(default=3 * _MIB, ge=1024)
    """Size of a page, compressed and decompressed."""
    web_fetching_max: int = Field(default=8, ge=1)
    """Calls that fetch pages at the same time."""
    web_read_wall_s: float = Field(default=60, gt=0)
    """Wall clock for extracting text from all pages of a call, or a document, in the sandbox."""
    web_read_page_s: float = Field(default=15, gt=0)
    """Wall clock for extracting text from one page or document in the sandbox."""
    web_search_url: Annotated[str, AfterValidator(_checked_url)] = ""
    """SearXNG-compatible search endpoint, such as https://search.example.org/search; empty: no search."""
    web_search_s: float = Field(default=15, gt=0)
    """Time limit for one search."""
    memory_half_life_days: float = Field(default=90, gt=0)
    """Age at which recency counts half in a memory search."""

    # ---- the workspace of a conversation, and what the inspector may spend ----
    workspace_bytes_max: int = Field(default=64 * _MIB, ge=0)
    """Bytes of the conversation's files that are placed in OUT_DIR though the program does not name them."""
    workspace_files_max: int = Field(default=2_000, ge=0)
    """Number of those files, the smallest first."""
    full_workspace_bytes_max: int = Field(default=128 * _MIB, ge=0)
    """Bytes of what lasts beside the stored files: further files, links, folders; less if OUT_DIR has no room."""
    full_workspace_entries_max: int = Field(default=10_000, ge=0)
    """Number of those files, links and folders; less if OUT_DIR has no room for them."""
    inspect_s_per_file: int = Field(default=10, ge=1)
    """Processor time for opening one promised file; the wall clock limit is six times as long."""
    inspect_image_pixels_max: int = Field(default=100_000_000, ge=1)
    """Pixels of an opened image."""
    inspect_unpacked_bytes_max: int = Field(default=1024 * _MIB, ge=1)
    """Unpacked bytes of one archive."""
    inspect_members_max: int = Field(default=10_000, ge=1)
    """Members of an opened archive."""
    inspect_pages_max: int = Field(default=20_000, ge=1)
    """Pages of an opened document."""

    @classmethod
    def of_local_command(cls, **given: Any) -> Self:
        """The settings of a service that a command runs for itself: without what describes one for others.

        Args:
            given: settings of the command.

        Raises:
            ValidationError: see `Settings`.
            ConfigurationError: see `Settings`.
        """
        return cls(**{**local_values(cls), **given})

    @property
    def sandbox_image(self) -> str:
        """The sandbox image that calls run in."""
        return self.image or own_image()

    @property
    def keys_folder(self) -> Path:
        """The folder of the keys of links and webhooks."""
        return self.keys_dir or self.data_dir

    @property
    def audit_files(self) -> tuple[Path, Path]:
        """The private key of signed heads, and the file of their records."""
        return (
            self.audit_key_file or self.data_dir / "audit-key.pem",
            self.audit_heads_file or self.data_dir / "audit-heads.jsonl",
        )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not used here
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - not used here
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The sources, the strongest first."""
        arguments = init_settings()
        files = SecretFiles(settings_cls, arguments), ConfigFileSource(settings_cls, arguments)
        return init_settings, Replaceable(env_settings), *files

    @model_validator(mode="after")
    def _combinations_work(self) -> Self:
        if conflicts := find_conflicts(self, serves=False):
            raise ValueError("; ".join(conflict.message for conflict in conflicts))
        return self
