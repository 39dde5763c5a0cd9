"""Titles that unfold over what belongs to them, in a notebook's output; in plain text everything stands open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from looplab.view import Block, escape, twin_html, twin_text


class Folded:
    """Titles, each over its blocks."""

    def __init__(self, items: Iterable[tuple[str, list[Block]]]) -> None:
        self.items = list(items)

    @property
    def text(self) -> str:
        """The titles and their blocks as plain text."""
        return "\n\n".join(f"{title}\n{twin_text(blocks)}" for title, blocks in self.items)

    @property
    def html(self) -> str:
        """The same as HTML without style or class, folded."""
        return "\n".join(f"<details><summary>{escape(title)}</summary>\n{twin_html(blocks)}\n</details>"
                         for title, blocks in self.items)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}
