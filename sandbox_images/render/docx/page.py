"""The page of a DOCX."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Page:
    """A page, in twips."""

    width: int
    height: int
    top: int
    right: int
    bottom: int
    left: int

    @property
    def text_width(self) -> int:
        """The room for text between the margins."""
        return max(self.width - self.left - self.right, 300)

    @property
    def text_height(self) -> int:
        """The room for text between header and footer."""
        return max(self.height - self.top - self.bottom, 300)

    def turned(self) -> "Page":
        """The page on its side."""
        return replace(self, width=self.height, height=self.width)
