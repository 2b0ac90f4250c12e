"""Values of form fields: lengths with units, Gotenberg's booleans, and a sentence for each wrong field."""

import pytest

from proofbox.service.facades.gotenberg.errors import InvalidFormError
from proofbox.service.facades.gotenberg.fields import FieldReader
from proofbox.service.facades.gotenberg.form import Form


def reader_of(**fields: str) -> FieldReader:
    return FieldReader(Form(fields=fields))


@pytest.mark.parametrize(
    ("given", "mm"),
    [
        ("1", 25.4), ("8.27", 210.058), (".5", 12.7), ("72pt", 25.4), ("96px", 25.4), ("1in", 25.4),
        ("25.4mm", 25.4), ("2.54cm", 25.4), ("6pc", 25.4), ("", 50.8), ("0", 0),
    ],
)  # fmt: skip
def test_a_length_has_a_unit_or_is_in_inches(given: str, mm: float) -> None:
    assert reader_of(x=given).length_mm("x", 2, 0, 500) == pytest.approx(mm)


@pytest.mark.parametrize("given", ["1em", "-1", "1e3", "nan", "inf", "10 20", "600mm", "1mm1"])
def test_a_wrong_length_is_refused_with_its_name(given: str) -> None:
    reader = reader_of(marginTop=given)
    reader.length_mm("marginTop", 1, 0, 500)
    with pytest.raises(InvalidFormError, match="form field 'marginTop' is invalid"):
        reader.finish()


@pytest.mark.parametrize(
    ("given", "value"), [("true", True), ("1", True), ("T", True), ("False", False), ("0", False), ("", False)]
)
def test_booleans_have_the_spellings_of_gotenberg(given: str, value: bool) -> None:
    assert reader_of(x=given).boolean("x") is value


def test_all_wrong_fields_are_listed_at_once() -> None:
    reader = reader_of(landscape="yes", scale="3", splitSpan="x", format="gif", metadata="[1]")
    reader.boolean("landscape")
    reader.number("scale", 1, 0.1, 2)
    reader.integer("splitSpan", 1, 1, 9)
    reader.choice("format", "png", ("png", "jpeg"))
    reader.json("metadata", (dict,), "an object")
    reader.require_field("rotateAngle")
    reader.require_file("index.html")
    reader.require_files(".pdf")
    with pytest.raises(InvalidFormError) as caught:
        reader.finish()
    assert caught.value.message.splitlines() == [
        (
            "Invalid form data: form field 'landscape' is invalid (got 'yes', resulting to expected either 'true' "
            "or 'false')"
        ),
        "form field 'scale' is invalid (got '3', resulting to expected a number from 0.1 to 2)",
        "form field 'splitSpan' is invalid (got 'x', resulting to expected a whole number from 1 to 9)",
        "form field 'format' is invalid (got 'gif', resulting to expected 'png' or 'jpeg')",
        "form field 'metadata' is invalid (got '[1]', resulting to expected JSON: an object)",
        "form field 'rotateAngle' is required",
        "form file 'index.html' is required",
        "no form file found for extensions: [.pdf]",
    ]


def test_an_unknown_field_is_ignored_with_a_warning() -> None:
    reader = reader_of(landscape="true", newField="1")
    assert reader.boolean("landscape")
    reader.finish()
    assert reader.warnings == ["newField: not a field of this route; it was ignored"]
