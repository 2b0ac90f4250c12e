"""The code of a call: byte for byte as it came, or refused for what a chat left in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.artifacts import ContractError
from proofbox.service.execution.code_check import encode_code


@pytest.mark.parametrize("code", [None, "", " ", "\n\t\n"])
def test_a_call_without_code_is_refused(code):
    with pytest.raises(ContractError) as refused:
        encode_code(code)
    assert (refused.value.code, refused.value.details) == ("missing_code", {})


@pytest.mark.parametrize(
    ("code", "marker", "line"),
    [
        ("```python\nprint(1)\n```", "```python", 1),
        ("```\nprint(1)\n```", "```", 1),
        ("``` python\nprint(1)", "``` python", 1),
        ("```{python}\nprint(1)", "```{python}", 1),
        ('```python title="a"\nprint(1)', '```python title="a"', 1),
        ("````py\nprint(1)\n````", "````py", 1),
        ("~~~\nprint(1)\n~~~", "~~~", 1),
        ("\n\n  ```python\nprint(1)", "```python", 3),
        ("print(1)\n```", "```", 2),
        ("print(1)\n```\n\n", "```", 2),
        ("<channel:code>\nprint(1)", "<channel:code>", 1),
        ("<channel:code>print(1)", "<channel:code>", 1),
        ("print(1)\n</channel:code>", "</channel:code>", 2),
        ("print(1)</channel>", "</channel>", 1),
        ("<thinking>\nfirst\n</thinking>\nprint(1)", "<thinking>", 1),
        ("<think>ok</think>print(1)", "<think>", 1),
        ("print(1)\n</THINK>", "</THINK>", 2),
        ('<channel name="x">\nprint(1)', '<channel name="x">', 1),
        ("<|channel|>code", "<|channel|>", 1),
        ("print(1)<|end|>", "<|end|>", 1),
        ("<scratchpad>\nprint(1)", "<scratchpad>", 1),
        ("print(1)\r\n```\r\n", "```", 2),
        ('{"code": "print(1)"}', '{"code"', 1),
        ('\n{"language": "python", "script": "print(1)"}\n', '{"script"', 1),
        ("print('\ud800')", "lone surrogate", 1),
        ("a = 1\nb = '\udc80'", "lone surrogate", 2),
    ],
)
def test_what_a_chat_left_at_the_start_or_end_is_refused_with_its_line(code, marker, line):
    with pytest.raises(ContractError) as refused:
        encode_code(code)
    assert (refused.value.code, refused.value.details) == ("code_contaminated", {"marker": marker, "line": line})
    refused.value.message.encode()


@pytest.mark.parametrize(
    "code",
    [
        "print(1)",
        "\n  print(1)  \n\n",
        "print(1)\r\n",
        "\ufeffprint(1)",
        '{"name": "x", "size": 3}',
        '{"code": 1}',
        "{" * 50_000,
        "text = '''\n```python\nx\n```\n'''\nprint(text)",
        "print('```')",
        "x = 1  # as in ```code```",
        "'''\n<thinking>\n'''",
        "x = '<channel>'",
        "print('<think>a</think>')",
        "if a < think and channel > b: pass",
        "x = 5 <thinking_time> 3",
        "<channels>",
        "print('é日本\N{GRINNING FACE}')",
        "x = ~~~5",
        "cat <<EOF > files/a.md\n```\ncode\n```\nEOF",
        "#!/bin/bash\necho hi",
    ],
)
def test_a_program_that_only_contains_such_marks_runs_byte_for_byte(code):
    assert encode_code(code) == code.encode()


@given(st.text())
def test_any_text_is_its_own_bytes_or_is_refused(code):
    try:
        source = encode_code(code)
    except ContractError as exc:
        refusal = exc
    else:
        refusal = None
    if refusal is None:
        assert source == code.encode()
    else:
        assert refusal.code in {"missing_code", "code_contaminated"}
        assert refusal.message.encode()


@given(st.text(st.characters(categories=["L", "N", "Zs"]), max_size=20), st.text(st.characters(categories=["L"])))
def test_what_stands_between_plain_lines_is_never_looked_at(inside, tail):
    code = f"a = '''\n```{inside}\n<thinking>{tail}\n```\n'''"
    assert encode_code(code) == code.encode()


@pytest.mark.parametrize(
    "code", ["<think " * 150_000, "<" * 1_000_000, "<|" + "a" * 1_000_000, "`" * 1_000_001 + "x y"]
)
def test_a_megabyte_of_half_marks_is_read(code):
    try:
        source = encode_code(code)
    except ContractError as exc:
        source = exc.details["marker"].encode()
    assert source == code.encode() or len(source) <= 40
