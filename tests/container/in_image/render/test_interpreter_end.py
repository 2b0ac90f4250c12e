"""Pango has a thread, so its library has to stay where it is until the process is gone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import render

PROGRAMS = Path(render.__file__).parents[1]
# What the interpreter does when it ends: every library that cffi has opened is given back.
UNLOADS = """
import os, weasyprint
from weasyprint.text import ffi
kept = weasyprint.HTML(string="x").render()  # with its fonts: awake, pango's thread would crash here
for value in list(vars(ffi).values()):
    if hasattr(type(value), "__cffi_close__"):
        ffi.ffi.dlclose(value)
with open("/proc/self/maps") as maps:
    print(any("libpangoft2" in line for line in maps), flush=True)
os._exit(0)
"""


def test_whoever_typesets_keeps_pango_loaded_when_it_ends():
    done = subprocess.run([sys.executable, "-c", UNLOADS], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "True"


def test_the_renderer_ends_without_giving_anything_back(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import atexit, os\natexit.register(os.write, 2, b'given back')\n")
    request = {"output": "pdf", "source_format": "html", "content": "x", "root": str(tmp_path), "target": "x.pdf"}
    (tmp_path / "request.json").write_text(json.dumps(request))
    found = {**os.environ, "PYTHONPATH": f"{tmp_path}:{PROGRAMS}"}
    command = [sys.executable, "-m", "render", str(tmp_path / "request.json")]
    done = subprocess.run(command, env=found, capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout)["ok"], done.stderr) == (True, "")
