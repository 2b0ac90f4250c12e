"""Schemas of others: what is refused, and how values that do not fit are reported."""

import http.server
import threading

import pytest

from proofbox.service.gateway.schema_check import CheckedSchema, SchemaRefusedError, check_schema


def refused(schema):
    with pytest.raises(SchemaRefusedError) as caught:
        CheckedSchema(schema)
    return caught.value


def doubled(times, last):
    """Definitions of which each refers to the next one twice."""
    definitions = {
        f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}, {"$ref": f"#/$defs/d{number + 1}"}]}
        for number in range(times)
    }
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": definitions | {f"d{times}": last}}


def test_a_reference_to_a_server_or_a_file_is_refused_and_nothing_is_read():
    asked = []

    class Listener(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        for schema, path in (
            ({"$ref": f"{url}/a"}, ("$ref",)),
            ({"properties": {"a": {"$ref": f"{url}/b#/x"}}}, ("properties", "a", "$ref")),
            ({"$defs": {"a": {"$ref": "file:///etc/hostname"}}}, ("$defs", "a", "$ref")),
            ({"properties": {"a": {"$id": f"{url}/", "$ref": "#/x"}}}, ("properties", "a", "$id")),
            ({"allOf": [{"$dynamicRef": f"{url}/c"}]}, ("allOf", 0, "$dynamicRef")),
            ({"$ref": "other.json"}, ("$ref",)),
        ):
            assert refused(schema).path == path
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert asked == []


@pytest.mark.parametrize("pattern", [r"(a)\1", "(?=a)b", "(?<!a)b", "(", "(a{1000}){1000}{1000}"])
def test_a_pattern_beyond_linear_time_is_refused_at_its_place(pattern):
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    assert refused(schema).path == ("properties", "a", "pattern")


def test_a_pattern_that_would_backtrack_runs_in_linear_time():
    checked = CheckedSchema({"type": "string", "pattern": "^(a+)+$"})
    assert [error.field for error in checked.check("a" * 100_000 + "!")] == ["input"]
    assert checked.check("a" * 100_000) == []


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "objekt"}, ("type",)),
        ({"type": "object", "required": "a"}, ("required",)),
        ({"properties": {"a": {"minimum": "1"}}}, ("properties", "a", "minimum")),
        ({"$ref": "#/$defs/none"}, ("$ref",)),
        ({"$ref": "#none"}, ("$ref",)),
    ],
)
def test_what_is_no_schema_is_refused_at_its_place(schema, path):
    assert refused(schema).path == path


def test_size_depth_and_expansion_are_bounded():
    deep = {}
    for _ in range(16):
        deep = {"properties": {"a": deep}}
    assert "too deep (limit 32, got 33)" in refused(deep).message
    assert "too large (limit 65,536 bytes" in refused({"description": "x" * 65_536}).message
    assert "too many parts" in refused(doubled(40, {"type": "object"})).message
    assert "too many parts" in refused(doubled(13, {"type": "object"})).message
    assert CheckedSchema(doubled(10, {"type": "object"})).check({}) == []


def test_a_chain_of_references_as_long_as_a_schema_may_be_is_accepted():
    chain = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(1_500)}
    assert CheckedSchema({"$ref": "#/$defs/d0", "$defs": chain | {"d1500": {"type": "object"}}}).check({}) == []


def test_schemas_that_recur_are_accepted_and_checked():
    tree = {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}},
        "required": ["value"],
        "additionalProperties": False,
    }
    checked = check_schema(tree)
    assert checked.check({"value": 1, "next": {"value": 2}}) == []
    assert [error.field for error in checked.check({"value": 1, "next": {"value": "x"}})] == ["input.next.value"]
    assert CheckedSchema({"$ref": "#"}).check(1) == []
    assert CheckedSchema({"$defs": {"a": {"$anchor": "it", "type": "object"}}, "$ref": "#it"}).check({}) == []


def test_a_deep_value_of_a_schema_that_branches_does_not_multiply_the_work():
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
    value = 5
    for _ in range(60):
        value = {"a": value}
    # To list each error would take 2 ** 60 steps, which the time limit of the tests would end.
    assert [error.field for error in CheckedSchema(schema).check(value)] == ["input"]


def test_errors_are_reported_by_field():
    schema = {
        "type": "object",
        "properties": {
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"price": {"type": "number"}},
                    "required": ["price"],
                    "additionalProperties": False,
                },
            },
            "when": {"enum": ["now", "later"]},
        },
        "required": ["when"],
    }
    checked = check_schema(schema)
    errors = checked.check({"items": [{"price": "1", "tax": 2}, {}]})
    assert {(error.field, error.message) for error in errors} == {
        ("input.when", "it is required"),
        ("input.items[0].tax", "there is no such field"),
        ("input.items[0].price", '"1" is not of type "number"'),
        ("input.items[1].price", "it is required"),
    }
    assert {error.code for error in errors} == {"invalid_input"}
    assert checked.check({"when": 3}, "result")[0].field == "result.when"


def test_errors_and_their_texts_are_bounded():
    checked = check_schema({"type": "object", "properties": {"a": {}}, "additionalProperties": False})
    assert len(checked.check({f"f{number}": 1 for number in range(500)})) == 20
    assert [e.field for e in check_schema({"type": "object", "properties": {"a": False}}).check({"a": 1})] == [
        "input.a"
    ]
    (error,) = check_schema({"type": "integer"}).check("x\u202e" * 10_000)
    assert len(error.message) <= 301
    assert "\u202e" not in error.message
