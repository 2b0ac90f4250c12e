"""What a call may name as a package, and in which spelling it is understood."""

import pytest
from pydantic import TypeAdapter, ValidationError

from proofbox.contracts.packages.requirements import RequirementText

ONE = TypeAdapter(RequirementText)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("scikit-image==0.25.*", "scikit-image==0.25.*"),
        ("Scikit_Image", "scikit-image"),
        (" pandas[Excel, aws] >= 2 , < 3 ".replace(" , ", ", "), "pandas[aws,excel]<3,>=2"),
        ("a~=1.4.2", "a~=1.4.2"),
        ("a!=1.0,==1.*", "a!=1.0,==1.*"),
        ("torch==2.1.0+cpu", "torch==2.1.0+cpu"),
        ("a==1!2.0rc1", "a==1!2.0rc1"),
    ],
)
def test_a_name_with_extras_and_versions_has_one_spelling(text, read):
    assert ONE.validate_python(text) == read
    assert ONE.validate_python(read) == read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-r requirements.txt",
        "--index-url=http://evil.test",
        "a --hash=sha256:00",
        "a @ https://evil.test/a.whl",
        "https://evil.test/a.whl",
        "git+https://evil.test/a",
        "./a.whl",
        "../a",
        "/etc/passwd",
        "a; python_version < '3'",
        "a==1 # comment",
        "a\nb",
        "a==1\n--pre",
        "a==${HOME}",
        "a===1.0",
        "a==",
        "a>1 2",
        "a[b",
        "a[]",
        "a" * 101,
        "a==1" + ",!=2" * 11,
        "ä",
        "a\0",
    ],
)
def test_anything_else_is_refused_with_a_way_to_write_it(text):
    with pytest.raises(ValidationError, match=r"write a name, extras and versions|at most 200"):
        ONE.validate_python(text)
