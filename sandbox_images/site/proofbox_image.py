"""What the image adds to libraries, at the end of their modules, where its build writes the call of `complete`.

See slim.sh.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import proofbox_fonts

Names = dict[str, Any]


def complete(names: Names) -> None:
    """Completes the module whose ``names`` these are."""
    _COMPLETED[names["__name__"]](names)


def _complete_downloader(names: Names) -> None:
    """``nltk.download`` of what the image has is a success, as it is for whoever has it already."""
    downloader, find = names["Downloader"], names["nltk"].data.find
    download = downloader.download

    def has(package: str) -> bool:
        for folder in ("corpora", "tokenizers", "sentiment"):
            for name in (package, f"{package}.zip"):
                try:
                    find(f"{folder}/{name}")
                except LookupError:
                    continue
                return True
        return False

    @wraps(download)
    def download_missing(self: Any, info_or_id: Any = None, *others: Any, **named: Any) -> Any:
        # Punkt in its old form is a pickle, which nltk reads no more; omw-1.4 adds languages to WordNet, which goes without.
        there = {"punkt": "punkt_tab", "omw-1.4": "wordnet"}
        if isinstance(info_or_id, str) and has(there.get(info_or_id, info_or_id)):
            return True
        return download(self, info_or_id, *others, **named)

    downloader.download = download_missing
    names["download"] = names["_downloader"].download


def _complete_ffi(names: Names) -> None:
    """Has pango stay until the process is gone.

    Pango has a thread, which may still run when Python ends and unloads the library: a few programs in a thousand ended by
    that with a segmentation fault.
    """
    ffi = names["ffi"]
    with suppress(OSError):
        ffi.dlopen("libpangoft2-1.0.so.0", ffi.RTLD_NOW | ffi.RTLD_NODELETE)


def _complete_word_cloud(names: Names) -> None:
    """A cloud without a font of its own has Chinese, Japanese and Korean words in letters."""
    cloud = names["WordCloud"]
    generate = cloud.generate_from_frequencies

    @wraps(generate)
    def generate_from_frequencies(self: Any, frequencies: Any, *others: Any, **named: Any) -> Any:
        if self.font_path == names["FONT_PATH"]:
            letters = {letter for word in frequencies for letter in str(word)}
            if any("\uac00" <= letter <= "\ud7a3" for letter in letters):
                self.font_path = proofbox_fonts.file_of("malgun gothic")
            elif any("\u2e80" <= letter <= "\uffef" for letter in letters):
                self.font_path = proofbox_fonts.file_of("simhei")
        return generate(self, frequencies, *others, **named)

    cloud.generate_from_frequencies = generate_from_frequencies


_COMPLETED: dict[str, Callable[[Names], None]] = {
    "PIL.ImageFont": proofbox_fonts.complete_truetype,
    "matplotlib._mathtext": proofbox_fonts.complete_mathtext,
    "matplotlib._text_helpers": proofbox_fonts.complete_text_helpers,
    "matplotlib.font_manager": proofbox_fonts.complete_font_manager,
    "nltk.downloader": _complete_downloader,
    "weasyprint.text.ffi": _complete_ffi,
    "wordcloud.wordcloud": _complete_word_cloud,
}
