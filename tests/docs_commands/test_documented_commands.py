"""Every command that the documentation shows works as it is copied.

``make test-docs`` runs all blocks; without ``PROOFBOX_TEST_DOCS=all`` those that are marked as slow are left out,
and all pages but the first that a user follows.
"""

import os
import re
import subprocess

import pytest

from tests.docs_commands.page_blocks import ROOT, differing_line, find_prompts, pages_with_commands, read_blocks
from tests.docs_commands.page_session import (
    CommandFailedError,
    Network,
    PageSession,
    page_environment,
    running_service,
)

NOT_RUN_MAX = 27
FIRST_PAGES = frozenset({"README.md", "docs/tutorial.md"})
_IS_WITH_ALL = os.environ.get("PROOFBOX_TEST_DOCS") == "all"
_STARTS_SERVICE = re.compile(r"^(?:\w+=\S+ )*(?:proofbox|make) serve\b", re.MULTILINE)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """The network and the data folder of the service that most pages use."""
    with Network.open() as network, running_service(tmp_path_factory.mktemp("service"), network) as data:
        yield network, data


def blocks_to_run(page):
    if page not in FIRST_PAGES and not _IS_WITH_ALL:
        return []
    blocks = read_blocks(ROOT / page)
    return [block for block in blocks if not block.reason and (_IS_WITH_ALL or not block.is_slow)]


def starts_service(page):
    return any(_STARTS_SERVICE.search(block.text) for block in blocks_to_run(page))


PAGES = [page for page in pages_with_commands() if blocks_to_run(page)]


@pytest.mark.docker
@pytest.mark.parametrize("page", [page for page in PAGES if starts_service(page)])
def test_the_commands_of_a_page_that_starts_a_service_work_as_copied(page, tmp_path):
    with Network.open() as network:
        PageSession(tmp_path, network, page_environment(tmp_path)).run(blocks_to_run(page))


@pytest.mark.docker
@pytest.mark.parametrize("page", [page for page in PAGES if not starts_service(page)])
def test_the_commands_of_a_page_work_as_copied(page, tmp_path, shared):
    network, data = shared
    environment = page_environment(tmp_path, PROOFBOX_DATA_DIR=str(data))
    PageSession(tmp_path, network, environment).run(blocks_to_run(page))


def test_few_blocks_are_not_run_and_each_names_its_reason():
    blocks = [block for page in pages_with_commands() for block in read_blocks(ROOT / page)]
    texts = "".join((ROOT / page).read_text() for page in pages_with_commands())
    not_run = [block for block in blocks if block.reason]
    assert texts.count("not-run=") == len(not_run)
    assert [(block.page, block.line) for block in not_run if len(block.reason.split()) < 3] == []
    assert len(not_run) <= NOT_RUN_MAX


def test_no_block_of_a_page_has_prompts():
    listed = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    pages = [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
    assert [prompt for page in pages for prompt in find_prompts(page)] == []


# ---- the runner itself: it finds what is wrong with a page


@pytest.fixture
def run_page(tmp_path):
    """Runs the blocks of a text as those of a page, without a service."""

    def run(text):
        page = tmp_path / "page-of-a-test.md"
        page.write_text(text)
        blocks = read_blocks(page)
        with Network.open() as network:
            PageSession(tmp_path, network, page_environment(tmp_path)).run(blocks)

    return run


def test_blocks_of_a_page_share_one_shell_and_their_output_is_compared(run_page):
    run_page(
        "```sh\nexport WORD=tide\nmkdir deep && cd deep\n```\n\n"
        '```sh\ncat <<END\n$WORD\nEND\nbasename "$PWD"\n```\n\n```output\ntide\ndeep\n```\n\n'
        "```sh\nprintf 'a 1 b\\nx\\ny\\n'\n```\n\n```output\na … b\n…\n```\n\n"
        "```python\nimport os\nassert os.environ['WORD'] == 'tide'\n```\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("```sh\ntrue\nfalse\ntrue\n```\n", "page-of-a-test.md:1\n.*exit status 1"),
        ("```sh\nno-such-command-here\n```\n", "command not found"),
        ("```sh\ncurl -s localhost:8080/readyz\n```\n", "exit status 7"),
        ("```sh\n$ echo 1\n```\n", r"\$: command not found"),
        ("```sh\necho 1\n```\n\n```output\n2\n```\n", "the page shows:\n2\nprinted was:\n1\n"),
        ("```sh\necho 1\n```\n\n```output\n```\n", "printed was:\n1\n"),
        ("text\n\n```python\nraise SystemExit(3)\n```\n", "page-of-a-test.md:3\n.*exit status 3"),
    ],
)
def test_a_command_that_fails_or_prints_something_else_is_found(run_page, text, words):
    with pytest.raises(CommandFailedError, match=re.compile(words, re.DOTALL)):
        run_page(text)


def test_prompts_are_found_with_page_and_line(tmp_path):
    page = tmp_path / "page-of-a-test.md"
    page.write_text(
        "```console\n```\n\n- a\n\n  ~~~sh\n  ls\n  $ cat\n  > more\n  ~~~\n\n```md\n> quote\n```\n$ text\n"
    )
    assert find_prompts(page) == [f"{page.name}:1: ```console", f"{page.name}:8: $ cat", f"{page.name}:9: > more"]


@pytest.mark.parametrize("before", ["", "```sh\ntrue\n```\n```output\n```\n"])
def test_output_without_commands_is_refused(run_page, before):
    with pytest.raises(ValueError, match="output without a block of commands"):
        run_page(f"{before}```output\n1\n```\n")


def test_any_text_and_any_lines_are_matched_by_dots_and_nothing_else():
    assert differing_line(("a…c", "…", "end"), ["abc", "1", "2", "end"]) == ""
    assert differing_line(("a…c", "…", "end"), ["ac", "end"]) == ""
    assert "printed was" in differing_line(("a…c",), ["ab"])
    assert "printed was" in differing_line(("a",), ["a", "b"])
