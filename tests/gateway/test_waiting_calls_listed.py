"""The list of recent calls while some of them wait for an answer."""

from tests.support.asking import opened_asking


async def test_a_call_that_waits_is_listed_as_waiting_and_then_as_done(tmp_path):
    async with opened_asking(tmp_path) as asking:
        await asking.enter()
        wait = await asking.ask()
        await asking.call("show", {"x": 1})
        listed = (await asking.web.get("/v1/tool-calls")).json()["calls"]
        states = {call["tool_id"]: (call["status"], call["code"], call["ended"] is None) for call in listed}
        assert states == {
            "gateway_tools.ask": ("waiting", None, True),
            "gateway_tools.show": ("done", "ok", False),
        }
        assert (await asking.answer(wait, result={"yes": True}, entity_id="ann")).status_code == 200
        listed = (await asking.web.get("/v1/tool-calls")).json()["calls"]
        assert {call["status"] for call in listed} == {"done"}
