"""The directive `picture`: an image on light pages, its dark version on dark ones, and a caption.

    ```{picture} /_build/paper/figure1.svg
    What it shows.
    ```

shows ``figure1.svg`` or ``figure1-dark.svg``.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective


def in_both_looks(path: str, alt: str) -> list[str]:
    """The lines in Markdown that show an image, or its dark version."""
    light = PurePosixPath(path)
    dark = light.with_stem(f"{light.stem}-dark")
    return [
        line
        for look, image in (("light", light), ("dark", dark))
        for line in (f"```{{image}} {image}", f":class: only-{look}", f":alt: {alt}", "```", "")
    ]


class Picture(SphinxDirective):
    """An image in both looks; its caption is also what it is called where it is not seen."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Write it in Markdown."""
        caption = " ".join(self.content)
        alt = caption.replace("`", "").replace("*", "")
        lines = [*in_both_looks(self.arguments[0], alt), ":::{div} caption", caption, ":::"]
        source, line = self.get_source_info()
        holder = nodes.container()
        self.state.nested_parse(StringList(lines, source), line, holder)
        return holder.children


def setup(app: Any) -> dict[str, bool]:
    """Tell sphinx of the directive."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}
