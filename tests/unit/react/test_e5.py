"""The embedding model that comes with a package: what it makes of texts, and that it asks no network."""

import hashlib
import math
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from proofbox.service.react.memsearch.e5 import MODEL, UNRELATED, E5Embedder, _Pieces
from proofbox.service.react.memsearch.e5_weights import E5Weights, weights_file

ROOT = Path(__file__).parents[3]
EMBEDDER = E5Embedder()
WITHOUT_A_NETWORK = """
import socket
from proofbox.service.react.memsearch.e5 import E5Embedder
try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
    raise SystemExit("there is a network")
except OSError as exc:
    assert exc.errno == 101, exc  # unreachable: there is no route at all
print(len(E5Embedder().embed(["the tide is high"])[0]))
"""


def test_vectors_have_384_dimensions_and_length_one():
    for vector in EMBEDDER.embed(["high tide", "", "\ud800", "\u6f6e", "words " * 2_000]):
        floats = struct.unpack("<384f", vector)
        assert math.isclose(sum(value * value for value in floats), 1, abs_tol=1e-5)


def test_a_text_has_one_direction_whatever_it_is_embedded_with():
    alone = EMBEDDER.embed(["The tide is high."])[0]
    together = EMBEDDER.embed(["x", "The tide is high.", "A much longer text about something else. " * 20])[1]
    assert together == alone


@pytest.mark.parametrize(
    ("query", "answer", "sharing"),
    [
        ("Who owes us money?", "The customer has not paid the invoice yet.", "Who plays the piano in the evening?"),
        (
            "Was darf das Kind nicht essen?",
            "Mein Sohn vertr\u00e4gt keine Eier.",
            "Das Kind darf heute lange spielen.",
        ),
        (
            "\u623f\u5b50\u4e3a\u4ec0\u4e48\u8fd9\u4e48\u51b7\uff1f",
            "\u6696\u6c14\u574f\u4e86\u3002",
            "\u4e3a\u4ec0\u4e48\u8fd9\u4e48\u8d35\uff1f",
        ),
        (
            "Where is the key?",
            "Der Schl\u00fcssel liegt unter der Fu\u00dfmatte.",
            "Where is the best bakery of the town?",
        ),
    ],
)
def test_what_answers_a_query_is_nearer_than_what_shares_its_words_and_nearer_than_chance(query, answer, sharing):
    asked = EMBEDDER.embed_query(query)
    right, wrong = EMBEDDER.similarities(asked, EMBEDDER.embed([answer, sharing]))
    assert right > max(wrong, EMBEDDER.similarity_by_chance(asked, 10))


def test_the_more_texts_there_are_the_nearer_chance_comes():
    asked = EMBEDDER.embed_query("Who owes us money?")
    assert EMBEDDER.similarity_by_chance(asked, 10) < EMBEDDER.similarity_by_chance(asked, 1_000)


def test_no_text_has_no_vector_and_no_vector_no_similarity():
    assert (EMBEDDER.embed([]), EMBEDDER.similarities(EMBEDDER.embed_query("x"), [])) == ([], [])


@pytest.mark.parametrize("text", ["\ufdfa" * 600, "\0a\0", "\u200d\u0301" * 300, "\U0001f600" * 600, " " * 600])
def test_odd_texts_have_vectors(text):
    [vector] = EMBEDDER.embed([text])
    assert not any(map(math.isnan, struct.unpack("<384f", vector)))


def test_texts_are_cut_into_the_pieces_of_the_models_tokenizer():
    pieces = _Pieces(E5Weights(weights_file()))
    # As XLM-RoBERTa's own tokenizer cuts them.
    assert pieces.ids("Hello world") == [0, 35378, 8999, 2]
    assert pieces.ids("  \uff28ello\tworld ") == [0, 35378, 8999, 6, 2]


def test_vectors_are_those_that_the_name_of_the_model_stands_for():
    """Whoever changes the weights, their use or the unrelated texts names `MODEL` anew: vectors are renewed."""
    digests = [hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in (weights_file(), UNRELATED)]
    assert (MODEL, *digests) == ("e5-small.1", "1571fc9827503943", "2a10022fc1275b0f")
    vectors = [EMBEDDER.embed(["The tide is high."])[0], EMBEDDER.embed_query("When is the tide high?")]
    begins = [struct.unpack("<8f", vector[:32]) for vector in vectors]
    # Processors and releases of onnxruntime round differently.
    assert begins == [
        pytest.approx((-0.091, 0.066, 0.019, -0.031, 0.004, -0.018, 0.102, 0.008), abs=0.03),
        pytest.approx((-0.017, 0.048, -0.032, 0.042, -0.015, -0.087, 0.028, -0.013), abs=0.03),
    ]


def test_it_works_where_there_is_no_network():
    run = ["unshare", "--net", "--map-root-user", sys.executable, "-c", WITHOUT_A_NETWORK]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("1536", 0), done.stderr


def test_importing_it_loads_neither_the_model_nor_its_libraries():
    code = "import sys, proofbox.service.react.memsearch.e5 as e; e.E5Embedder(); "
    code += "print({'numpy', 'onnxruntime'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
