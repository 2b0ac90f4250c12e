"""The settings of the packages of calls."""

from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from proofbox.service.app.config.local_use import FOR_OTHERS

_MIB = 1024 * 1024


class PackageSettings(BaseSettings):
    """The operator's decisions about the packages that calls ask for."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    package_index: str = Field(default="", pattern=r"^(https?://[^?#@\s]+)?$")
    """Package index that calls get wheels from, such as https://pypi.org/simple; empty: no call gets packages."""
    package_index_login: SecretStr = SecretStr("")
    """User and password at that index, user:password; empty: none."""
    package_index_ranges: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks beyond the public internet that files of the index may be in, as a JSON list; its own host may be
    anywhere."""
    package_names: tuple[str, ...] = ()
    """Names that calls may ask for, as a JSON list; what these need comes with them. Empty: all of the index."""
    package_dir: Annotated[Path | None, FOR_OTHERS] = None
    """Folder of installed packages, of one process only; the engine's machine has it under the same name. None:
    packages in data_dir."""
    package_cache_bytes_max: int = Field(default=4096 * _MIB, ge=_MIB)
    """Bytes of all installed packages together; those not used for longest are removed. What does not fit beside
    those in use is refused."""
    package_call_bytes_max: int = Field(default=1024 * _MIB, ge=_MIB)
    """Bytes of the packages of one call, unpacked; its downloads may take as many."""
    package_call_files_max: int = Field(default=50_000, ge=10)
    """Files and folders of the packages of one call."""
    package_call_count_max: int = Field(default=60, ge=1, le=1_000)
    """Packages of one call, with what they need."""
    package_install_s: float = Field(default=120, gt=0)
    """Time for finding, downloading and unpacking together, and again the longest wait for a place to install."""
    package_compile_s: float = Field(default=30, ge=0, le=600)
    """Time for compiling the modules of installed packages in a sandbox, and the longest wait for a place to do so;
    0: each call compiles what it imports."""
    package_installing_max: int = Field(default=2, ge=1, le=64)
    """Calls whose packages are being installed at the same time; of one tenant one less, but at least one."""
    package_resolution_s: float = Field(default=86_400, ge=0)
    """Time for which the versions found for a list of packages are used again without asking the index."""
