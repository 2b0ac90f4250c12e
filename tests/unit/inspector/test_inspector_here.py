"""Files that the inspector judges in its own process, as it is asked to where nothing else needs that process."""

import signal

import pytest
from inspector_run import ENDLESS, ENDLESS_TEXT, run_inspector
from inspector_samples import image, pdf

PLAIN = {
    "a.txt": b"x",
    "b.csv": b"a,b\n1,2\n",
    "broken.json": b"{",
    "c.bin": b"\0",
    "latin.md": b"\xe9",
    "d.jsonl": b"1\n2\n",
}
LIBRARIES = {"e.pdf": pdf(), "broken.pdf": b"%PDF-1.4", "f.png": image("PNG"), "broken.png": b"\x89PNG"}
OUT_OF_MEMORY = "could not be opened: the checker ran out of memory"


@pytest.fixture
def root(tmp_path):
    for name, content in {**PLAIN, **LIBRARIES, "slow.json": ENDLESS_TEXT.encode()}.items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def asked(*names):
    return [{"id": n, "path": name, "checks": ENDLESS if "slow" in name else {}} for n, name in enumerate(names)]


def announced(rows, *, here):
    return {"here": here, "mimes": [row["mime"] for row in rows]}


@pytest.mark.parametrize("names", [*([name] for name in (*PLAIN, *LIBRARIES)), [*PLAIN], [*reversed(PLAIN)]])
def test_one_file_and_several_plain_ones_are_judged_here_as_they_are_elsewhere(root, names):
    elsewhere = run_inspector(root, asked(*names))
    first, *lines = run_inspector(root, asked(*names), here=True)
    assert first == announced(elsewhere, here=True)
    assert lines == [{key: row[key] for key in ("ok", "problem", "facts")} for row in elsewhere]


@pytest.mark.parametrize(
    "names", [["e.pdf", "a.txt"], ["a.txt", "f.png"], ["a.txt", "e.pdf", "b.csv"], ["e.pdf", "e.pdf"], []]
)
def test_files_that_are_not_judged_here_have_their_ordinary_rows_behind_the_word_that_they_are_not(root, names):
    elsewhere = run_inspector(root, asked(*names))
    assert run_inspector(root, asked(*names), here=True) == [announced(elsewhere, here=False), *elsewhere]
    assert [row["id"] for row in elsewhere] == [*range(len(names))]


@pytest.mark.parametrize(("count", "here"), [(50, True), (51, False)])
def test_up_to_50_plain_files_are_judged_here(root, count, here):
    first, *lines = run_inspector(root, asked(*["a.txt"] * count), here=True)
    assert (first, len(lines)) == ({"here": here, "mimes": ["text/plain"] * count}, count)


@pytest.mark.parametrize("before", [[], ["a.txt"], ["a.txt", "broken.json", "b.csv"]])
def test_a_file_that_takes_too_long_ends_the_process_behind_the_lines_of_those_before_it(root, before):
    files = asked(*before, "slow.json", "a.txt")
    lines = run_inspector(root, files, here=True, seconds_per_file=0.5, status=-signal.SIGPROF)
    assert lines[0]["here"] is True
    assert lines[1:] == run_inspector(root, files[: len(before)], here=True)[1:]


@pytest.mark.parametrize(
    ("names", "problems"),
    [(["big.json", "a.txt"], [OUT_OF_MEMORY, None]), (["a.txt", "big.json", "a.txt"], [None])],
)
def test_of_files_that_there_is_no_memory_for_only_the_first_of_all_is_judged(root, names, problems):
    (root / "big.json").write_text("[" + "[],[]," * 5_000_000 + "1]")
    first, *lines = run_inspector(root, asked(*names), here=True, memory_bytes_max=200_000_000)
    assert (first["here"], [line["problem"] for line in lines]) == (True, problems)


def test_nothing_is_announced_where_it_is_not_asked_for(root):
    rows = run_inspector(root, asked(*PLAIN), here=False)
    assert (rows, [row["id"] for row in rows]) == (run_inspector(root, asked(*PLAIN)), [*range(len(PLAIN))])
