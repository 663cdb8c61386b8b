"""The documentation site is built without warnings. tests/test_examples.py runs the examples."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLANK = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'

for module in ("sphinx", "myst_parser", "numpydoc", "sphinx_gallery", "pydata_sphinx_theme"):
    pytest.importorskip(module, reason=f"the site needs {module}: pip install '.[docs]'")

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(not (ROOT / "docs/conf.py").exists(), reason="not a full source checkout"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site from a copy, so that an existing build is not changed."""
    root = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "examples", root / "examples")
    shutil.copytree(
        ROOT / "docs",
        root / "docs",
        ignore=shutil.ignore_patterns("_build", "examples", "generated"),
    )
    shutil.copy(ROOT / "CHANGELOG.md", root)
    for folder in ("src", "cpp"):
        (root / folder).symlink_to(ROOT / folder)
    figures = root / "docs/_build/paper"
    figures.mkdir(parents=True)
    for name in re.findall(r"/_build/paper/(\S+)", (root / "docs/paper-figures.md").read_text()):
        for look in ("", "-dark"):
            (figures / name.replace(".svg", f"{look}.svg")).write_text(BLANK)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "plot_gallery=0",
         root / "docs", root / "html"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return root / "html"


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(site):
    assert (site / "index.html").exists()


@pytest.mark.slow
def test_pages_load_nothing_from_the_network(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]*(?:src|href)="(https?:[^"]*)"', page.read_text()
        )
        assert not loaded, (page.name, loaded)


@pytest.mark.slow
@pytest.mark.browser
def test_the_search_page_finds_a_term(site, tmp_path):
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if browser is None:
        pytest.skip("no Chromium on the PATH")
    asked = f"{(site / 'search.html').as_uri()}?q=dinkelbach"
    page = subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}",
         "--virtual-time-budget=8000", "--dump-dom", asked],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    results = page.split('id="search-results"')[-1]
    assert "Exact selection rules" in results
    assert "theory/rules.html" in results
