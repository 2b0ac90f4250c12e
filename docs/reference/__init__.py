"""Reference pages of the documentation, made from the code by `docs/generate.py`."""
