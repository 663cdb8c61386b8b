"""The directive `picture`: an image with a dark version for dark pages, and a caption.

    ```{picture} /_build/paper/figure1.svg
    Caption.
    ```

shows ``figure1.svg`` or ``figure1-dark.svg``.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


def light_and_dark(path: str, alt: str) -> list[str]:
    """Lines of Markdown that show an image on light pages and its dark version on dark pages."""
    light = PurePosixPath(path)
    dark = light.with_stem(f"{light.stem}-dark")
    return [
        line
        for mode, image in (("light", light), ("dark", dark))
        for line in (f"```{{image}} {image}", f":class: only-{mode}", f":alt: {alt}", "```", "")
    ]


class Picture(SphinxDirective):
    """An image with a light and a dark version; the caption is also its alternative text."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Generate the Markdown and parse it."""
        caption = " ".join(self.content)
        alt = caption.replace("`", "").replace("*", "")
        lines = [*light_and_dark(self.arguments[0], alt), ":::{div} caption", caption, ":::"]
        source, line = self.get_source_info()
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, source), line, holder)
        return holder.children


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}
