"""User ids of sandboxes. Each test has a range of its own: the claims on blocks are the machine's."""

import pytest

from proofbox.service.sandbox.sandbox_users import SandboxUsers


@pytest.fixture
def users_of():
    """Makes the users of one more service."""
    made = []

    def make(first, count):
        made.append(SandboxUsers(first, count))
        return made[-1]

    yield make
    for users in made:
        users.close()


def test_containers_that_exist_together_have_different_users(users_of):
    users = users_of(30_000, 50)
    assert sorted(users.take() for _ in range(50)) == list(range(30_000, 30_050))


def test_a_range_need_not_begin_with_a_block(users_of):
    users = users_of(30_120, 100)
    assert sorted(users.take() for _ in range(100)) == list(range(30_120, 30_220))


def test_the_id_that_was_released_first_is_taken_first(users_of):
    users = users_of(30_300, 3)
    first = [users.take() for _ in range(3)]
    for user in (first[1], first[0]):
        users.release(user)
    assert [users.take(), users.take()] == [first[1], first[0]]


def test_with_more_containers_than_users_they_share_one_of_the_range(users_of):
    users = users_of(30_400, 2)
    taken = [users.take() for _ in range(5)]
    assert set(taken) == {30_400, 30_401}


def test_a_shared_id_is_free_again_when_its_last_container_is_gone(users_of):
    users = users_of(30_500, 2)
    taken = [users.take() for _ in range(3)]
    shared = taken[2]
    other = ({30_500, 30_501} - {shared}).pop()
    users.release(shared)
    users.release(other)
    assert users.take() == other
    users.release(shared)
    assert users.take() == shared


def test_two_services_on_one_machine_have_different_users(users_of):
    one, other = users_of(31_000, 400), users_of(31_000, 400)
    taken = [service.take() for _ in range(200) for service in (one, other)]
    assert len(set(taken)) == 400


def test_services_that_need_more_than_the_range_share_ids(users_of):
    one, other = users_of(32_000, 50), users_of(32_000, 50)
    assert {one.take(), other.take()} <= set(range(32_000, 32_050))


def test_a_service_that_has_ended_leaves_its_users_to_the_next(users_of):
    one, other = users_of(33_000, 50), users_of(33_000, 50)
    mine = one.take()
    one.release(mine)
    one.close()
    assert sorted(other.take() for _ in range(50)) == list(range(33_000, 33_050))
