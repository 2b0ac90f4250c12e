"""Templates: types survive, each place has its encoding, and what was put in is never read again."""

import json

import pytest

from proofbox.contracts.gateway.executions import HttpExecution
from proofbox.service.gateway.environment import Environment, EnvironmentEntry, UnknownEnvError
from proofbox.service.gateway.filling import MISSING, RefusedInputError, TemplateFiller
from proofbox.service.gateway.http_template import prepare_request
from proofbox.service.gateway.templates import TemplateError, parse_template

PROJECT = "acme/books"
SECRET = "s3cr3t/+value"
ENVIRONMENT = Environment(
    {
        "KEY": EnvironmentEntry(SECRET, frozenset({"api.example.com"})),
        "HOST": EnvironmentEntry("intern.example.com", frozenset({"intern.example.com"})),
        "BROKEN": EnvironmentEntry("two\r\nlines-0123", frozenset({"api.example.com"})),
    }
)
URL = "https://api.example.com/v1"


def filler(params, environment=ENVIRONMENT):
    return TemplateFiller(params, "call_1", environment, PROJECT)


def prepared(params, **execution):
    return prepare_request(HttpExecution.model_validate({"url": URL, **execution}), params, filler(params))


def body_of(params, **execution):
    return json.loads(prepared(params, method="POST", **execution).body)


@pytest.mark.parametrize("value", [3, 2.5, True, False, None, [1, [2]], {}, {"a": []}, "text", "", 10**20])
def test_a_placeholder_alone_keeps_the_type_of_its_value(value):
    assert body_of({"a": value}, body={"x": "{{input.a}}", "y": ["{{ input.a }}"]}) == {"x": value, "y": [value]}


def test_within_text_strings_stay_and_other_values_are_json():
    params = {"s": 'a"b', "n": 3, "t": True, "z": None, "l": [1, "é"], "o": {}}
    text = "{{input.s}} {{input.n}} {{input.t}} {{input.z}} {{input.l}} {{input.o}} {{call.id}}"
    assert body_of(params, body={"x": text}) == {"x": 'a"b 3 true null [1,"é"] {} call_1'}


def test_an_absent_value_takes_its_key_or_item_with_it_and_is_nothing_within_text():
    body = {
        "a": "{{input.no}}",
        "b": ["{{input.no[0].x}}", "{{input.n}}"],
        "c": "<{{input.no}}>",
        "d": {"e": "{{input.no}}"},
    }
    assert body_of({"n": 1}, body=body) == {"b": [1], "c": "<>", "d": {}}


def test_steps_go_through_objects_and_lists_only():
    params = {"a": {"b": [{"c": 7}]}, "t": "text", "n": True}
    fill = filler(params).fill_json
    assert fill("{{input.a.b[0].c}}") == 7
    for path in ("a.b[1]", "a.b.c", "t[0]", "t.length", "n.x", "a[0]"):
        assert fill(f"{{{{input.{path}}}}}") is MISSING


def test_keys_are_never_templates():
    assert body_of({"k": "v"}, body={"{{input.k}}": 1}) == {"{{input.k}}": 1}


@pytest.mark.parametrize(
    "hostile", ["${env.KEY}", "{{input.b}}", "{{call.id}}", "{{!", "{{", "}}", "\\{{input.b}}"]
)
def test_what_was_put_in_is_never_read_as_a_template(hostile):
    params = {"a": hostile, "b": "never"}
    made = prepared(
        params, method="POST", query={"q": "{{input.a}}"}, body={"x": "{{input.a}}", "y": "<{{input.a}}>"}
    )
    assert json.loads(made.body) == {"x": hostile, "y": f"<{hostile}>"}
    assert SECRET not in made.url
    assert "never" not in made.url


def test_an_escaped_brace_is_literal():
    assert body_of({"a": 1}, body={"x": "{{!input.a}} {{!!}}"}) == {"x": "{{input.a}} {{!}}"}


@pytest.mark.parametrize(
    "text", ["{{}}", "{{input..a}}", "{{input.a[x]}}", "{{input.a-}", "{{env.KEY}}", "{{ input a }}"]
)
def test_a_placeholder_that_cannot_be_read_is_quoted(text):
    with pytest.raises(TemplateError, match="placeholder"):
        parse_template(text)


