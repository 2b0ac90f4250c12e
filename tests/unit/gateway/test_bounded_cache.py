"""A cache that is bounded in number and size."""

from proofbox.service.gateway.bounded_cache import BoundedCache


def present(cache):
    return [key for key in "abcd" if cache.find(key) is not None]


def test_the_least_recently_used_entry_leaves_by_number():
    cache = BoundedCache(2, 100)
    cache.add("a", 1, 1)
    cache.add("b", 2, 1)
    assert cache.find("a") == 1
    cache.add("c", 3, 1)
    assert present(cache) == ["a", "c"]


def test_entries_leave_by_size_and_a_value_that_is_replaced_counts_once():
    cache = BoundedCache(10, 100)
    for _ in range(5):
        cache.add("a", 1, 40)
    cache.add("b", 2, 60)
    assert present(cache) == ["a", "b"]
    cache.add("c", 3, 70)
    assert present(cache) == ["c"]
    cache.add("d", 4, 101)
    assert present(cache) == []
