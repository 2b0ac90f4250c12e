"""What each Python interpreter begins with: it imports this as it starts.

One real path for each file, whatever its name (paths.c). What is shown by a program that the program of a call has started
becomes files, as what that one shows does. Where no call has started it, and where nothing is shown, it costs no more than that.
"""

import os
import posixpath
import sys
from typing import Any

_RUNNER = "/opt/proofbox/runner"
_RECORD = "/job/.shown"
_LIBRARIES = frozenset({"matplotlib", "PIL", "plotly", "altair", "bokeh", "IPython"})
_NAMES = ("files", "attachments", "/mnt/", "turn_")  # in each further name of the workspace
_MEANT = "\x01meant"  # before a path, for readlink: what it stands for (paths.c)
_REALPATH = posixpath.realpath
_OURS = ("shown", "shown_figures", "last_value", "notebook_display")


class _FirstLibrary:
    """Finds nothing; has the first of the libraries changed as the program of a call has it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The changed library, or None."""
        if name not in _LIBRARIES or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        theirs = {ours: sys.modules.pop(ours) for ours in _OURS if ours in sys.modules}
        sys.path.insert(0, _RUNNER)
        try:
            from shown import Shown  # noqa: PLC0415 - few programs show something

            stem = os.environ.get("PROOFBOX_SHOWN_STEM", "shown")
            Shown(self._folder, _RECORD, stem, is_child=True).watch(names_display=False)
        except Exception:  # noqa: BLE001 - of a module of the program in place of Python's: nothing is shown then
            return None
        finally:
            sys.path.remove(_RUNNER)
            for ours in _OURS:
                sys.modules.pop(ours, None)
            sys.modules.update(theirs)
        return sys.meta_path[0].find_spec(name, path, target)


def _realpath(path: Any, *, strict: bool = False) -> Any:
    """``os.path.realpath``: one path for each file, that of the workspace, also where a further name is given.

    Like Python's own, it opens nothing: a program may call it in an audit hook that is notified of opened files.
    """
    found = _REALPATH(path, strict=strict)
    if not any(name in os.fsdecode(found) for name in _NAMES):
        return found
    try:
        return os.readlink(os.fsencode(_MEANT) + found if isinstance(found, bytes) else _MEANT + found)
    except OSError:  # no call has started it
        return found


def _watch() -> None:
    try:
        folder = os.readlink("/job/.files")
    except OSError:
        return
    sys.meta_path.insert(0, _FirstLibrary(folder))


posixpath.realpath = _realpath
_watch()
