"""The operator's endpoints of models: refused at the start with the field and the remedy, never with a key."""

import json

import pytest
from pydantic import ValidationError
from pydantic_settings import SettingsError

from proofbox.service.app.config.mistakes import list_mistakes
from proofbox.service.app.gateway_llm import EndpointsRefusedError, build_endpoints
from proofbox.service.app.settings import Settings
from proofbox.service.gateway.llm.endpoints import EndpointRefusedError

GOOD = {"url": "https://llm.example/v1/", "key": "LLM_KEY", "models": ["small", "large"]}
KEYS = {"LLM_KEY": "sk-0123456789"}


def settings(monkeypatch, value):
    monkeypatch.setenv("PROOFBOX_LLM_ENDPOINTS", value if isinstance(value, str) else json.dumps(value))
    return Settings()


def test_an_endpoint_has_its_address_key_models_and_abilities(monkeypatch):
    local = {"url": "http://10.0.0.7:8000", "models": ["tiny"], "can": ["chat"]}
    endpoints = build_endpoints(settings(monkeypatch, {"default": GOOD, "local": local}), KEYS)
    found = endpoints.find("default", "images")
    assert str(found.url_of("/chat/completions")) == "https://llm.example/v1/chat/completions"
    assert (found.key, found.choose_model(None), found.choose_model("large")) == ("sk-0123456789", "small", "large")
    found = endpoints.find("local", "chat")
    assert str(found.url_of("/chat/completions")) == "http://10.0.0.7:8000/chat/completions"
    assert found.key == ""
    for refused, part in (
        (lambda: endpoints.find("local", "images"), "endpoint"),
        (lambda: endpoints.find("unknown", "chat"), "endpoint"),
        (lambda: found.choose_model("big"), "model"),
    ):
        with pytest.raises(EndpointRefusedError) as caught:
            refused()
        assert caught.value.part == part


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"url": "ftp://llm.example"}, "url"),
        ({"url": "https://me:secret-pass@llm.example"}, "url"),
        ({"url": "https://llm.example/?key=secret-pass"}, "url"),
        ({"url": "https://llm.example/#x"}, "url"),
        ({"key": "sk-secret-pass"}, "key"),
        ({"models": []}, "models"),
        ({"models": [""]}, "models.0"),
        ({"models": "small"}, "models"),
        ({"can": []}, "can"),
        ({"can": ["audio"]}, "can.0"),
        ({"apiKey": "secret-pass"}, "apiKey"),
    ],
)
def test_a_wrong_endpoint_is_refused_with_its_field_and_without_its_values(monkeypatch, changes, field):
    with pytest.raises(ValidationError) as caught:
        settings(monkeypatch, {"default": {**GOOD, **changes}})
    assert f"llm_endpoints.default.{field}\n" in str(caught.value)
    assert "secret-pass" not in str(caught.value)


@pytest.mark.parametrize(
    "value", ['{"a b": {"url": "https://x.example", "models": ["m"]}}', "[]", '{"default": {}}']
)
def test_a_wrong_map_is_refused(monkeypatch, value):
    with pytest.raises(ValidationError, match="llm_endpoints"):
        settings(monkeypatch, value)


def test_a_refusal_names_the_variable_and_the_place_and_no_value(monkeypatch):
    with pytest.raises(ValidationError) as wrong:
        settings(monkeypatch, {"default": {**GOOD, "url": "https://me:secret-pass@llm.example", "can": ["audio"]}})
    first, second, *_ = [mistake.sentence for mistake in list_mistakes(wrong.value)]
    assert first.startswith(
        "PROOFBOX_LLM_ENDPOINTS: default.url the address holds a user name or a password; give it without"
    )
    assert second == "PROOFBOX_LLM_ENDPOINTS: default.can[0] must be 'chat' or 'images'; choose one of them"
    assert "secret-pass" not in first + second
    with pytest.raises(SettingsError) as broken:
        settings(monkeypatch, '{"default": secret-pass}')
    [mistake] = list_mistakes(broken.value)
    assert mistake.sentence.startswith("PROOFBOX_LLM_ENDPOINTS: is not JSON (Expecting value: line 1 column 13")
    assert "secret-pass" not in mistake.sentence
    assert list_mistakes(ValueError("else")) == []


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({}, "default.key names the variable LLM_KEY, which is not set"),
        ({"LLM_KEY": ""}, "which is not set"),
        ({"LLM_KEY": "short12"}, "fewer than 8 characters (got 7)"),
        ({"LLM_KEY": "secret-pass\n"}, "no header carries"),
        ({"LLM_KEY": "secret-pass☃"}, "no header carries"),
    ],
)
def test_a_key_that_cannot_be_used_is_refused_without_its_value(monkeypatch, keys, part):
    with pytest.raises(EndpointsRefusedError) as caught:
        build_endpoints(settings(monkeypatch, {"default": GOOD}), keys)
    assert caught.value.message.startswith("PROOFBOX_LLM_ENDPOINTS: default")
    assert part in caught.value.message.replace("\n ", "")
    assert "secret-pass" not in caught.value.message
