"""What a program runs, as against its comments, its docstrings and the text that it prints."""

import time

import pytest

from proofbox.service.jobs.code_text import looks_for_files, runnable_text

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
        f"print(f'see {NAME} {{len(a)}}')",
        f'print(f"""{{len(a)}}\n see {NAME} {{len(a)}}""")',
        f"sys.stdout.write('{NAME}')",
        f"sys.stderr.write('{NAME}')",
        f"if x:\n        a = 1\n    b = 2\n# {NAME}",
        f"print('see {NAME}')\nif x:\n        a = 1\n    b = 2\n",
        f"open('a.md', 'w').write('as in {NAME}, but')",
        f"a = 1; text = '''# Report\n\nSee ./{NAME} for\nall''' + b",
        f"text = f'see {NAME} of {{n}}'",
        f"x = '# {NAME}'",
        f"raise ValueError('{NAME}')",
        f"sys.exit('{NAME}')",
        f"x = 1\n  # {NAME}\n" + "y = 1\n" * 100_000,
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
        f"x = '''{NAME}\n'''",
        f"print('x')\nopen('{NAME}')",
        f"print(('x'), open(f('{NAME}')))",
        f"def f():\n    '''Doc.'''\n    return open('{NAME}')",
        f"files.write('{NAME}')",
        f"print(f'{{open(\"{NAME}\").read()}} rows')",
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
        ("node", f"// {NAME}\n/* {NAME} */ console.log('ran')", False),
        ("node", f"/* a * b */ f('{NAME}')", True),
        ("node", f"read('{NAME}')", True),
        ("node", f"read('// {NAME}')", False),
        ("node", f"read(`// {NAME}`)", True),
        ("bash", f'echo "saved {NAME}"', False),
        ("bash", f"if x; then echo 'saved {NAME}'; fi", False),
        ("bash", f"test -f a || echo no {NAME} >&2", False),
        ("bash", f"printf '%s\\n' \"saved {NAME} $n\"  # as said", False),
        ("bash", f"echo {NAME} | xargs cat", True),
        ("bash", f"echo a > {NAME}", True),
        ("bash", f'echo "$(cat {NAME})"', True),
        ("bash", f"echo $(cat {NAME})", True),
        ("bash", f"x=$(echo {NAME})", True),
        ("bash", f"cat <<EOF\nit's fine\nEOF\n# see {NAME}\necho 'done'", False),
        ("bash", f"cat <<EOF\nit's fine\nEOF\nls  # see {NAME}\necho 'done'", False),
        ("bash", f"cat <<EOF\nsee {NAME}\nEOF", False),
        ("bash", f"cat <<EOF > a.py\nopen('{NAME}')\nEOF", True),
        ("bash", f"cat <<EOF\n$(cat {NAME})\nEOF", True),
        ("bash", f"python3 - <<'EOF'\n# it's {NAME}\nEOF\necho 'a'", False),
        ("bash", f"python3 - <<'EOF'\nopen('{NAME}')\nEOF", True),
        ("bash", f"x=$((1 << y))\nls  # {NAME}", False),
        ("bash", f"s=$'it\\'s'; # {NAME}\necho 'b'", False),
        ("bash", f"ls\n  # {NAME}\n" + "ls a\n" * 100_000, False),
        ("node", f"console.log('saved {NAME}')", False),
        ("node", f"console.error(`saved {NAME}: ${{n.length}}`, n)", False),
        ("node", f"console.log(read('{NAME}'))", True),
        ("node", f"console.log(`${{read('{NAME}')}}`)", True),
        ("node", f"/[`]/g // {NAME}\n`a`", False),
        ("node", f"x = s.replace(/[`'\"]/g, '') // {NAME}\ny = `a`", False),
        ("node", f"x = a / b; read('{NAME}') / 2", True),
        ("node", f"ls()\n  // {NAME}\n" + "ls(1)\n" * 100_000, False),
        ("node", f"write('a.md', 'as in {NAME}')", False),
        ("node", f"read(`{NAME}`)", True),
        ("bash", f"cat > a.md <<EOF\nas in {NAME}\nEOF", False),
        ("cobol", f"# {NAME}", True),
    ],
)
def test_each_language_has_comments_of_its_own(language, code, stays):
    assert (NAME in runnable_text(code, language)) is stays


@pytest.mark.parametrize(
    ("language", "code", "looks"),
    [
        ("python", f"if os.path.exists('{NAME}'): open('{NAME}')", True),
        ("python", f"p = Path('{NAME}')\nif p.is_file(): p.read_text()", True),
        ("python", f"try:\n    open('{NAME}')\nexcept (ValueError, FileNotFoundError):\n    pass", True),
        ("python", f"try:\n    open('{NAME}')\nexcept ValueError:\n    pass", False),
        ("python", f"# exists\nopen('{NAME}')", False),
        ("bash", f"[ -f {NAME} ] && cat {NAME}", True),
        ("bash", f"[ ! -e {NAME} ] || cat {NAME}", True),
        ("bash", f"cat {NAME}", False),
        ("node", f"if (fs.existsSync('{NAME}')) read('{NAME}')", True),
        ("node", f"read('{NAME}')", False),
        ("cobol", "exists", False),
    ],
)
def test_a_program_that_looks_for_its_files_is_known(language, code, looks):
    assert looks_for_files(runnable_text(code, language), language) is looks


def test_what_is_run_keeps_its_place():
    code = f"x = 1  # {NAME}\ny = '''a\nb'''\n"
    assert runnable_text(code, "python").replace(" ", "") == "x=1\ny='''a\nb'''\n"
    assert len(runnable_text(code, "python")) == len(code)


@pytest.mark.deep
@pytest.mark.parametrize(
    "part",
    [
        "(", "'", "print(", "/*", "/* ", "\\", "'a'\n", "f'{", "print(f'{(", "echo ", ';echo "', ";echo '", "\n",
        "echo $'\\", "<<a\n", "<<a <<b\nb\na\n", "=/[", "[=/]", "/", "console.log(", "console.log(`",
        "console.log('", "print('a');",
        "`${", " #", "#", "; ", "$'", "$'\\'", '"\\', "then ", "//", "=/[]", ';echo "$(', "'\n#",
    ],
)  # fmt: skip
@pytest.mark.parametrize("language", ["python", "bash", "node"])
def test_a_program_of_many_brackets_and_quotes_is_read_in_bounded_time(part, language):
    code = part * (100_000 // len(part))
    began = time.process_time()
    assert len(runnable_text(code, language)) <= len(code)
    assert time.process_time() - began < 20  # quadratic time would be hours
