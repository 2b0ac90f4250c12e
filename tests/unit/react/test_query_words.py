"""How much of a query's words texts have."""

import pytest

from proofbox.service.react.memsearch.words import plain, terms_of, word_scores

OTHERS = [f"Ticket ACME-40{number} was closed by the team." for number in range(30, 60)]


def best(query, texts):
    scores = word_scores(query, [plain(text) for text in texts])
    return max(zip(scores, texts, strict=True))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("ACME-4074", "Ticket ACME-4074 was closed by the team."),
        ("What about acme-4074?", "Ticket ACME-4074 was closed by the team."),
        ("4074", "Ticket ACME-4074 was closed by the team."),
        ("src/app/main.py", "The fault is in src/app/main.py, line 3."),
        ("main.py", "The fault is in src/app/main.py, line 3."),
        ("ERR_NO_ROUTE", "It says ERR_NO_ROUTE again."),
        ("stra\u00dfe", "Die STRASSE ist gesperrt."),
        ("\uff21\uff22\uff23 12", "The code is ABC 12."),
        ("\u6d53\u8336", "\u533b\u751f\u4e0d\u8ba9\u5979\u559d\u6d53\u8336\u3002"),
        ("\u732b", "\u5bb6\u91cc\u6709\u4e00\u53ea\u732b\u3002"),
        (
            "\u767d\u9ce5\u306e\u6e56",
            "\u3053\u306e\u6e56\u3067\u306f\u51ac\u306b\u767d\u9ce5\u304c\u898b\u3089\u308c\u307e\u3059\u3002",
        ),
        ("\uae40\uce58", "\ub0b4\uc77c \uae40\uce58\ub97c \ub2f4\uadf8\uaca0\uc2b5\ub2c8\ub2e4."),
        (
            "\u0e0a\u0e49\u0e32\u0e07",
            "\u0e40\u0e2b\u0e47\u0e19\u0e0a\u0e49\u0e32\u0e07\u0e43\u0e19\u0e1b\u0e48\u0e32",
        ),
        ("GPT\u6a21\u578b", "\u6211\u4eec\u7528\u4e86GPT\u6a21\u578b\u3002"),
    ],
)
def test_a_text_with_what_is_looked_for_is_the_best_and_has_more_than_half(query, text):
    score, found = best(query, [*OTHERS, text])
    assert found == text
    assert score > 0.5


@pytest.mark.parametrize(
    "query",
    [
        "ACME-4099",
        "Which recipe was it that we liked?",
        "\u706b\u5c71\u600e\u4e48\u5f62\u6210\u7684",
        "4",
        "",
        "?!",
    ],
)
def test_texts_without_it_have_less_than_half(query):
    texts = [*OTHERS, "It was late.", "\u6211\u600e\u4e48\u77e5\u9053\u3002"]
    assert best(query, texts)[0] < 0.5


def test_words_are_whole_words_and_rare_ones_count_more():
    part, whole = word_scores("cat", ["concatenate", "a cat"])
    assert part == 0 < whole
    others = [plain(f"the {name}") for name in ("dog", "cow", "hen")]
    [*few, one] = word_scores("cat the", [*others, plain("a cat")])
    assert max(few) < one


def test_terms_are_names_their_parts_and_pairs_of_letters_of_scripts_without_blanks():
    assert terms_of("Fix a_b/c-1 \u6c7d\u8f66\u574f\u4e86") == [
        "\u6c7d\u8f66", "\u8f66\u574f", "\u574f\u4e86", "fix", "a_b/c-1", "a", "b", "c", "1",
    ]  # fmt: skip


def test_a_long_query_has_a_bounded_number_of_terms():
    assert len(terms_of(" ".join(f"word{number}" for number in range(5_000)))) == 64


def test_no_texts_have_no_scores():
    assert (word_scores("x", []), word_scores("", ["x"])) == ([], [0.0])
