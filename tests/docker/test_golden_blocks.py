import pytest
from tests.docker.calling import Caller
pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]
async def test_x(call: Caller):
    r = await call("import os,sys; print(os.listdir('.')); print(sys.argv, os.environ); open('a.txt','w').write('x'); raise ValueError('boo')", ["a.txt"])
    print(r.model_dump_json(indent=1, exclude_none=True))
    print(await call.events())
    print(await call.text("a.txt"))
