"""LangChain's 85 tests of sandboxes for deepagents, with the newest deepagents that they describe.

`langchain_tests` 1.1.9 expects what deepagents 0.7 changed: its `write` replaces a file, and its `glob` returns
absolute paths. 7 of the tests contradict that release; the adapter is the same for both.
"""

import pytest
from langchain_tests.integration_tests import SandboxIntegrationTests

from proofbox.adapters.deepagents import ProofboxSandbox


class TestProofboxSandbox(SandboxIntegrationTests):
    """The standard tests, below the folder that commands share."""

    @property
    def sandbox_root_dir(self):
        return "/mnt/data/test_sandbox_ops/"

    @pytest.fixture(scope="class")
    def sandbox(self, service_url):
        return ProofboxSandbox(service_url)
