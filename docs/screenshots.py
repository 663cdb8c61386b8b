"""Looks at every page of the built site as readers will, and keeps what it saw.

    python docs/screenshots.py OUT [PAGE ...]

needs Playwright and Chromium. Desktop and phone, light and dark: a picture of each page in OUT.
What is wrong is printed, and makes it fail: pages wider than the screen, pictures not loaded,
formulas that were not set, messages of scripts.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).parent / "_build" / "html"
SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}
LOOKS = ("light", "dark")
FAULTS = """() => {
  const faults = [];
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (wide > 1) faults.push(`${wide} pixels too wide`);
  for (const article of document.querySelectorAll(".bd-article-container"))
    if (article.scrollWidth > article.clientWidth + 1)
      faults.push(`text ${article.scrollWidth - article.clientWidth} pixels too wide`);
  for (const image of document.images)
    if (image.offsetParent && !image.naturalWidth) faults.push(`no picture ${image.src}`);
  for (const math of document.querySelectorAll(".math"))
    if (!math.querySelector("mjx-container")) faults.push(`formula not set: ${math.textContent}`);
  if (document.querySelector("mjx-merror")) faults.push("formula with an error");
  return faults;
}"""


def faults(page: Page, path: Path) -> list[str]:
    """Open a page; what is wrong with it."""
    said: list[str] = []
    page.on(
        "console", lambda message: said.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    page.evaluate("() => window.MathJax?.startup?.promise")
    return said + page.evaluate(FAULTS)


def main(out: Path, names: list[str]) -> int:
    """Look at all pages, or at those named."""
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
            for look in LOOKS:
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=look
                )
                for path in paths:
                    name = path.relative_to(SITE).with_suffix("").as_posix().replace("/", "-")
                    page = context.new_page()
                    for fault in faults(page, path):
                        found += 1
                        print(f"{name}, {screen}, {look}: {fault}")
                    page.screenshot(path=out / f"{name}-{screen}-{look}.png", full_page=True)
                    page.close()
                context.close()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
