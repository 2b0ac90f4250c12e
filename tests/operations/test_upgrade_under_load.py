"""The release of the schema before, running under load, is replaced by this one: no answer is lost or changes."""

import pytest
from earlier_release import previous_commit, unpack
from load import Load, exec_request, find_losses, write_request
from released_service import NotStartedError

from proofbox.service.app.own_image import own_image
from proofbox.service.storage.migrations import revisions

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.skipif(not previous_commit(), reason="this checkout has no history: there is no earlier release"),
]
BEFORE, AFTER = 10, 10


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """The sources of the release before."""
    return unpack(previous_commit(), tmp_path_factory.mktemp("earlier") / "proofbox")


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request):
    """The settings of both releases; the image of this one, as these tools run in none."""
    url = request.getfixturevalue("database_url") if request.param == "postgres" else ""
    return {"database_url": url, "image": own_image(), "pool_size": 0}


def test_calls_go_on_while_one_release_replaces_the_other(service, earlier, settings):
    old = service("old", checkout=earlier, **settings)
    new = service("new", **settings, data_dir=old.data_dir, port=old.port)
    beside = service("beside", **settings, data_dir=old.data_dir)
    old.start()
    with Load(old.url, write_request, clients=3) as load:
        load.wait_for(BEFORE)
        # Beside the old one, this one is refused and leaves the database as it is.
        with pytest.raises(NotStartedError, match="in use by another process of the service"):
            beside.start()
        load.wait_for(BEFORE)
        old.stop()
        new.start()
        ended = load.wait_for(AFTER)
    assert load.refusals == []
    done = new.command("audit", "verify")
    assert done.returncode == 0, done.stdout
    with new.client() as client:
        assert find_losses(client, ended) == []
        fresh = client.post("/v1/tool-calls", json=exec_request("fresh", "load-0"))
        assert (fresh.status_code, fresh.json()["ok"]) == (200, True)
    new.stop()
    # There is no way back: the old release does not start on the new schema, and changes nothing.
    with pytest.raises(NotStartedError, match=f"schema {revisions()[-1].lstrip('0')}.*run the newer release"):
        old.start()
    new.start()
    with new.client() as client:
        assert find_losses(client, ended) == []
