"""User ids of sandboxes."""

from service.sandbox.sandbox_users import SandboxUsers


def test_containers_that_exist_together_have_different_users():
    users = SandboxUsers(20_000, 50)
    assert sorted(users.take() for _ in range(50)) == list(range(20_000, 20_050))


def test_a_released_user_can_be_taken_again():
    users = SandboxUsers(20_000, 3)
    first = [users.take() for _ in range(3)]
    users.release(first[1])
    assert users.take() == first[1]


def test_with_more_containers_than_users_they_share_one_of_the_range():
    users = SandboxUsers(20_000, 2)
    taken = [users.take() for _ in range(5)]
    assert set(taken) == {20_000, 20_001}
