"""Hidden characters are shown as escapes, and nothing else changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.visible_text import visible_text


@pytest.mark.parametrize(
    "hidden",
    [
        "\u202e", "\u2066", "\u200b", "\u200e", "\u061c", "\ufeff", "\U000e0041", "\U000e007f",
        "\U000e0100", "\ufff9", "\u3164", "\u115f", "\u2800", "\ufe0f",
        "\u2028", "\x85", "\x1b", "\x00", "\u00ad", "\U000fffff",
    ],
)  # fmt: skip
def test_a_hidden_character_is_escaped(hidden):
    shown = visible_text(f"a{hidden}b")
    assert shown.startswith("a\\u")
    assert shown.isprintable()
    assert json.loads(f'"{shown}"') == f"a{hidden}b"


@pytest.mark.parametrize(
    "text", ["", "Übersicht \N{EN DASH} Märkte.csv", "日本語.txt", "a\tb\nc", "😀.png", "e\u0301"]
)
def test_a_text_that_is_seen_whole_stays_as_it_is(text):
    assert visible_text(text) == text


@given(st.text())
def test_json_text_keeps_its_value(text):
    assert json.loads(visible_text(json.dumps({"path": text}, ensure_ascii=False))) == {"path": text}
