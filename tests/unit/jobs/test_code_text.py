"""What a program runs, as against its comments, its docstrings and the text that it prints."""

import pytest

from service.jobs.code_text import runnable_text

NAME = "turn_1/files/a.csv"


@pytest.mark.parametrize(
    "code",
    [
        f"# {NAME}",
        f"x = 1  # {NAME}",
        f'"""{NAME}"""',
        f"def f():\n    '''First.\n\n    {NAME}\n    '''\n    return 1",
        f"class A:\n    '{NAME}'",
        f"print('see {NAME}')",
        f"print('a', f'{{x}} {NAME}', end='')",
        f"logging.info('see {NAME}')",
        f"x = 1\x0c\n# {NAME}\ny = 2",
        f"x = 'two\u2028lines'\n# {NAME}",
        f"f(\n    1,  # {NAME}\n)",
    ],
)
def test_a_path_in_a_comment_a_docstring_or_printed_text_is_not_run(code):
    assert NAME not in runnable_text(code, "python")


@pytest.mark.parametrize(
    "code",
    [
        f"open('{NAME}')",
        f"print(open('{NAME}').read())",
        f"print(f\"{{open('{NAME}').read()}}\")",
        f"x = '''\n# {NAME}\n'''",
        f"x = '# {NAME}'",
        f"print('x')\nopen('{NAME}')",
        f"print(('x'), open(f('{NAME}')))",
        f"def f():\n    '''Doc.'''\n    return open('{NAME}')",
        f"# a program that does not parse\nopen('{NAME}'\n'''",
    ],
)
def test_a_path_that_the_program_uses_stays(code):
    assert NAME in runnable_text(code, "python")


@pytest.mark.parametrize(
    ("language", "code", "stays"),
    [
        ("bash", f"# {NAME}", False),
        ("bash", f"ls  # {NAME}", False),
        ("bash", f"ls;# {NAME}", False),
        ("bash", f"cat {NAME}", True),
        ("bash", f"cat a#{NAME}", True),
        ("bash", f'cat "# {NAME}"', True),
        ("bash", f"cat '# {NAME}'", True),
        ("bash", f"cat \\# {NAME}", True),
        ("node", f"// {NAME}", False),
        ("node", f"f() /* {NAME}\n{NAME} */", False),
        ("node", f"read('{NAME}')", True),
        ("node", f"read('// {NAME}')", True),
        ("node", f"read(`// {NAME}`)", True),
        ("cobol", f"# {NAME}", True),
    ],
)
def test_each_language_has_comments_of_its_own(language, code, stays):
    assert (NAME in runnable_text(code, language)) is stays


def test_what_is_run_keeps_its_place():
    code = f"x = 1  # {NAME}\ny = '''a\nb'''\n"
    assert runnable_text(code, "python").replace(" ", "") == "x=1\ny='''a\nb'''\n"
    assert len(runnable_text(code, "python")) == len(code)


def test_a_program_of_many_brackets_and_quotes_is_read_in_bounded_time():
    for code in ("(" * 200_000, "'" * 200_001, "print(" * 40_000, "/*" * 100_000, "\\" * 200_000):
        for language in ("python", "bash", "node"):
            assert len(runnable_text(code, language)) <= len(code)
