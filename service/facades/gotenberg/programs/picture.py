"""Runs in a sandbox: writes a PNG that the renderer made in another format.

Reads ``{"inputs": [{"path"}], "target", "format": "jpeg" | "webp", "quality"}`` from standard input.
"""

import json
import sys

from PIL import Image


def main() -> None:
    """Answers the request of standard input."""
    request = json.load(sys.stdin)
    with Image.open(request["inputs"][0]["path"], formats=("PNG",)) as picture:
        if request["format"] == "jpeg":
            ground = Image.new("RGB", picture.size, "white")
            ground.paste(picture, mask=picture.getchannel("A") if picture.mode == "RGBA" else None)
            ground.save(request["target"], "JPEG", quality=request["quality"])
        else:
            picture.save(request["target"], "WEBP", quality=request["quality"])
    print(json.dumps({"ok": True, "kind": request["format"], "name": ""}))


if __name__ == "__main__":
    main()
