"""The life cycle of a call: registration, admission, progress, answer, audit."""
