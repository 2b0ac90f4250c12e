"""The limits of operations on MCP servers."""

GOODBYE_S = 2.0
"""How long the end of a session may take, also of a call that was cancelled."""
LIST_BYTES_MAX = 512 * 1024
"""The largest list of tools; every run begins by reading one."""
LIST_VALUES_MAX = 50_000
"""The most commas and brackets of a list: to parse 50,000 takes less than 100 ms of a slow core."""
LISTS_MAX = 16
"""How many lists are asked for at the same time."""
