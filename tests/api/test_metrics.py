"""The door of the metrics: the text format that Prometheus scrapes."""

from prometheus_client.parser import text_string_to_metric_families


async def test_metrics_are_in_the_text_format(client):
    answer = await client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    assert [sample.value for sample in families["proofbox_pool_ready"].samples] == [2.0]
    assert families["proofbox_calls"].type == "counter"
    assert "process_resident_memory_bytes" in families
