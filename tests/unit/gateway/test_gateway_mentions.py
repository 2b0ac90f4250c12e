"""Whom a text mentions: members, by their longest handle, outside code."""

import pytest

from proofbox.service.gateway.spaces.mentions import find_mentions

HANDLES = ["Ann", "ann-marie", "bob", "b", "x" * 64]


@pytest.mark.parametrize(
    ("text", "known", "unknown"),
    [
        ("@ann @BOB @Ann", ["ann", "bob"], []),
        ("@ann-marie, @ann-'s and @ann_2", ["ann-marie", "ann"], []),
        ("@anna @bo @b1", [], ["anna", "bo", "b1"]),
        ("@annä", [], ["annä"]),
        ("ann@bob 1@bob é@bob", [], []),
        ("(@bob) @@ann _@b", ["bob", "ann", "b"], []),
        ("@ @1 @-x @é", [], []),
        (f"@{'x' * 64} @{'x' * 65} @{'x' * 64}-", ["x" * 64], ["x" * 65]),
        ("mail @zoe, @zoe and @Zoe", [], ["zoe", "Zoe"]),
    ],
)
def test_the_longest_handle_of_a_member_counts_and_case_is_ignored(text, known, unknown):
    found = find_mentions(text, HANDLES)
    assert (list(found.known), list(found.unknown)) == (known, unknown)


@pytest.mark.parametrize(
    "code",
    [
        "`@bob`",
        "``a ` @bob``",
        "```\n@bob\n```",
        "```python\n@bob\n\n@bob\n```",
        "~~~\n@bob\n```\n@bob\n~~~",
        "````\n```\n@bob\n```\n````",
        "```\r\n@bob\r\n```\r\n",
        "> ```\n> @bob\n> ```",
        "```@bob``` and then",
        "```\n@bob",
        "- ```\n  @bob\n  ```",
        "1. run\n   ```sh\n   @bob\n   ```",
        "- a\n\n      ```\n      @bob\n      ```\n",
        "* a\n\t~~~\n\t@bob\n\n\t@bob\n\t~~~",
        "> - ```\n>   @bob\n>   ```",
        ">```\n>@bob",
    ],
)
def test_code_mentions_nobody(code):
    found = find_mentions(code, HANDLES)
    assert (found.known, found.unknown) == ((), ())


@pytest.mark.parametrize(
    "text",
    [
        "```a``` @bob",
        "```\ncode\n```\n@bob",
        "```\r\ncode\r\n```\r\n@bob",
        "5` and\n\n@bob has 6`",
        "a ` b @bob",
        "``a` @bob",
        "    ```\n@bob",
        "- ```\n  x\n  ```\n\n@bob please",
        "1. run\n   ```sh\n   x\n   ```\n@bob please",
        "* ```py\n  x\n  ```\n- @bob",
        "> ```\n> x\n> ```\n@bob ok",
        "> ```\n> x\n@bob",
        "- ```\n  x\n@bob",
        "```\n> ```\n@ann\n```\n@bob",
        "-```\n@bob",
        "- a\n\nb\n\n    ```\n@bob",
    ],
)
def test_what_is_no_code_mentions(text):
    assert find_mentions(text, HANDLES).known == ("bob",)


def test_a_very_long_word_is_nobody():
    assert find_mentions("@" + "a" * 19_990, HANDLES).unknown == ("a" * 19_990,)
