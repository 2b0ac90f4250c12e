"""The wire: every model, path form and code that crosses the HTTP interface or lands on a timeline.

Nothing in here imports the service. ``python -m proofbox.contracts`` writes the JSON Schemas and checks the
examples.
"""