def test_short_texts_are_parsed_once_and_long_ones_are_not_kept():
    for text, is_kept in (("<{{input.a}}>", True), ("{{input.a}}" + "x" * 5_000, False)):
        assert (parse_template(text) is parse_template("".join(list(text)))) == is_kept


@pytest.mark.parametrize("template", ["{{input.a}}", "<{{input.a}}>", "{{input}}", "{{input.b}}"])
def test_placeholders_put_in_at_most_8_mib_in_one_call(template):
    long = "x" * 1_000_000
    fill = filler({"a": long, "b": [long]})
    count = 4 if template == "{{input}}" else 8
    assert len(fill.fill_json([template] * count)) == count
    with pytest.raises(RefusedInputError, match="8,388,608 characters; give a shorter input"):
        fill.fill_json({"more": template})


def test_secrets_and_ids_count_too():
    fill = TemplateFiller({}, "c" * 200, ENVIRONMENT, PROJECT)
    for template in ("{{call.id}}" * 50_000, "${env.KEY}" * 700_000):
        with pytest.raises(RefusedInputError, match="8,388,608"):
            fill.fill_text(parse_template(template), "api.example.com")


# ---- URLs ----


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("a/../b?x#y", "a%2F..%2Fb%3Fx%23y"),
        ("a b+c&d=e", "a%20b%2Bc%26d%3De"),
        ("%2e%2e", "%252e%252e"),
        ("..%2f", "..%252f"),
        ("é\n", "%C3%A9%0A"),
        ("...", "..."),
        ("@evil.org:1", "%40evil.org%3A1"),
        (3, "3"),
        (True, "true"),
        (None, "null"),
    ],
)
def test_a_value_in_a_path_is_one_segment(value, path):
    assert prepared({"a": value}, url=URL + "/{{input.a}}/end").url == f"{URL}/{path}/end"


@pytest.mark.parametrize("value", ["", ".", "..", [1], {"a": 1}, []])
def test_a_value_that_is_no_segment_is_the_model_s_mistake(value):
    with pytest.raises(RefusedInputError) as caught:
        prepared({"a": value}, url=URL + "/{{input.a}}")
    assert [(error.field, error.code) for error in caught.value.errors] == [("input.a", "invalid_input")]


def test_an_absent_value_is_no_segment():
    with pytest.raises(RefusedInputError, match="missing or empty"):
        prepared({}, url=URL + "/{{input.a}}")


def test_values_in_a_query_are_form_values():
    params = {"a": "x&b=1 ü+#", "n": 2}
    made = prepared(params, url=URL + "?q={{input.a}}&n={{input.n}}&m={{input.m}}&fix=a,b")
    assert made.url == URL + "?q=x%26b%3D1+%C3%BC%2B%23&n=2&m=&fix=a,b"
    with pytest.raises(RefusedInputError, match=r"input\.a"):
        prepared({"a": [1]}, url=URL + "?q={{input.a}}")


def test_query_parameters_are_added_with_objects_as_json_text():
    params = {"l": [1, "a b"], "s": "x y"}
    query = {"l": "{{input.l}}", "s": "{{input.s}}", "no": "{{input.no}}", "k": 1}
    assert prepared(params, query=query).url == URL + "?l=%5B1%2C%22a+b%22%5D&s=x+y&k=1"
    assert prepared(params, url=URL + "?a=b", query={"s": "{{input.s}}"}).url == URL + "?a=b&s=x+y"


def test_a_host_may_be_a_secret_as_a_whole():
    made = prepared({}, url="https://${env.HOST}:8443/x")
    assert (made.url, made.host) == ("https://intern.example.com:8443/x", "intern.example.com")
    assert made.template == "https://${env.HOST}:8443/x"


# ---- headers ----


@pytest.mark.parametrize(
    "value", ["a\r\nX-Evil: 1", "a\nb", "a\0b", "a\tb", "\x7f", "\x85", "ā", "€", "a\ud800", " a", "a "]
)
def test_a_value_that_no_header_carries_is_refused_and_never_cleaned(value):
    with pytest.raises(RefusedInputError) as caught:
        prepared({"a": value}, headers={"X": "{{input.a}}"})
    assert caught.value.errors[0].field == "input.a"


