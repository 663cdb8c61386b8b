"""Check every page of the built site in a browser, and save screenshots.

    python docs/screenshots.py OUT [PAGE ...]

Needs Playwright and Chromium. Writes a screenshot of each page to OUT, for desktop and phone, light
and dark. Prints layout errors and then exits with 1: pages wider than the screen, images that did
not load, formulas that were not rendered, errors of scripts.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).parent / "_build" / "html"
SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}
COLOR_SCHEMES = ("light", "dark")
FAULTS = """() => {
  const faults = [];
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 1) faults.push(`page is ${wide} pixels too wide`);
  for (const article of document.querySelectorAll(".bd-article-container"))
    if (article.scrollWidth > article.clientWidth + 1)
      faults.push(`text is ${article.scrollWidth - article.clientWidth} pixels too wide`);
  for (const image of document.images)
    if (image.offsetParent && !image.naturalWidth) faults.push(`image not loaded: ${image.src}`);
  for (const math of document.querySelectorAll(".math"))
    if (!math.querySelector("mjx-container")) faults.push(`raw formula: ${math.textContent}`);
  if (document.querySelector("mjx-merror")) faults.push("formula with an error");
  return faults;
}"""


def faults(page: Page, path: Path) -> list[str]:
    """Open a page and return its errors."""
    messages: list[str] = []
    page.on("console", lambda m: messages.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(path.as_uri())
    page.evaluate("() => window.MathJax?.startup?.promise")
    return messages + page.evaluate(FAULTS)


def main(out: Path, names: list[str]) -> int:
    """Check all pages, or the named ones."""
    out.mkdir(parents=True, exist_ok=True)
    paths = [SITE / name for name in names] or sorted(
        path for path in SITE.rglob("*.html") if "_static" not in path.parts
    )
    found = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for screen, (width, height) in SCREENS.items():
            for scheme in COLOR_SCHEMES:
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme
                )
                for path in paths:
                    name = path.relative_to(SITE).with_suffix("").as_posix().replace("/", "-")
                    page = context.new_page()
                    for fault in faults(page, path):
                        found += 1
                        print(f"{name}, {screen}, {scheme}: {fault}")
                    page.screenshot(path=out / f"{name}-{screen}-{scheme}.png", full_page=True)
                    page.close()
                context.close()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
