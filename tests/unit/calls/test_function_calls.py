"""A call by a function name, with its program among the arguments, is the call that the protocol has."""

import pytest

from proofbox.contracts.tool_call_request import CODE_BYTES_MAX, ToolCallRequest
from proofbox.service.calls.function_calls import canonical_call
from proofbox.service.errors import InvalidRequestError

PYTHON = "exec_tools.execute_code_python"


def call(tool_id=PYTHON, **fields):
    return ToolCallRequest(tool_id=tool_id, tool_call_id="t1", conversation_id="c1", **{"params": {}, **fields})


def test_a_call_as_the_protocol_has_it_is_the_same_object():
    request = call(code="print()", params={"contract": []})
    assert canonical_call(request) is request


def test_a_function_name_becomes_the_id_and_code_leaves_the_params():
    asked = call("exec_tools__execute_code_python", params={"code": "print()", "timeout_s": 5})
    assert canonical_call(asked) == call(code="print()", params={"timeout_s": 5})
    assert asked.params == {"code": "print()", "timeout_s": 5}


def test_an_empty_program_is_a_program():
    assert canonical_call(call(params={"code": ""})).code == ""


def test_code_that_is_longer_than_a_program_may_be_is_refused_where_it_stands():
    with pytest.raises(InvalidRequestError) as refused:
        canonical_call(call(params={"code": "é" * (CODE_BYTES_MAX // 2) + "a"}))
    assert refused.value.errors[0].field == "params.code"
    canonical_call(call(params={"code": "é" * (CODE_BYTES_MAX // 2)}))
