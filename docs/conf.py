"""How sphinx builds the site: `make docs`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pairstep

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "pairstep"
author = "the pairstep developers"
version = release = pairstep.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # formulas are shown without network, too
    "benchmark",
    "picture",
]
exclude_patterns = ["_build", "examples/*.ipynb", "examples/*.py"]
templates_path = ["_templates"]
default_role = "py:obj"
highlight_language = "text"  # formulas in docstrings are no Python
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # functions in sphinx-gallery's settings cannot be pickled

html_theme = "pydata_sphinx_theme"
html_title = "pairstep"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "pairstep"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("start", "benchmarks", "changelog", "glossary")}
html_context = {"default_mode": "auto"}
copyright = "the pairstep developers, BSD-3-Clause"

numpydoc_show_class_members = False
autodoc_typehints = "none"  # numpydoc's sections tell types, in words
autosummary_generate = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def arguments(gallery: dict[str, Any], script: dict[str, Any]) -> list[str]:
    """The command line of an example: its picture goes where the site is built."""
    return ["--out", f"../docs/_build/pictures/{Path(script['src_file']).stem}.png"]


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py",
    "ignore_pattern": r"(^|/)(_\w*|cluster)\.py",  # the last has a page of its own
    "reset_argv": arguments,
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "reset_modules": (),  # the examples share one look
    "write_computation_times": False,
    "min_reported_time": 1e9,
}


def of_others(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out members that are not ours to tell: those of scikit-learn, enums and strings."""
    home = getattr(getattr(member, "fget", member), "__module__", None)
    return None if home and home.startswith("pairstep") else True


def without_terms(
    app: Any, what: str, name: str, member: Any, options: Any, lines: list[str]
) -> None:
    """Unlink what scikit-learn's docstrings link to their glossary."""
    lines[:] = [re.sub(r":term:`([^`]+)`", r"\1", line) for line in lines]


def setup(app: Any) -> None:
    """Connect what is above."""
    app.connect("autodoc-skip-member", of_others)
    app.connect("autodoc-process-docstring", without_terms, priority=1000)  # after numpydoc
