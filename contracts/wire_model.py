"""The base class of the models of requests and responses."""

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """A model without unknown fields and without numbers that JSON does not have."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
