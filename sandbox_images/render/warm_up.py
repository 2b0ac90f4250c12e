"""A document of each format, made ahead: what the first document of a process costs more than the next ones."""

import os
from typing import get_args

from render.frontend.pipeline import open_document
from render.model import Format
from render.request import request_of
from render.weasy.patch import take_back
from render.weasy.savings import configure_fonts_ahead
from render.writers import write

_CONTENT = """\
# 0

0 **0** *0* `0` [0](https://example.com)

- 0

1. 0

| 0 | 0 |
|---|---|
| 0 | 0 |

> 0

```python
0
```
"""


def render_ahead() -> None:
    """Renders it into memory and leaves other packages as they were; fonts are configured for one document more.

    Raises:
        RenderError, OSError: it could not be rendered.
    """
    for output in get_args(Format):
        _render(output)
    take_back()
    configure_fonts_ahead()


def render_again() -> None:
    """The format that is asked for most, once more.

    Raises:
        RenderError, OSError: it could not be rendered.
    """
    _render("pdf")


def _render(output: Format) -> None:
    handle = os.memfd_create(output)
    request = {
        "output": output,
        "source_format": "markdown",
        "content": _CONTENT,
        "root": "/",
        "target": output,
    }
    try:
        write(open_document(request_of(request)), f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)
