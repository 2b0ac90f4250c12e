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


async def test_requests_are_counted_by_the_templates_of_their_routes_and_known_methods_alone(client):
    for number in range(3):
        await client.get(f"/v1/conversations/c{number}/artifacts/fi:turn_1.files/secret-{number}.txt")
        await client.request(f"METHOD{number}", f"/nowhere/{number}")
    text = (await client.get("/metrics")).text
    [family] = [each for each in text_string_to_metric_families(text) if each.name == "proofbox_http_requests"]
    seen = {tuple(s.labels.values()): s.value for s in family.samples if s.name.endswith("_total")}
    assert seen == {
        ("GET", "/v1/conversations/{conversation_id}/artifacts/{logical_path:path}", "404"): 3.0,
        ("_OTHER", "-", "404"): 3.0,
    }
    assert "secret" not in text
