"""Pydantic AI through the MCP endpoint."""


def test_the_example_runs_an_agent_whose_model_calls_a_tool(run_example):
    assert "42" in run_example("pydantic_ai_mcp.py")
