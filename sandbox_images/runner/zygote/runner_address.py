"""The name in the abstract namespace of a container's network under which its runner listens for forks."""

RUNNER_ADDRESS = b"\0proofbox"
