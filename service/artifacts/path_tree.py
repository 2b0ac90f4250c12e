"""Which paths can lie beside each other."""

from proofbox.contracts.paths import FilePath


class PathTree:
    """Paths that can lie in one tree: none of them is a folder of another."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def take(self, path: FilePath) -> bool:
        """Adds a path; False, and not added, if a folder lies there or a file lies where it needs a folder."""
        return self.take_name(path.physical)

    def take_name(self, name: str) -> bool:
        """The same for the path of a file in any tree."""
        folders = folders_of(name)
        if name in self._folders or not self._files.isdisjoint(folders):
            return False
        self._files.add(name)
        self._folders.update(folders)
        return True


def folders_of(physical: str) -> list[str]:
    """The folders on the way to a path, the innermost first."""
    folders = []
    while (end := physical.rfind("/")) > 0:
        physical = physical[:end]
        folders.append(physical)
    return folders
