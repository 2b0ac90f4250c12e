"""Tools that ask a model of the operator: pictures and sub-agents."""