def test_header_values_are_filled():
    headers = {
        "X-Text": "<{{input.a}}>",
        "X-Gone": "{{input.no}}",
        "X-Empty": "[{{input.no}}]",
        "X-Json": "{{input.o}}",
    }
    made = prepared({"a": "é ÿ", "o": {"k": 1}}, headers=headers)
    assert made.headers == [("X-Text", "<é ÿ>"), ("X-Empty", "[]"), ("X-Json", '{"k":1}')]


# ---- bodies ----


def test_without_a_body_the_input_is_the_body_or_the_query():
    params = {"b": [1], "a": "x y", "n": None}
    for method in ("POST", "PUT", "PATCH"):
        made = prepared(params, method=method)
        assert (json.loads(made.body), made.url) == (params, URL)
        assert ("Content-Type", "application/json") in made.headers
    for method in ("GET", "HEAD", "DELETE"):
        made = prepared(params, method=method)
        assert (made.body, made.url) == (None, URL + "?b=%5B1%5D&a=x+y&n=null")


def test_the_input_is_no_query_if_the_request_takes_it_otherwise():
    params = {"a": "x", "b": 1}
    assert prepared(params, url=URL + "/{{input.a}}").url == URL + "/x"
    assert prepared(params, query={"b": "{{input.b}}"}).url == URL + "?b=1"
    assert prepared(params, query={}).url == URL
    assert prepared(params, method="DELETE", body={"b": "{{input.b}}"}).url == URL
    assert prepared(params, url=URL + "?call={{call.id}}").url == URL + "?call=call_1&a=x&b=1"


def test_a_form_and_a_text_are_encoded_as_such():
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = {"a": "{{input.a}}", "l": "{{input.l}}", "no": "{{input.no}}"}
    made = prepared({"a": "x&y=ü", "l": [1]}, method="POST", headers=form, body=body)
    assert made.body == b"a=x%26y%3D%C3%BC&l=%5B1%5D"
    assert made.headers == [("Content-Type", "application/x-www-form-urlencoded")]
    with pytest.raises(RefusedInputError, match="form"):
        prepared({"a": [1]}, method="POST", headers=form, body="{{input.a}}")
    text = prepared({"a": "ü"}, method="POST", headers={"content-type": "text/plain"}, body="<{{input.a}}>")
    assert text.body == "<ü>".encode()
    assert body_of({"a": "x"}, body="{{input.a}}") == "x"
    assert prepared({}, method="POST", body="{{input.a}}").body is None
    assert body_of({}, body=None) is None


# ---- secrets ----


def test_a_secret_goes_to_its_host_in_each_place_and_is_redacted_in_what_comes_back():
    params = {"a": "1"}
    fill = filler(params)
    execution = {
        "url": URL + "/${env.KEY}",
        "method": "POST",
        "headers": {"Authorization": "Bearer ${env.KEY}"},
        "query": {"k": "${env.KEY}"},
        "body": {"k": "<${env.KEY}>"},
    }
    made = prepare_request(HttpExecution.model_validate(execution), params, fill)
    assert made.url == URL + "/s3cr3t%2F%2Bvalue?k=s3cr3t%2F%2Bvalue"
    assert made.headers[0] == ("Authorization", f"Bearer {SECRET}")
    assert json.loads(made.body) == {"k": f"<{SECRET}>"}
    assert fill.redactor.redact_text(f"you sent {SECRET}") == "you sent [redacted]"


def test_a_secret_for_another_host_or_project_or_without_a_name_is_unknown():
    for environment, url in ((ENVIRONMENT, "https://other.example.com/"), (Environment(), URL)):
        execution = HttpExecution.model_validate({"url": url, "headers": {"X": "${env.KEY}"}})
        with pytest.raises(UnknownEnvError):
            prepare_request(execution, {}, filler({}, environment))
    with pytest.raises(UnknownEnvError) as caught:
        prepared({}, headers={"X": "${env.BROKEN}"})
    assert "lines" not in str(caught.value)


@pytest.mark.parametrize(
    "entry",
    [
        EnvironmentEntry("short12", frozenset({"a.example"})),
        EnvironmentEntry("long enough", frozenset()),
    ],
)
def test_a_secret_that_is_short_or_has_no_host_is_refused(entry):
    with pytest.raises(ValueError, match="KEY"):
        Environment({"KEY": entry})


def test_a_secret_is_not_in_the_text_of_its_entry():
    assert "0123456789" not in repr(EnvironmentEntry("0123456789", frozenset({"a"})))
