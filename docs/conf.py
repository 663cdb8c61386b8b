"""Sphinx configuration of the site; `make docs` builds it.

A build needs no network. With the environment variable PAIRSTEP_DOCS_ONLINE=1, for the published
site, it downloads the inventories of other projects for links to their pages, and the version
switcher reads the list of versions from the published site.
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.metadata import metadata
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pairstep

HERE = Path(__file__).parent
ONLINE = os.environ.get("PAIRSTEP_DOCS_ONLINE", "0") != "0"
SITE = next(
    url.partition(", ")[2].rstrip("/")
    for url in metadata("pairstep").get_all("Project-URL") or ()
    if url.startswith("Documentation, ")
)
RELEASES: tuple[str, ...] = ()  # released versions, newest first
sys.path.insert(0, str(HERE / "_extensions"))

project = "pairstep"
author = "the pairstep developers"
copyright = "the pairstep developers, BSD-3-Clause"
version = release = pairstep.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # formulas need no network
    "benchmark",
    "picture",
]
exclude_patterns = ["_build", "examples/*.ipynb", "examples/*.py"]
templates_path = ["_templates"]
default_role = "py:obj"
highlight_language = "text"  # formulas in docstrings are not Python
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # functions in sphinx-gallery's settings cannot be pickled

# An inventory that cannot be fetched is a warning without a type, which `suppress_warnings` cannot
# name and `-W` makes an error. So an offline build has no inventories, and names stay plain text.
intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "scipy": ("https://docs.scipy.org/doc/scipy", None),
    "sklearn": ("https://scikit-learn.org/stable", None),
    "pandas": ("https://pandas.pydata.org/docs", None),
}
if not ONLINE:
    intersphinx_mapping = {}


def versions() -> list[dict[str, str]]:
    """Entries of the version switcher: this version, if it is not released, and all releases."""
    this = [] if release in RELEASES else [{"version": release, "name": f"{release} (dev)"}]
    entries = [*this, *({"version": each, "name": each} for each in RELEASES)]
    return [{**entry, "url": f"{SITE}/{entry['version']}/"} for entry in entries]


html_theme = "pydata_sphinx_theme"
html_title = "pairstep"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "pairstep"},
    "navbar_align": "left",
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    # Published pages read the newest list, also those of old versions. Other builds contain the
    # list itself, so that the switcher also works for files on disk.
    "switcher": {
        "json_url": (
            f"{SITE}/switcher.json"
            if ONLINE
            else f"data:application/json,{quote(json.dumps(versions()))}"
        ),
        "version_match": release,
    },
    "check_switcher": False,  # would fetch the list while the site is built
}
html_sidebars = {page: [] for page in ("start", "benchmarks", "changelog", "glossary")}
html_context = {"default_mode": "auto"}

numpydoc_show_class_members = False
autodoc_typehints = "none"  # the docstrings describe types
autosummary_generate = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def arguments(gallery: dict[str, Any], script: dict[str, Any]) -> list[str]:
    """Command line of a gallery example: write its figure into the build folder."""
    figures = HERE / "_build" / "pictures"
    figures.mkdir(parents=True, exist_ok=True)
    return ["--out", str(figures / f"{Path(script['src_file']).stem}.png")]


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py",
    "ignore_pattern": r"(^|/)cluster\.py",  # it needs a cluster; docs/cluster.md shows it
    "reset_argv": arguments,
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
}


def skip_foreign_members(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Skip members that are inherited from other packages."""
    home = getattr(getattr(member, "fget", member), "__module__", None)
    return None if home and home.startswith("pairstep") else True


def unlink_terms(
    app: Any, what: str, name: str, member: Any, options: Any, lines: list[str]
) -> None:
    """Remove links to scikit-learn's glossary from inherited docstrings."""
    lines[:] = [re.sub(r":term:`([^`]+)`", r"\1", line) for line in lines]


def write_versions(app: Any, exception: Exception | None) -> None:
    """Write the list of versions, to be published at the root of the site."""
    if exception is None and app.builder.format == "html":
        (Path(app.outdir) / "switcher.json").write_text(json.dumps(versions(), indent=1) + "\n")


def setup(app: Any) -> None:
    """Connect the functions above."""
    app.connect("autodoc-skip-member", skip_foreign_members)
    app.connect("autodoc-process-docstring", unlink_terms, priority=1000)  # after numpydoc
    app.connect("build-finished", write_versions)
