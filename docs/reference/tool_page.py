"""The page of the tools and their parameters, from the catalogue."""

from proofbox.contracts.tools import Tool, catalogue
from reference.markdown import fields_table, prose


def tools_page() -> str:
    """The page of all tools that a model can call."""
    text = (
        "# Parameters of the tools\n\n"
        "Made by `docs/generate.py`. `GET /v1/tools` has the same as JSON Schemas ([its forms](tools.md)). "
        "`execute_code_node` has the\nparameters of `execute_code_bash`, where the image has Node.js. The catalogue "
        "leaves out `workspace` of the exec tools,\nwhich is the decision of the agent loop "
        "([exec.md](exec.md#the-workspace-of-a-conversation)), and `packages` without\nan index "
        "([packages](packages.md)).\n"
    )
    for tool in catalogue():
        text += _tool(tool)
    return text


def _tool(tool: Tool) -> str:
    text = f"\n## {tool.tool_id}\n\n{prose(tool.description)}\n"
    if tool.takes_code:
        text += "\nThe program is the field `code` of the request. Entries of `contract` are "
        text += "[ArtifactSpec](wire-types.md#artifactspec); [contract.md](contract.md) explains them.\n"
    return text + (f"\n{table}" if (table := fields_table(tool.params_schema)) else "")
