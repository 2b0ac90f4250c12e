"""Every limit, image and path: a named setting with its unit in the name, a default and a sentence.

Set by environment variables, ``PROOFBOX_`` and the name in capitals: ``PROOFBOX_WALL_S=60``.
"""

import os
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.web.urls import WebUrl

_MIB = 1024 * 1024
_ROOT = Path(__file__).parents[2]
_S3_NEEDS_BUCKET = ("s3_prefix", "s3_endpoint", "s3_link_endpoint", "s3_region", "s3_access_key", "s3_secret_key")


class Settings(BaseSettings):
    """The operator's decisions."""

    model_config = SettingsConfigDict(
        env_prefix="PROOFBOX_", use_attribute_docstrings=True, extra="forbid", hide_input_in_errors=True
    )

    # ---- where ----
    host: str = "127.0.0.1"
    """Address to listen on."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port to listen on."""
    auth: Literal["auto", "required", "off"] = "auto"
    """Who needs an API key: auto, every client unless host is loopback; required, every client; off, none."""
    behind_authenticating_proxy: bool = False
    """A proxy in front decides who comes in: only then may auth be off where host is not of loopback."""
    allowed_hosts: tuple[str, ...] = ()
    """Host names besides loopback's own of a service without required keys, as a JSON list."""
    public_url: str = Field(default="", pattern=r"^(https?://[^?#]+)?$")
    """URL of this service as clients reach it, for links; empty: links have no host."""
    head_s: float = Field(default=10, gt=0)
    """How long the head of a request may take to arrive."""
    unread_s: float = Field(default=60, gt=0)
    """How long a client may read less of an answer than 1 KiB in a second before its connection ends."""
    connections_max: int = Field(default=8_000, ge=1)
    """Connections of clients at a time, at most half of the open files that the system allows; more are 429."""
    connections_per_address_max: int = Field(default=2_000, ge=1)
    """Connections of one client address, of IPv6 one /64 network; raise it where a proxy has one address."""
    body_s: float = Field(default=60, gt=0)
    """How long the service waits for the body of a request, beyond a second for each 64 KiB that comes."""
    data_dir: Path = Path(".proofbox")
    """Folder of artifacts, staging and, unless database_url names a server, the database."""
    database_url: SecretStr = SecretStr("")
    """PostgreSQL database of the records, postgresql://user:password@host/name; empty: SQLite in data_dir."""
    database_timeout_s: float = Field(default=30, gt=0)
    """How long one statement to a PostgreSQL server may take."""
    service_name: str = ""
    """Name of this service on its engine; two services sweep only their own. Empty: made from data_dir."""
    tenant: str = "default"
    """Tenant of every request."""
    project: str = "default"
    """Project of every request."""
    user_type: str = "registered"
    """User type of every request."""
    user: str = "local"
    """User of every request."""
    asset_roots: tuple[Path, ...] = ()
    """Folders below which a call may name assets by file:// URI, as a JSON list."""
    skills_dir: Path | None = None
    """Folder of the skills that react.read loads by sk:<id>: <id>/SKILL.md or <id>.md in it; none: no skills."""

    # ---- what is seen from outside ----
    log_format: Literal["json", "text"] = "text"
    """Format of the log: json, one object a line; text, for people."""
    otlp_endpoint: str = Field(default="", pattern=r"^(https?://[^/?#@\s]+(/[^?#\s]*)?)?$")
    """Receiver of traces by OTLP over HTTP, such as http://127.0.0.1:4318; empty: the OTEL_ variables', if any."""

    # ---- signed heads of the audit lines ----
    audit_head_s: float = Field(default=5, ge=0)
    """Pause between signatures of the last audit line of each chain; 0: none is signed."""
    audit_key_file: Path | None = None
    """Private key that signs them, PEM, made at the first start; none: audit-key.pem in data_dir."""
    audit_heads_file: Path | None = None
    """File that the signatures are added to; none: audit-heads.jsonl in data_dir."""

    # ---- artifacts in a bucket; without one they are in data_dir ----
    s3_bucket: str = ""
    """Bucket of artifacts on an S3-compatible server; empty: artifacts are files below data_dir."""
    s3_prefix: str = Field(default="", max_length=200, pattern=r"^([A-Za-z0-9_.=-]*[A-Za-z0-9_=-](/|$))*$")
    """Names of objects begin with it and a slash; a bucket and prefix belong to one service."""
    s3_endpoint: str = Field(default="", pattern=r"^(https?://[^/?#]+/?)?$")
    """URL of the S3-compatible server; empty: AWS."""
    s3_link_endpoint: str = Field(default="", pattern=r"^(https?://[^/?#]+/?)?$")
    """URL of the same server as clients reach it, for links; empty: s3_endpoint."""
    s3_region: str = ""
    """Region of the bucket; empty: from the AWS variables and files, else us-east-1."""
    s3_access_key: str = ""
    """Access key; empty: the AWS variables, files or role of the machine."""
    s3_secret_key: SecretStr = SecretStr("")
    """Secret that belongs to s3_access_key."""
    s3_part_bytes: int = Field(default=8 * _MIB, ge=5 * _MIB, le=1024 * _MIB)
    """Larger files are sent in parts of this size; each of up to 8 transfers holds one part in memory."""
    link_s: int = Field(default=900, ge=1, le=7 * 24 * 3600)
    """How long a link to a file works, in the bucket or of this service."""

    # ---- limits of an API key, unless it has its own; 0: no limit ----
    limits_without_key: bool = False
    """Whether these limits hold for each tenant where requests need no key."""
    key_requests_per_minute: int = Field(default=6_000, ge=0)
    """Requests of any kind."""
    key_calls_per_minute: int = Field(default=600, ge=0)
    """Tool calls."""
    key_upload_bytes_per_minute: int = Field(default=1024 * _MIB, ge=0)
    """Bytes of request bodies."""
    key_running_calls: int | None = Field(default=None, ge=0)
    """Calls that run at one time; by default three quarters of running_max, so that others find a place."""
    key_queued_calls: int = Field(default=100, ge=0)
    """Calls that wait for a place."""
    key_stored_bytes: int = Field(default=0, ge=0)
    """Bytes of all versions of files and attachments that are stored in the key's project."""

    # ---- engine ----
    engine: Literal["docker", "oci"] = "docker"
    """What starts sandboxes: a Docker engine, or oci, an OCI runtime that the service, as root, runs itself."""
    engine_host: str = ""
    """Docker engine, in the form of DOCKER_HOST; empty: the environment's."""
    engine_timeout_s: float = Field(default=30, gt=0)
    """How long one request to the engine may take."""
    image: str = "proofbox-sandbox:latest"
    """The sandbox image."""
    runtime: str = ""
    """OCI runtime that the Docker engine uses, such as runsc; empty: the engine's default."""
    oci_runtime: str = ""
    """Runtime of the engine oci, a name or a path; empty: crun, or runc if there is no crun."""
    oci_image_archive: Path | None = None
    """The sandbox image for the engine oci, as 'docker save' writes it; empty: from a Docker engine."""
    oci_cache_dir: Path = Path("/var/cache/proofbox")
    """Folder that the engine oci unpacks images into, once each; services on a machine share it."""
    oci_run_dir: Path = Path("/run/proofbox")
    """Folder of the engine oci for the state of running containers."""
    cgroup_parent: str = ""
    """Control group above the sandboxes of all services, a slice where systemd has them; empty: proofbox."""
    sandbox_user_first: int = Field(default=20_000, ge=1_000, le=60_000)
    """First of the user ids of sandboxes, one for each container that exists; the image names 20000 to 21999."""
    sandbox_users: int = Field(default=2_000, ge=1, le=5_000)
    """How many user ids sandboxes take in turn; each service on a machine claims blocks of 50 of its own."""
    import_once: Literal["auto", "on", "off"] = "auto"
    """Libraries are imported once and forked into sandboxes; auto: where that can be, on: or the service ends."""
    total_memory_bytes: int = Field(default=0, ge=0)
    """Memory of all sandboxes together; 0: the machine's without an eighth, 512 MiB at least."""
    total_pids: int = Field(default=0, ge=0)
    """Processes and threads of all sandboxes together; 0: half of those that the kernel allows."""
    total_cpus: float = Field(default=0, ge=0)
    """CPU share of all sandboxes together, in cores; 0: all, after whatever else on the machine wants them."""
    seccomp_profile: Path = _ROOT / "sandbox_images" / "seccomp" / "sandbox.json"
    """The seccomp profile of every sandbox."""
    pool_size: int = Field(default=8, ge=0, le=100)
    """Containers that wait, started, for a call when there are few calls; 0: none waits, ever."""
    pool_reserve: int | None = Field(default=None, ge=0, le=100)
    """Containers beside pool_size for callers with no other call running; by default a fourth of it, 2 at most."""
    pool_max: int = Field(default=32, ge=0, le=1000)
    """Containers that wait when there are many calls, those that have imported libraries included."""
    pool_memory_bytes: int = Field(default=0, ge=0)
    """Memory that waiting containers may take; 0: an eighth of what is available at the start."""
    pool_unused_s: float = Field(default=600, gt=0)
    """How long containers with imported libraries stay in the pool after the last program that uses them."""
    starts_max: int = Field(default_factory=lambda: max(2, os.cpu_count() or 1), ge=1, le=64)
    """Containers that start at one time; by default one for each core, and two at least."""
    ready_s: float = Field(default=30, gt=0)
    """How long a container may take until its runner answers."""
    waiting_lifetime_s: float = Field(default=1800, gt=0)
    """When a waiting container is replaced by a younger one."""
    sweep_every_s: float = Field(default=5, gt=0)
    """How often orphaned containers are removed."""

    # ---- calls ----
    running_max: int = Field(default_factory=lambda: max(2, 2 * (os.cpu_count() or 1)), ge=1)
    """Calls that run at one time; by default two for each core."""
    queue_max: int = Field(default=1000, ge=0)
    """Calls that wait for a place; one more is refused with Retry-After."""
    queue_s: float = Field(default=60, gt=0)
    """How long a call may wait for a place, beyond its own wall clock."""
    overhead_s: float = Field(default=120, gt=0)
    """What a sandbox may exist beyond the program's wall clock: put, collect, check."""
    collect_s: float = Field(default=60, gt=0)
    """How long putting files in, and taking them out, may take."""
    lost_grace_s: float = Field(default=10, gt=0)
    """When a sandbox that overran its wall clock counts as lost."""
    lost_connection_grace_s: float = Field(default=120, ge=0)
    """How long a call goes on without a client after its connection was lost; 0: it is cancelled at once."""
    remembered_bytes_max: int = Field(default=64 * _MIB, ge=0)
    """How much of the output of ended calls can still be followed as events."""
    inline_bytes_max: int = Field(default=16 * _MIB, ge=0)
    """How many bytes of PDFs and images one answer carries as base64; the others are hosted and no more."""
    shutdown_grace_s: float = Field(default=20, ge=0)
    """How long running calls may take to end when the service stops."""
    body_bytes_max: int = Field(default=100 * _MIB, ge=1024)
    """Size of a request's body."""
    bodies_bytes_max: int = Field(default=512 * _MIB, ge=1024)
    """Size of all request bodies that are in memory at one time, attachments apart; of one caller half of it."""
    attachment_bytes_max: int = Field(default=100 * _MIB, ge=1)
    """Size of an uploaded attachment."""
    heartbeat_s: float = Field(default=15, gt=0)
    """Pause after which an event stream sends a heartbeat."""

    # ---- limits of one call; a request can only lower them ----
    wall_s: float = Field(default=600, gt=0)
    """Wall clock of the program."""
    cpus: float = Field(default_factory=lambda: float(os.cpu_count() or 1), gt=0)
    """CPU share of a sandbox, in cores; by default all of the machine."""
    memory_bytes: int = Field(default=1024 * _MIB, ge=32 * _MIB)
    """Memory of a sandbox, its temporary file systems included."""
    pids: int = Field(default=256, ge=8)
    """Processes and threads of a sandbox."""
    out_dir_bytes: int = Field(default=256 * _MIB, ge=4096)
    """Size of OUT_DIR."""
    out_dir_inodes: int = Field(default=20_000, ge=16)
    """Files and folders that OUT_DIR can hold."""
    file_bytes: int = Field(default=256 * _MIB, ge=1)
    """Size of any one file that a program writes."""
    files: int = Field(default=5_000, ge=1)
    """Files that a program may leave behind."""
    depth: int = Field(default=32, ge=1)
    """Folders below one another that a program may leave behind."""
    output_bytes: int = Field(default=256 * _MIB, ge=1)
    """What a program may write to stdout and stderr together before it is ended."""
    artifact_bytes: int = Field(default=100 * _MIB, ge=1)
    """Size of any one file that is taken out of a sandbox."""
    pass_on_bytes: int = Field(default=_MIB, ge=0)
    """How much of each of stdout and stderr is passed on as events; the rest is counted, its end stored."""

    render_wall_s: float = Field(default=120, gt=0)
    """Wall clock of one rendering."""

    file_search_s: float = Field(default=2, gt=0, le=60)
    """Processor time that the regular expressions of one file search may take, in all its files together."""
    read_tokens_max: int = Field(default=20_000, ge=100)
    """How many tokens of text one react.read shows; the first path is shown in any case, the others are listed."""

    # ---- timelines ----
    cache_point_min_rounds: int = Field(default=6, ge=1, le=1000)
    """Rounds (tool calls, and messages outside calls) before a timeline has a pre-tail cache point."""
    cache_point_offset_rounds: int = Field(default=4, ge=1, le=1000)
    """Rounds after the pre-tail cache point; react.hide can only reach those."""
    editable_tail_tokens: int = Field(default=10_000, ge=0)
    """Tokens of text that may stand after a block that react.hide hides."""

    # ---- the web tools, and searching the memory ----
    web_allowed_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks beyond the public internet that pages may be fetched from, as a JSON list: ["10.20.0.0/16"]."""
    web_ports: tuple[int, ...] = (80, 443)
    """Ports that pages may be fetched from, as a JSON list."""
    web_ca_file: Path | None = None
    """Certificates of authorities that are trusted beside the machine's own, PEM."""
    web_page_s: float = Field(default=20, gt=0)
    """How long fetching one page may take, redirects and all."""
    web_call_s: float = Field(default=60, gt=0)
    """How long fetching all pages of a call may take."""
    web_page_bytes_max: int = Field(default=3 * _MIB, ge=1024)
    """Size of a page that is fetched, compressed and decompressed."""
    web_fetching_max: int = Field(default=8, ge=1)
    """Calls that fetch pages at one time; the pages of each are in memory until they are read."""
    web_read_wall_s: float = Field(default=60, gt=0)
    """Wall clock for taking the text out of all pages of a call, or out of a document, in the sandbox."""
    web_read_page_s: float = Field(default=15, gt=0)
    """Wall clock for taking the text out of one page or one document, inside of the sandbox."""
    web_search_url: str = ""
    """Search endpoint that answers as SearXNG does, such as https://search.example.org/search. Empty: no search."""
    web_search_s: float = Field(default=15, gt=0)
    """How long one search may take."""
    memory_half_life_days: float = Field(default=90, gt=0)
    """After how many days newness counts half as much when the memory is searched."""

    # ---- the turn's workspace, and what the inspector may spend ----
    workspace_bytes_max: int = Field(default=64 * _MIB, ge=0)
    """Bytes of the turn's own files that are put into OUT_DIR unasked."""
    workspace_files_max: int = Field(default=500, ge=0)
    """Number of the turn's own files that are put into OUT_DIR unasked."""
    conversation_bytes_max: int = Field(default=8 * _MIB, ge=0)
    """Bytes of files and attachments of other turns that are put into OUT_DIR unasked, the newest first."""
    conversation_files_max: int = Field(default=64, ge=0)
    """Number of files and attachments of other turns that are put into OUT_DIR unasked."""
    inspect_s_per_file: int = Field(default=10, ge=1)
    """Processor time for opening one promised file, tried twice at most; six times as much of the wall clock."""
    inspect_image_pixels_max: int = Field(default=100_000_000, ge=1)
    """Pixels of an image that is opened."""
    inspect_unpacked_bytes_max: int = Field(default=1024 * _MIB, ge=1)
    """Bytes that the members of one archive may claim."""
    inspect_members_max: int = Field(default=10_000, ge=1)
    """Members of an archive that is opened."""
    inspect_pages_max: int = Field(default=20_000, ge=1)
    """Pages of a document that is opened."""

    @property
    def audit_files(self) -> tuple[Path, Path]:
        """The private key of signed heads, and the file of their records."""
        return (
            self.audit_key_file or self.data_dir / "audit-key.pem",
            self.audit_heads_file or self.data_dir / "audit-heads.jsonl",
        )

    @property
    def is_traced(self) -> bool:
        """Whether a receiver of traces is named, here or by OpenTelemetry's own variables."""
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return False
        names = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
        return bool(self.otlp_endpoint) or any(os.environ.get(name) for name in names)

    @field_validator("web_search_url")
    @classmethod
    def _web_search_url_can_be_read(cls, value: str) -> str:
        if value:
            WebUrl.parse(value)  # raises ValueError
        return value

    @model_validator(mode="after")
    def _runtime_is_used(self) -> Self:
        if self.engine == "oci" and self.runtime:
            raise ValueError(
                f"PROOFBOX_RUNTIME {self.runtime} is for the engine docker, PROOFBOX_ENGINE is oci: "
                "set PROOFBOX_OCI_RUNTIME, or PROOFBOX_ENGINE=docker"
            )
        return self

    @model_validator(mode="after")
    def _one_sandbox_fits_into_all(self) -> Self:
        for each, total in (("memory_bytes", "total_memory_bytes"), ("pids", "total_pids")):
            if 0 < getattr(self, total) < getattr(self, each):
                raise ValueError(
                    f"PROOFBOX_{total.upper()} {getattr(self, total)} is less than what one sandbox may take, "
                    f"PROOFBOX_{each.upper()} {getattr(self, each)}: raise the first or lower the second"
                )
        return self

    @model_validator(mode="after")
    def _tmpfs_fits_memory(self) -> Self:
        if self.out_dir_bytes > self.memory_bytes // 2:
            raise ValueError(
                f"PROOFBOX_OUT_DIR_BYTES {self.out_dir_bytes} is over half of PROOFBOX_MEMORY_BYTES "
                f"{self.memory_bytes}: OUT_DIR counts as memory of its sandbox"
            )
        return self

    @model_validator(mode="after")
    def _s3_is_whole(self) -> Self:
        given = [name for name in _S3_NEEDS_BUCKET if getattr(self, name) != type(self).model_fields[name].default]
        if given and not self.s3_bucket:
            name = given[0].upper()
            raise ValueError(f"PROOFBOX_{name} is set and PROOFBOX_S3_BUCKET is not: set both or neither")
        if bool(self.s3_access_key) != bool(self.s3_secret_key.get_secret_value()):
            raise ValueError("PROOFBOX_S3_ACCESS_KEY and PROOFBOX_S3_SECRET_KEY belong together: set both or none")
        return self
