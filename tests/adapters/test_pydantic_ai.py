"""Pydantic AI through the MCP endpoint."""


def test_the_model_sees_what_the_program_printed(run_example):
    printed = run_example("pydantic_ai_mcp.py")
    assert printed.startswith("Done: ")
    assert "'status': 'done', 'ok': True" in printed
    assert "forty-two" in printed.partition("'report': ")[2]
