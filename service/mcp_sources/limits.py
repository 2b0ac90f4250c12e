"""The limits of operations on MCP servers."""

GOODBYE_S = 2.0
"""How long the end of a session may take, also of a call that was cancelled."""
LIST_BYTES_MAX = 512 * 1024
"""The largest list of tools; every run begins by reading one."""
VALUES_MAX = 50_000
"""The most commas and brackets of a list or result: to parse 50,000 takes less than 100 ms of a slow core."""
LISTS_MAX = 16
"""How many lists are asked for at the same time."""
LISTS_OF_PROJECT_MAX = 4
"""How many of them are of one project."""
LISTS_QUEUED_MAX = 1_024
"""How many more wait for their turn."""
LISTS_OF_PROJECT_QUEUED_MAX = 256
"""How many of them are of one project."""
PARTS_MAX = 5_000
"""The most values of one message that the SDK checks one by one, which no other thread runs beside: 50 ms."""
REQUESTS_MAX = 100
"""The most requests of one operation, and the most that its server makes; a list has up to 50 pages."""
REDIRECTS_MAX = 10
"""How often one message of the older transport may be redirected; the SDK gives up after 20, and waits."""
