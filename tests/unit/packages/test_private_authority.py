"""An index with certificates of the operator's own authority: resolved, downloaded, asked by `doctor`."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from proofbox.cli.checks.package_index import check_package_index
from proofbox.service.app.settings import Settings
from proofbox.service.errors import PackageIndexError
from tests.support.certificates import make_issuer
from tests.support.package_index import PackageIndex, caller, installer
from tests.support.web_server import web_server


class SecuredIndex(PackageIndex):
    """An index that is asked by its name."""

    @property
    def url(self):
        return self.server.url("/simple", "localhost")


@pytest.fixture
def issuer(tmp_path):
    (tmp_path / "authority").mkdir()
    return make_issuer(tmp_path / "authority")


@asynccontextmanager
async def secured_index(tls):
    async with web_server(tls) as server:
        index = SecuredIndex(server)
        index.add("top", "1.0", requires=["below"])
        index.add("below", "1.0")
        yield index


async def install(packages, pinned=None):
    async with packages.use(["top"], caller("acme"), pinned) as found:
        return found.packages


async def test_packages_of_an_index_with_a_private_authority_are_installed_and_installed_again(issuer, tmp_path):
    async with secured_index(issuer.server_tls("localhost")) as index:
        found = await install(installer(index, tmp_path / "first", ca_file=issuer.path))
        assert [package.name for package in found] == ["below", "top"]
        again = await install(installer(index, tmp_path / "second", ca_file=issuer.path), found)
        assert again == found


@pytest.mark.parametrize(
    ("name", "days", "trusted"),
    [("localhost", (-1, 2), False), ("localhost", (-5, -2), True), ("other.test", (-1, 2), True)],
    ids=["unknown authority", "expired", "another name"],
)
async def test_an_index_whose_certificate_is_not_valid_is_asked_for_nothing(issuer, tmp_path, name, days, trusted):
    async with secured_index(issuer.server_tls(name, days=days)) as index:
        packages = installer(index, tmp_path / "packages", ca_file=issuer.path if trusted else None)
        with pytest.raises(PackageIndexError, match=r"does not answer \(.*certificate"):
            await install(packages)
        assert index.asked == []


async def test_doctor_finds_a_private_index_and_names_the_setting_for_its_authority(issuer, tmp_path):
    async with secured_index(issuer.server_tls("localhost")) as index:
        given = {"package_index": index.url, "package_names": ("below",), "data_dir": tmp_path}
        found = await asyncio.to_thread(check_package_index, Settings(**given, web_ca_file=issuer.path))
        assert (found.status, found.detail) == ("ok", f"{index.url} answers")
        found = await asyncio.to_thread(check_package_index, Settings(**given))
        assert found.status == "warn"
        assert "certificate" in found.detail
        assert "PROOFBOX_WEB_CA_FILE" in found.remedy
