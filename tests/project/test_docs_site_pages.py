"""The pages of the documentation site: what the build changes in the source, and in the HTML that it gets."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))

build = importlib.import_module("build")
finish = importlib.import_module("finish").finish
pages = importlib.import_module("pages")


@pytest.fixture
def staged(tmp_path):
    build.Stage(tmp_path).write()
    return tmp_path


def test_a_link_that_is_a_file_name_gets_the_title_of_its_page_or_section(staged):
    text = (staged / "stores.md").read_text()
    assert "[Settings and limits](settings.md)" in text
    assert "[Signed heads](provenance.md#signed-heads)" in text
    assert "[Architecture](architecture.md)" in (staged / "contributing.md").read_text()


def test_a_link_to_a_file_that_is_not_a_page_keeps_its_name(staged):
    assert "[proposal.md](../files/examples/proposal.md.txt)" in (staged / "gallery" / "index.md").read_text()


def test_a_bar_in_the_code_of_a_table_loses_its_backslash_and_no_other_does():
    page = 'a `x\\|y`\n\n| a | b |\n|---|---|\n| c | `"bar" \\| "line"` |\n\n```\n| `x\\|y` |\n```\n'
    linked = build.Stage(Path())._with_links("docs/console.md", page)
    assert linked == page.replace('"bar" \\| "line"', '"bar" | "line"')


@pytest.mark.parametrize("page", pages.all_pages())
def test_blocks_in_items_of_lists_are_indented_by_four_spaces_and_end_with_a_blank_line(page):
    # The site ends a list at a block with fewer, and reads the next item as text of a block; code hosts do not.
    shallow, is_first, is_in_block = [], True, False
    for line, is_text in pages.lines_outside_code((ROOT / page).read_text()):
        is_item = re.match(r" *(?:[-*]|\d+\.) ", line)
        if is_first and line:
            is_in_block = line.startswith("    ") and not is_item
        starts_block = (is_text and (is_first or is_item)) or line.lstrip().startswith("```")
        if (starts_block and re.match(r" {1,3}\S", line)) or (is_text and is_item and is_in_block):
            shallow.append(line)
        is_first = not line
    assert shallow == []


def test_short_code_stays_on_one_line_and_code_in_blocks_is_unchanged():
    assert finish("<p><code>--user</code></p>") == '<p><code class="pb-whole">--user</code></p>'
    assert finish("<code>&lt;turn_id&gt;/files/&lt;name&gt;</code>") == (
        '<code class="pb-whole">&lt;turn_id&gt;/files/&lt;name&gt;</code>'
    )
    for unchanged in (f"<code>{'a' * 25}</code>", "<pre><span></span><code>ls -l\n</code></pre>"):
        assert finish(unchanged) == unchanged


def test_figures_stay_beside_their_unit_in_text_alone():
    assert finish("<td>≥ 99.5 %, 15 / 20 / 23 ms; ADR 16, 3 sections</td>") == (
        "<td>≥\xa099.5\xa0%, 15\xa0/\xa020\xa0/\xa023\xa0ms; ADR\xa016, 3 sections</td>"
    )
    for unchanged in ('<img alt="99.5 %">', f"<code>{'a' * 20} 5 ms</code>", "<pre>5 ms</pre>"):
        assert finish(unchanged) == unchanged


def test_columns_of_long_texts_get_a_class_in_their_head():
    head = "<table>\n<tr>\n<th>a</th>\n<th>b</th>\n<th>c</th>\n</tr>\n"
    row = f"<tr>\n<td><em>{'x' * 23}</em></td>\n<td>{'x' * 48}</td>\n<td>{'&amp;' * 150}</td>\n</tr>\n</table>"
    assert (
        finish(head + row)
        == head.replace("<th>b", '<th class="pb-text">b').replace("<th>c", '<th class="pb-long">c') + row
    )
