"""Words that go on across elements may break there, where the rules of their script let a line begin."""

import pytest
from docx_reading import opened_source
from render.frontend.element_tree import body_of

LONG = "x" * 40
CHINESE = "\u6211\u4eec\u7684\u6536\u5165\u589e\u957f\u4e86" * 6


@pytest.mark.parametrize(
    ("source", "count"),
    [
        (f"{LONG}<b>{LONG}</b>{LONG}", 2),
        (f"{LONG}<b>{LONG}</b>, and", 1),
        (f"{LONG}<b>{LONG}</b>)", 1),
        (f"{LONG}<b>{LONG}</b>/{LONG}", 2),
        (f"{LONG} <b>{LONG}</b> {LONG}", 0),
        (f"{CHINESE}<b>{CHINESE}</b>\u3002{CHINESE}", 0),
        (f"{CHINESE}<b>{CHINESE}</b>{CHINESE}", 0),
        (f"{CHINESE}<b>ab</b>\uff0c{CHINESE}", 0),
        (f"<b>{LONG}</b>\u3002{CHINESE}", 0),
        (f"{CHINESE}{LONG}<b>{LONG}</b>{CHINESE}", 1),
    ],
)
def test_a_line_may_begin_where_an_element_does(tmp_path, source, count):
    body = body_of(opened_source(f"<p>{source}</p>", tmp_path, source_format="html").tree)
    assert sum(1 for _ in body.iter("wbr")) == count
