"""Hints on habits of models that end as an error: what the program has, and what to write in its place.

Only runs that failed are searched for habits: a program that works is never called wrong. No network is no habit.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from proofbox.contracts.tools import Language, exec_tool_id

_HEAD_CHARS = 20_000
_TAIL_CHARS = 16_000
_MULTI = re.MULTILINE


@dataclass(frozen=True, slots=True)
class _Habit:
    """A habit of programs of one language.

    Attributes:
        language: of the tool that was called.
        error: found in the end of what the program wrote.
        code: found in the program.
        hint: the sentence.
    """

    language: Language
    error: re.Pattern[str]
    code: re.Pattern[str]
    hint: str


def _other_tool(what: str, language: Language) -> str:
    return f"the code looks like {what}; send it to {exec_tool_id(language)}"


_SYNTAX = re.compile(r"^(?:SyntaxError|IndentationError|TabError): ", _MULTI)
_SYNTAX_OF_NODE = re.compile(r"^SyntaxError: |^ReferenceError: ", _MULTI)
_OF_BASH = re.compile(r"syntax error|command not found|import(?:-im6)?: |not a valid identifier", _MULTI)
_PYTHON_CODE = re.compile(
    r"^(?:import [\w.]+|from [\w.]+ import .+|def \w+\(.*|class \w+.*:|print\(.*"
    r"|(?:for|if|while|with) \S[^;\n]*[\w)\]}'\"]:)$",
    _MULTI,
)
_SHELL_CODE = re.compile(
    r"\A\s*(?:#!.*\b(?:ba|z|da)?sh\b|(?:cd|ls|cat|echo|mkdir|pip3?|python3?|grep|find|export|npm|npx|node|curl|wget"
    r"|rm|cp|mv|git|head|tail|wc|unzip|tar|set -\w+|apt-get|apt|sudo|which|pwd)(?:\s|$))"
)
_NODE_CODE = re.compile(
    r"^[ \t]*(?:const|let|var)\s+[\w{\[]|\bconsole\.(?:log|error)\(|\bfunction\s*\w*\s*\(|=>\s*[{(\w]"
    r"|\brequire\(['\"]"
    r"|^[ \t]*import .{1,200} from ['\"]",
    _MULTI,
)
_ANY = re.compile("")
_NO_BLANK = re.compile(r"[\u00a0\u2000-\u200b\u202f\u3000]")
_NO_BLANKS = (
    "the code has characters that look like blanks and are none, such as the no-break space U+00A0; write blanks"
)
# Where it is no part of a text that the program writes.
_FENCE = re.compile(r"\A(?:(?!'''|\"\"\"|<<|`)[\s\S])*?^[ \t]*(?:```|~~~)", _MULTI)
_FENCED = "the code has a code fence, and text around it; send the program alone"
_HABITS = (
    _Habit(Language.PYTHON, _SYNTAX, _FENCE, _FENCED),
    _Habit(Language.BASH, _ANY, _FENCE, _FENCED),
    _Habit(Language.NODE, _SYNTAX_OF_NODE, _FENCE, _FENCED),
    _Habit(
        Language.PYTHON, re.compile(r"^SyntaxError: invalid non-printable character", _MULTI), _NO_BLANK, _NO_BLANKS
    ),
    _Habit(Language.BASH, _OF_BASH, _NO_BLANK, _NO_BLANKS),
    _Habit(
        Language.BASH,
        _ANY,
        re.compile(r"\A(?=[\s\S]*?\r\n)[\s\S]*?(?<!\r)\n"),
        "some lines of the code end with CRLF, which Bash takes as a part of words; end all with LF",
    ),
    _Habit(
        Language.PYTHON,
        re.compile(r"^SyntaxError: unexpected character after line continuation character", _MULTI),
        re.compile(r"\\n"),
        r"the code has the two characters \ and n in place of line ends; send real line ends",
    ),
    _Habit(
        Language.PYTHON,
        _SYNTAX,
        re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27);"),
        "the code has HTML entities such as &lt; in place of characters; send the characters themselves",
    ),
    _Habit(
        Language.PYTHON,
        _SYNTAX,
        re.compile(r"[\u201c\u201d\u2018\u2019]"),
        "the code has typographic quotes; write \" and '",
    ),
    _Habit(
        Language.PYTHON,
        re.compile(rf"{_SYNTAX.pattern}|^NameError: name '(?:In|Out)' is not", _MULTI),
        re.compile(r"^[ \t]*(?:>>> |In ?\[\d*\]: ?)", _MULTI),
        "lines of the code begin with a prompt such as >>>; send the code without prompts and results",
    ),
    _Habit(
        Language.PYTHON,
        _SYNTAX,
        re.compile(r"^[ \t]*(?:! ?\w|%{1,2}[A-Za-z])", _MULTI),
        "lines that begin with ! or % are commands of notebooks; write them in Python, or send shell commands to "
        f"{exec_tool_id(Language.BASH)}",
    ),
    _Habit(
        Language.PYTHON,
        re.compile(r"^NameError: name 'get_ipython' is not", _MULTI),
        re.compile(r"get_ipython\("),
        f"there is no notebook; leave get_ipython() out, and send shell commands to {exec_tool_id(Language.BASH)}",
    ),
    _Habit(
        Language.PYTHON,
        _SYNTAX,
        re.compile(r"^[ \t]*(?:[A-Za-z_][\w.]*\?{1,2}|\?{1,2}[A-Za-z_][\w.]*)[ \t]*$", _MULTI),
        "a ? at a name is a command of notebooks; write help(name)",
    ),
    _Habit(
        Language.PYTHON,
        re.compile(r"^(?:ModuleNotFound|Import)Error: ", _MULTI),
        re.compile(r"\b(?:use|switch_backend)\(\s*['\"](?i:tk|qt|gtk|wx|macosx|webagg|nbagg|notebook|ipympl)"),
        "there is no screen; leave the choice of a backend out: plt.show() and plt.savefig() work without",
    ),
    _Habit(
        Language.PYTHON,
        re.compile(r"^EOFError$", _MULTI),
        re.compile(r"\bgetpass\b"),
        "nobody types: give what getpass() reads as stdin of the call",
    ),
    _Habit(Language.PYTHON, _SYNTAX, _SHELL_CODE, _other_tool("a shell script", Language.BASH)),
    _Habit(Language.PYTHON, _SYNTAX, _NODE_CODE, _other_tool("JavaScript", Language.NODE)),
    _Habit(Language.BASH, _OF_BASH, _PYTHON_CODE, _other_tool("Python", Language.PYTHON)),
    _Habit(Language.BASH, _OF_BASH, _NODE_CODE, _other_tool("JavaScript", Language.NODE)),
    _Habit(Language.NODE, _SYNTAX_OF_NODE, _PYTHON_CODE, _other_tool("Python", Language.PYTHON)),
    _Habit(Language.NODE, _SYNTAX_OF_NODE, _SHELL_CODE, _other_tool("a shell script", Language.BASH)),
)
_NAME_OF_LANGUAGE = re.compile(
    r"^NameError: name '(?P<name>python3?|py|javascript|js|bash|sh|sql|code)' is not", _MULTI
)

_NO_ARGUMENTS = "the program got no arguments: give them as args of the call"
# Errors of any language, in the end of the output.
_ERRORS = (
    (
        re.compile(r"^EOFError: EOF when reading a line", _MULTI),
        "nobody types: give what input() reads as stdin of the call",
    ),
    (
        re.compile(r"error: the following arguments are required: "),
        _NO_ARGUMENTS,
    ),
    (
        re.compile(r"The function is not implemented\. Rebuild the library with"),
        "there is no screen: cv2 cannot show a picture, write it with cv2.imwrite('files/<name>.png', picture)",
    ),
    (
        re.compile(r"Invalid cross-device link|EXDEV: cross-device link"),
        "files/ and the scratch space are two file systems: write shutil.move, or mv",
    ),
    (
        re.compile(r"^locale\.Error: unsupported locale setting", _MULTI),
        "the locales of other countries are not there: babel formats numbers, dates and money for them",
    ),
    (
        re.compile(r"'(?P<name>seaborn[\w-]*)' is not a valid package style"),
        "the styles of seaborn are named seaborn-v0_8-…; seaborn.set_theme() sets one too",
    ),
    (
        re.compile(r"No space left on device: '?/tmp/|cannot write .*'/tmp/.*No space left"),
        "the scratch space is smaller than files/: write large files to files/",
    ),
    (
        re.compile(r"ensurepip is not available|apt install python3[\d.]*-venv"),
        "environments cannot be made, as nothing can be installed; import what is there",
    ),
)
_NO_HOST = r"(?:Temporary failure in name resolution|Name or service not known|Network is unreachable)"
_NO_NETWORK_CAUGHT = re.compile(
    rf"\[Errno -?\d+\] {_NO_HOST}"
    r"|NameResolutionError|getaddrinfo (?:EAI_AGAIN|ENOTFOUND)|ENETUNREACH|Could not resolve host"
)
_NO_NETWORK = re.compile(f"{_NO_HOST}|{_NO_NETWORK_CAUGHT.pattern}")
_OFFLINE = (
    "the sandbox has no network, so nothing can be downloaded and a repetition fails too; use files of the "
    "conversation, or the web tools"
)
_UNREACHABLE = (
    "nobody can reach a server in the sandbox, and it ends with the call: ask it from the same program, then end"
)
_SERVER = re.compile(r"serve_forever\(|\bapp\.run\(|uvicorn\.run\(|\.listen\(\d|http\.server\b|\.launch\(")


def offline_hint(text: str, language: Language) -> str:
    """The sentence on a missing network that a program noticed and went on; empty if it did not print that.

    Args:
        text: the end of what the program wrote.
        language: of the tool.
    """
    is_of_fetch = language is Language.NODE and "fetch failed" in text
    return _OFFLINE if is_of_fetch or _NO_NETWORK_CAUGHT.search(text[-_TAIL_CHARS:]) else ""


def habit_hints(code: str, language: Language, text: str, *, has_network: bool, timed_out: bool) -> Iterator[str]:
    """The sentences on a program that failed.

    Args:
        code: the program.
        language: of the tool.
        text: the end of what the program wrote.
        has_network: the call asked for a network.
        timed_out: the program was ended at its time limit.
    """
    head, tail = code[:_HEAD_CHARS], text[-_TAIL_CHARS:]
    first = next((line.strip() for line in head.split("\n") if line.strip()), "")
    if (found := _NAME_OF_LANGUAGE.search(tail)) and first == found["name"]:
        yield f"the first line of the code is the word {first}; leave it out"
    for habit in _HABITS:
        if habit.language == language and habit.error.search(tail) and habit.code.search(head):
            yield habit.hint
            break
    if "sys.argv[" in head and "IndexError: list index out of range" in tail:
        yield _NO_ARGUMENTS
    for error, hint in _ERRORS:
        if error.search(tail):
            yield hint
    if not has_network and _NO_NETWORK.search(tail):
        yield _OFFLINE
    if timed_out and _SERVER.search(head):
        yield _UNREACHABLE
