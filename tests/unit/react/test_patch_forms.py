"""The forms in which language models write a change of one file: each is applied exactly, or refused."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.react.hunks import HunkHeaderError, HunkMismatchError
from proofbox.service.react.patch_forms import apply_diff, is_diff

OLD = """\
import os

class A:
    def run(self):
        x = 1
        return x

class B:
    def run(self):
        x = 1
        return x
"""
NEW = OLD.replace("import os", "import sys")
HUNK = "@@ -1,3 +1,3 @@\n-import os\n+import sys\n \n class A:\n"
HEAD = "--- a/f.py\n+++ b/f.py\n"
ENVELOPE = "*** Begin Patch\n*** Update File: f.py\n{}*** End Patch\n"
MAIL = "From 1f2e3d4c5b6a7988 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nSubject: [PATCH] x\n\n---\n"
BLOCK = "<<<<<<< SEARCH\nimport os\n=======\nimport sys\n>>>>>>> REPLACE\n"


def indented(text: str, blanks: str) -> str:
    return "".join(blanks + line if line.strip() else line for line in text.splitlines(keepends=True))


FORMS = {
    "a bare hunk": HUNK,
    "with file names": HEAD + HUNK,
    "blank lines first": "\n\n" + HEAD + HUNK,
    "blank lines first, no file names": "\n" + HUNK,
    "blanks before the header only": "  " + HUNK,
    "blanks before all headers": " --- a/f.py\n +++ b/f.py\n " + HUNK,
    "indented as a whole": indented(HEAD + HUNK, "    "),
    "indented by a tab": "\n" + indented(HUNK, "\t"),
    "git": "diff --git a/f.py b/f.py\nindex 83db48f..bf269f4 100644\n" + HEAD + HUNK,
    "git with modes": "diff --git a/f.py b/f.py\nold mode 100644\nnew mode 100755\nindex 1..2\n" + HEAD + HUNK,
    "diff -u": "diff -u a/f.py b/f.py\n" + HEAD + HUNK,
    "svn": "Index: f.py\n" + "=" * 67 + "\n--- f.py\t(revision 1)\n+++ f.py\t(working copy)\n" + HUNK,
    "time stamps": "--- f.py\t2026-11-01 10:00:00\n+++ f.py\t2026-11-02 10:00:00\n" + HUNK,
    "fenced": "```diff\n" + HEAD + HUNK + "```\n",
    "fenced as a patch, below a blank line": "\n```patch\n" + HUNK + "```",
    "fenced without a language": "```\n" + HEAD + HUNK + "```\n\n",
    "fenced by tildes": "~~~diff\n" + HUNK + "~~~\n",
    "fenced and indented": indented("```diff\n" + HUNK + "```\n", "  "),
    "a fence that does not end": "```diff\n" + HUNK,
    "CR LF": (HEAD + HUNK).replace("\n", "\r\n"),
    "CR LF in the lines of the hunk only": HEAD + HUNK.replace("\n", "\r\n"),
    "a byte order mark": "\ufeff" + HEAD + HUNK,
    "a mail of git": MAIL + " f.py | 2 +-\n\ndiff --git a/f.py b/f.py\n" + HEAD + HUNK + "-- \n2.39.2\n\n",
    "git show": "commit 1f2e3d4c5b\nAuthor: A <a@b>\n\n    x\n\ndiff --git a/f.py b/f.py\n" + HEAD + HUNK,
    "no end of the header": HUNK.replace("+1,3 @@", "+1,3"),
    "no new part of the header": HUNK.replace(" +1,3", ""),
    "no counts": HUNK.replace("1,3", "1"),
    "no blanks in the header": HUNK.replace("@@ -1,3 +1,3 @@", "@@-1,3 +1,3@@"),
    "counts too low": HUNK.replace("-1,3 +1,3", "-1,1 +1,1"),
    "counts too high": HUNK.replace("-1,3 +1,3", "-1,9 +1,7"),
    "a wrong line": HUNK.replace("-1,3 +1,3", "-7,3 +7,3"),
    "no line": HUNK.replace("@@ -1,3 +1,3 @@", "@@"),
    "no line, dots": HUNK.replace("@@ -1,3 +1,3 @@", "@@ ... @@"),
    "letters in place of lines": HUNK.replace("@@ -1,3 +1,3 @@", "@@ -a,b +c,d @@"),
    "an envelope": ENVELOPE.format("@@\n-import os\n+import sys\n"),
    "an envelope with context": ENVELOPE.format("@@ import\n-import os\n+import sys\n \n class A:\n"),
    "an envelope without a header": ENVELOPE.format("-import os\n+import sys\n"),
    "an envelope with line numbers": ENVELOPE.format(HUNK),
    "an envelope around a diff": ENVELOPE.format(HEAD + HUNK),
    "an envelope with blank lines": "\n" + ENVELOPE.format("\n@@\n-import os\n+import sys\n\n") + "\n",
    "an envelope in a fence": "```\n" + ENVELOPE.format("@@\n-import os\n+import sys\n") + "```",
    "an envelope that does not end": "*** Begin Patch\n*** Update File: f.py\n@@\n-import os\n+import sys\n",
    "an update without an envelope": "*** Update File: f.py\n@@\n-import os\n+import sys\n",
    "an indented envelope": indented(ENVELOPE.format("@@\n-import os\n+import sys\n"), "  "),
    "an envelope indented by one blank": indented(ENVELOPE.format("@@\n-import os\n+import sys\n"), " "),
    "an envelope indented by a tab": indented(ENVELOPE.format("@@\n-import os\n+import sys\n"), "\t"),
    "an indented envelope in a fence": "```\n"
    + indented(ENVELOPE.format("@@\n-import os\n+import sys\n"), "  ")
    + "```",
    "an envelope in small letters": "*** begin patch\n*** update file: f.py\n@@\n-import os\n+import sys\n"
    "*** end patch\n",
    "an envelope without blanks": "***Begin Patch\n***Update File: f.py\n-import os\n+import sys\n***End Patch\n",
    "indented without line numbers": "\n  @@\n  -import os\n  +import sys\n",
    "a fence with the name of a file": "```diff f.py\n" + HUNK + "```\n",
    "search and replace": BLOCK,
    "search and replace, indented": indented(BLOCK, "  "),
    "search and replace in a fence": "```\n" + BLOCK + "```\n",
    "search and replace, indented in a fence": "```text f.py\n" + indented(BLOCK, "\t") + "```\n",
    "search and replace, named": "f.py\n```python\n" + BLOCK + "```\n",
}


@pytest.mark.parametrize("patch", FORMS.values(), ids=FORMS.keys())
def test_each_form_is_a_diff_and_is_applied(patch):
    assert is_diff(patch)
    assert apply_diff(OLD, patch).text == NEW


@pytest.mark.parametrize("patch", FORMS.values(), ids=FORMS.keys())
def test_each_form_keeps_the_line_ends_of_a_file_with_crlf(patch):
    assert apply_diff(OLD.replace("\n", "\r\n"), patch).text == NEW.replace("\n", "\r\n")


@pytest.mark.parametrize("patch", FORMS.values(), ids=FORMS.keys())
def test_no_form_fits_another_text(patch):
    with pytest.raises(HunkMismatchError) as refused:
        apply_diff(OLD.replace("import os", "import io"), patch)

    assert refused.value.expected == "import os"
    assert refused.value.found == ("" if "-7,3" in patch else "import io")


SECOND = "@@ class B:\n     def run(self):\n-        x = 1\n+        x = 2\n"
IN_B = OLD[: OLD.rindex("x = 1")] + "x = 2" + OLD[OLD.rindex("x = 1") + 5 :]


@pytest.mark.parametrize(
    ("patch", "new"),
    [
        pytest.param(ENVELOPE.format(SECOND), IN_B, id="one anchor"),
        pytest.param(SECOND, IN_B, id="an anchor of a bare hunk"),
        pytest.param(
            ENVELOPE.format("@@ class B:\n@@     def run(self):\n-        x = 1\n+        x = 2\n"),
            IN_B,
            id="two anchors",
        ),
        pytest.param(
            ENVELOPE.format("@@\n-        x = 1\n-        return x\n+        return 2\n*** End of File\n"),
            OLD[: OLD.rindex("        x = 1")] + "        return 2\n",
            id="the end of the file",
        ),
        pytest.param(ENVELOPE.format("@@\n+# end\n*** End of File\n"), OLD + "# end\n", id="added at the end"),
        pytest.param(
            ENVELOPE.format("@@\n-import os\n+import sys\n@@ class B:\n-        x = 1\n+        x = 2\n"),
            IN_B.replace("import os", "import sys"),
            id="two hunks",
        ),
        pytest.param(
            "<<<<<<< SEARCH\nclass B:\n    def run(self):\n        x = 1\n=======\nclass B:\n    def run(self):\n"
            "        x = 2\n>>>>>>> REPLACE\n",
            IN_B,
            id="several lines of a block",
        ),
    ],
)
def test_lines_that_stand_twice_are_told_apart_by_what_stands_before_them(patch, new):
    assert apply_diff(OLD, patch).text == new


@pytest.mark.parametrize(
    ("patch", "told"),
    [
        ("@@\n-        x = 1\n+        x = 2\n", (1, 5, "        x = 1", "        x = 1")),
        ("@@ def run(self):\n-        x = 1\n+        x = 2\n", (1, 5, "        x = 1", "        x = 1")),
        (
            "@@\n class A:\n     def run(self):\n-        x = 2\n+        x = 3\n",
            (1, 5, "        x = 2", "        x = 1"),
        ),
        ("@@\n+# nowhere\n", (1, 1, None, "import os")),
        ("--- /dev/null\n+++ b/f.py\n@@ -0,0 +1,2 @@\n+a\n+b\n", (1, 1, None, "import os")),
        ("@@\n-class B:\n+class C:\n@@\n-class A:\n+class D:\n", (2, 9, "class A:", "    def run(self):")),
    ],
)
def test_what_fits_nowhere_or_twice_is_refused_with_the_lines(patch, told):
    with pytest.raises(HunkMismatchError) as refused:
        apply_diff(OLD, patch)

    error = refused.value
    assert (error.hunk, error.line, error.expected, error.found) == told


def test_a_new_file_diff_fills_an_empty_file():
    assert apply_diff("", "--- /dev/null\n+++ b/f.py\n@@ -0,0 +1,2 @@\n+a\n+b\n").text == "a\nb\n"


UNREADABLE = {
    "prose before the diff": ("Here is the patch:\n" + HEAD + HUNK, 1),
    "prose after the diff": (HUNK + "This imports sys.\n", 6),
    "a document that shows a diff": ("# How to\n\n```diff\n" + HUNK + "```\n", 1),
    "two files": (HEAD + HUNK + HEAD.replace("f.py", "g.py") + HUNK, 9),
    "a deletion": ("--- a/f.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-import os\n", 2),
    "a rename": ("diff --git a/f.py b/g.py\nsimilarity index 90%\nrename from f.py\nrename to g.py\n", 3),
    "a binary": ("diff --git a/f b/f\nindex 1..2\nBinary files a/f and b/f differ\n", 3),
    "a context diff": (
        "*** a/f.py\n--- b/f.py\n***************\n*** 1,1 ****\n! import os\n--- 1,1 ----\n! import sys\n",
        1,
    ),
    "a diff without options": ("1c1\n< import os\n---\n> import sys\n", 1),
    "an added file": ("*** Begin Patch\n*** Add File: g.py\n+a\n*** End Patch\n", 2),
    "a deleted file": ("*** Begin Patch\n*** Delete File: f.py\n*** End Patch\n", 2),
    "a moved file": (
        "*** Begin Patch\n*** Update File: f.py\n*** Move to: g.py\n@@\n-import os\n+a\n*** End Patch\n",
        3,
    ),
    "two files in an envelope": (
        ENVELOPE.format("@@\n-import os\n+a\n*** Update File: g.py\n@@\n-a\n+b\n"),
        6,
    ),
    "an envelope without lines": ("*** Begin Patch\n*** Update File: f.py\n*** End Patch\n", 1),
    "lines without marks": ("@@\nimport os\n-import os\n+import sys\n", 2),
    "a fence of a diff that has none": ("```diff\nimport sys\n```\n", 2),
    "a block that does not end": ("<<<<<<< SEARCH\nimport os\n=======\nimport sys\n", 5),
    "prose between blocks": (BLOCK + "and then\n" + BLOCK, 6),
}


@pytest.mark.parametrize(("patch", "line"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_looks_like_a_diff_and_cannot_be_read_is_refused_and_not_taken_for_a_text(patch, line):
    assert is_diff(patch)
    with pytest.raises(HunkHeaderError) as refused:
        apply_diff(OLD, patch)

    assert refused.value.line == line


@pytest.mark.parametrize(
    "patch",
    [
        "Here is the patch:\n```diff\n-a\n+b\n```",
        "**f.py**\n~~~patch\n-a\n+b\n~~~\n",
        "Change this:\n@@ def f():\n-a\n+b\n",
        "Change this:\n@@ ... @@\n-a\n+b\n",
        "> --- a/f.py\n> +++ b/f.py\n> @@ -1 +1 @@\n> -a\n> +b\n",
        '{"patch": "@@ -1 +1 @@\\n-a\\n+b"}',
        "-a\n+b\n",
        " import os\n-a\n+b\n\n import sys",
        "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> theirs\n",
        "<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs\n",
        "<<<<<<< ORIGINAL\na\n=======\nb\n>>>>>>> UPDATED\n",
        "<<<<<<< search\na\n=======\nb\n>>>>>>> replace\n",
        "------- SEARCH\na\n=======\nb\n+++++++ REPLACE\n",
        "<<<<<<<\na\n=======\nb\n>>>>>>>\n",
        "  <<<<<<< HEAD\n  a\n  =======\n  b\n  >>>>>>> theirs\n",
        "```\n-1\n+one\n 2\n```",
        "```text\n-1\n+one\n 2\n```\n",
        "```diff a.txt\n-1\n+one\n```",
        "Change the first line:\n-1\n+one\n",
        "Change the first line:\n\n```\n-1\n+one\n```\n",
        "  -1\n  +one\n",
        "diff a.txt a.txt\n-1\n+one",
        "diff -u a.txt a.txt\n-1\n+one",
        "rename from a\nrename to b",
        "  rename from a\n  rename to b",
        "old mode 100644\nnew mode 100755",
        "deleted file mode 100644\nindex 1f2e3d4..0000000\n",
        "\u200b--- a/f.py\n\u200b+++ b/f.py\n",
        "\u2212\u2212\u2212 a/f.py\n+++ b/f.py\n",
    ],
)
def test_an_odd_form_never_becomes_the_new_text(patch):
    assert is_diff(patch)
    with pytest.raises((HunkHeaderError, HunkMismatchError)):
        apply_diff(OLD, patch)


@pytest.mark.deep
def test_many_blank_and_half_marked_lines_are_read_in_time():
    assert not is_diff(" \n" * 200_000 + "a")
    assert not is_diff("<<<<<<< a\n" * 100_000)


@pytest.mark.deep
@pytest.mark.parametrize(
    "text",
    [
        *(mark * 1_000_000 for mark in " \t\n`~*<-+@="),
        *(f"{mark}{mark * 1_000_000}`" for mark in "~ "),
        "~" * 500_000 + " " * 500_000 + "`",
        "diff " + "-a " * 300_000,
        "diff -" + "a" * 1_000_000,
        "  x:\n" * 200_000,
        " " * 1_000 + "\n" * 200_000 + "x",
        ("\n" + " " * 500) * 2_000 + "x",
        "*** \t" * 200_000,
        "rename from a\n" * 70_000,
        "@@ " * 300_000,
        "@@ a\n\n" * 150_000,
        "index " + "a" * 1_000_000,
    ],
    ids=lambda text: repr(text[:6]) + str(len(text)),
)
@pytest.mark.timeout(60)
def test_a_large_text_is_looked_through_in_time(text):
    begin = time.process_time()
    is_diff(text)
    assert time.process_time() - begin < 20  # quadratic time would be hours


@pytest.mark.deep
def test_a_long_signature_of_a_mail_is_read_in_time():
    begin = time.process_time()
    with pytest.raises(HunkHeaderError):
        apply_diff(OLD, HUNK + "-- \n2" + " " * 100_000 + "\nx")
    assert time.process_time() - begin < 20  # quadratic time would be hours


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello\n-----Original Message-----\nFrom: a\n",
        " - one\n - two\n + three\n",
        "import sys\n",
        "# Title\n\n---\n\nText below a rule.\n",
        "\n---\ntitle: below a blank line\n---\n",
        "a = 1\n@@count = 2\n",
        "SELECT @@version;\n",
        "- one\n+ two\n",
        "```python\nprint(1)\n```\n",
        "*** note ***\n",
        "=======\n",
        "diff is a tool.\n",
        "Index: all names of the book\n",
        "if a << 3:\n",
        "  - one\n  + two\n",
        "List:\n- one\n+ two\n",
        "```\n- one\n+ two\n```\n",
        "```yaml\n---\ntitle: a\n---\n```\n",
        "```differ\na\n```\n",
        "diff is fine\n- one\n",
        "rename from here\n",
        "index 0..3 is the head\n",
        "index a..f\n",
        "**begin** patch\n",
        ">>>>> a quote of quotes\n=====\n",
    ],
)
def test_other_texts_are_the_whole_new_text(text):
    assert not is_diff(text)


@given(st.lists(st.sampled_from([line for form in FORMS.values() for line in form.split("\n")]), max_size=12))
def test_any_mixture_of_lines_is_applied_or_refused_in_one_of_the_two_ways(lines):
    with contextlib.suppress(HunkHeaderError, HunkMismatchError):
        apply_diff(OLD, "\n".join(lines))
