"""Adapters for agent frameworks over `proofbox.client`; each module needs its framework, which is no dependency."""
