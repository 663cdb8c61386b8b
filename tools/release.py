"""Check that a version can be released, and print what remains: `make release VERSION=1.2.3`.

    python tools/release.py 1.2.3 [--checks tree version ...]

Every check runs, also after one has failed, and nothing is published or tagged. The checks stand in
the order of their duration. The last ones compile the native code and take most of an hour; choose
some with `--checks` (in make: CHECKS="tree version"). `--list` prints their names. The output of
the commands is in build/release.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import reproducible

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(rc\d+)?")  # what we publish; pip ignores rc by default
LAST_LINES = 15  # of the output of a command that failed
LOGS = "build/release"  # the whole output of each command
Problems = Iterator[str]


def text_of(name: str) -> str:
    """Return the contents of a file of the checkout."""
    return (ROOT / name).read_text(encoding="utf-8")


def git(*arguments: str) -> str:
    """Return the output of a git command."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def command(*words: str, log: str) -> Problems:
    """Run a command and keep its output as a log; on failure, yield the end of it."""
    # A make that started this script must not pass its options on to another make.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    logs = ROOT / LOGS
    logs.mkdir(parents=True, exist_ok=True)
    (logs / f"{log}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-LAST_LINES:])
        yield f"`{' '.join(words)}` failed:\n{end}"


def order(version: str) -> tuple[int, ...]:
    """Return a key that sorts versions; a candidate comes before its release.

    Examples
    --------
    >>> sorted(["1.10.0", "1.9.0", "1.10.0rc2"], key=order)
    ['1.9.0', '1.10.0rc2', '1.10.0']
    """
    release, _, candidate = version.partition("rc")
    return (*map(int, release.split(".")), int(candidate) if candidate else sys.maxsize)


# The checks, quick ones first. Each yields what is wrong, with what to do about it.


def check_tree(version: str) -> Problems:
    """Check that all changes are committed."""
    for line in git("status", "--porcelain").splitlines():
        yield f"not committed: {line.strip()}"


def check_version(version: str) -> Problems:
    """Check that the version is well formed, and the same wherever it is repeated."""
    if not VERSION.fullmatch(version):
        yield f"{version} does not have the form 1.2.3 or 1.2.3rc1"
    declared = re.findall(r'^__version__ = "(.*)"$', text_of("src/pairstep/__init__.py"), re.M)
    if declared != [version]:
        yield f'src/pairstep/__init__.py: __version__ is {declared}, not "{version}"'
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    if "version" in project or "version" not in project["dynamic"]:
        yield "pyproject.toml must read the version from the package, not repeat it"
    for name in ("README.md", "docs/index.md"):
        cited = re.findall(r"\bversion\s*= \{(.*?)\}", text_of(name))
        if cited != [version]:
            yield f"{name}: the citation has the version {cited}"
    if f'\n  version: "{version}"\n' not in text_of("recipe/recipe.yaml"):
        yield "recipe/recipe.yaml has another version"
    releases = re.search(r"^RELEASES.*?= (\(.*?\))", text_of("docs/conf.py"), re.M | re.S)
    if releases is None or version not in ast.literal_eval(releases[1]):
        yield f'docs/conf.py: add "{version}" to RELEASES, the list of the version switcher'


def changelog_date(version: str, text: str) -> str | None:
    """Return the date of a version in the changelog."""
    found = re.search(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", text, re.M)
    return found[1] if found else None


def check_changelog(version: str) -> Problems:
    """Check that the changelog has a dated section with entries, and none that is unreleased."""
    text = text_of("CHANGELOG.md")
    day = changelog_date(version, text)
    if day is None:
        yield f'CHANGELOG.md: no line "## [{version}] - YYYY-MM-DD"; rename the section Unreleased'
        return
    if datetime.date.fromisoformat(day) > datetime.date.today():
        yield f"CHANGELOG.md: {day} is in the future"
    sections = re.split(r"^## ", text, flags=re.M)[1:]
    (section,) = (each for each in sections if each.startswith(f"[{version}]"))
    if not re.search(r"^- ", section, re.M):
        yield f"CHANGELOG.md: the section {version} has no entries"
    for unreleased in (each for each in sections if each.startswith("[Unreleased]")):
        if re.search(r"^- ", unreleased, re.M):
            yield "CHANGELOG.md: the section Unreleased has entries; are they in this release?"


def check_citation(version: str) -> Problems:
    """Check the version and the date of CITATION.cff."""
    text = text_of("CITATION.cff")
    for key in ("cff-version", "message", "title", "authors"):  # required by the format
        if not re.search(rf"^{key}:", text, re.M):
            yield f"CITATION.cff: no {key}"
    if f"\nversion: {version}\n" not in text:
        yield f"CITATION.cff: set `version: {version}`"
    day = changelog_date(version, text_of("CHANGELOG.md")) or "YYYY-MM-DD"
    if f"\ndate-released: {day}\n" not in text:
        yield f"CITATION.cff: set `date-released: {day}`, the date of the changelog"


def check_tags(version: str) -> Problems:
    """Check that the tag is new, and that the version follows that of the last tag."""
    tags = [tag[1:] for tag in git("tag", "--list", "v*").split() if VERSION.fullmatch(tag[1:])]
    if version in tags:
        yield f"the tag v{version} exists"
    elif VERSION.fullmatch(version):
        later = [tag for tag in tags if order(tag) > order(version)]
        if later:
            yield f"the tag v{max(later, key=order)} is a later version"


def check_urls(version: str) -> Problems:
    """Check that the project has URLs, and that the recipe repeats the homepage."""
    urls = tomllib.loads(text_of("pyproject.toml"))["project"]["urls"]
    for name in ("Homepage", "Documentation", "Changelog", "Issues"):
        if not urls.get(name, "").startswith("https://"):
            yield f"pyproject.toml: project.urls has no {name}"
    if f"\n  homepage: {urls['Homepage']}\n" not in text_of("recipe/recipe.yaml"):
        yield "recipe/recipe.yaml has another homepage than pyproject.toml"


def check_recipe(version: str) -> Problems:
    """Parse and render the recipe for conda-forge with rattler-build."""
    script = (
        "import rattler_build as r; recipe = r.Stage0Recipe.from_file('recipe/recipe.yaml');"
        "variants = r.VariantConfig({'python': ['3.12.*'], 'cxx_compiler': ['gxx'],"
        " 'c_stdlib': ['sysroot'], 'c_stdlib_version': ['2.28']});"
        "(one,) = recipe.render(variants, r.RenderConfig(platform=r.PlatformConfig("
        "target_platform='linux-64', build_platform='linux-64', host_platform='linux-64')));"
        f"assert str(one.recipe.package.version) == '{version}', one.recipe.package.version"
    )
    yield from command(sys.executable, "-c", script, log="recipe")


def check_documentation(version: str) -> Problems:
    """Build the site; warnings are errors."""
    yield from command("make", "docs", log="documentation")


def check_tests(version: str) -> Problems:
    """Run what CI runs."""
    yield from command("bash", ".ci/run", log="tests")


def check_sdist(version: str) -> Problems:
    """Build the sdist from the checkout and from itself, and a wheel twice; compare the bytes."""
    built = ROOT / "build" / "reproducible"
    for old in built.glob("pairstep-*"):
        old.unlink()
    try:
        yield from reproducible.check(built)
    except SystemExit as failure:
        yield str(failure)
        return
    yield from uploads(built, version)


def check_wheels(version: str) -> Problems:
    """Build and test the wheels of this platform, if the Makefile can."""
    if not re.search(r"^wheels:", text_of("Makefile"), re.M):
        yield "the Makefile has no target `wheels`"
        return
    for problem in command("make", "wheels", log="wheels"):
        yield problem
        return
    folders = [ROOT / name for name in ("wheelhouse", "dist")]
    yield from uploads(next((f for f in folders if any(f.glob("*.whl"))), folders[0]), version)


def uploads(folder: Path, version: str) -> Problems:
    """Check the metadata of files for upload, and the bill of materials of the wheels."""
    files = sorted(map(str, [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]))
    if not files:
        yield f"{folder.name}/ has no files"
        return
    twine = (sys.executable, "-m", "twine", "check", "--strict")
    yield from command(*twine, *files, log=f"twine-{folder.name}")
    for file in map(Path, files):
        if not file.name.startswith(f"pairstep-{version}{'.tar' if file.suffix == '.gz' else '-'}"):
            yield f"{file.name} is not of version {version}"
        elif file.suffix == ".whl":
            yield from materials(file, version)


def materials(wheel: Path, version: str) -> Problems:
    """Check that a wheel has an SBOM of its version, and the licenses of all that it lists."""
    with zipfile.ZipFile(wheel) as file:
        info = f"pairstep-{version}.dist-info"
        names = set(file.namelist())
        name = f"{info}/sboms/pairstep.cdx.json"
        if name not in names:
            yield f"{wheel.name} has no SBOM"
            return
        bom: dict[str, Any] = json.loads(file.read(name))
    if bom["metadata"]["component"]["version"] != version:
        yield f"{wheel.name}: the SBOM has another version"
    for component in bom["components"]:
        if not component.get("version"):
            yield f"{wheel.name}: the SBOM has no version of {component['name']}"
    for license in ("LICENSE", "licenses/nanobind.txt", "licenses/robin_map.txt"):
        if f"{info}/licenses/{license}" not in names:
            yield f"{wheel.name} has no {license}"


CHECKS: dict[str, Callable[[str], Problems]] = {
    "tree": check_tree,
    "version": check_version,
    "changelog": check_changelog,
    "citation": check_citation,
    "tags": check_tags,
    "urls": check_urls,
    "recipe": check_recipe,
    "documentation": check_documentation,
    "tests": check_tests,
    "sdist": check_sdist,
    "wheels": check_wheels,
}

REMAINING = """\
What remains for a person (RELEASING.md explains each step):
  1. Check that the weekly jobs of CI are green for this commit.
  2. git tag -a v{version} -m "pairstep {version}" && git push origin main v{version}
  3. Approve the environment `pypi` in the workflow Wheels, which publishes the files.
  4. In a new environment without a compiler: pip install 'pairstep[sklearn]=={version}', then the
     first blocks of the README.
  5. PAIRSTEP_DOCS_ONLINE=1 make docs, and publish docs/_build/html as {version}/ of the site.
  6. Set the hash in recipe/recipe.yaml to that of the published sdist, and submit the recipe to
     conda-forge (the first time) or merge the pull request of its bot.
  7. Copy the section {version} of CHANGELOG.md into the release on the project's page.
  8. Set __version__ to the next version with .dev0, and add a section Unreleased to CHANGELOG.md.
"""


def run(version: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Run checks, print one line for each and its problems, and return the problems."""
    found: dict[str, list[str]] = {}
    for name in names:
        print(f"{name:<14}", end="", flush=True)
        try:
            found[name] = list(CHECKS[name](version))
        except (OSError, subprocess.CalledProcessError, KeyError, ValueError) as error:
            found[name] = [f"the check itself failed: {error!r}"]
        print("ok" if not found[name] else "FAILED")
        for problem in found[name]:
            print("    " + problem.replace("\n", "\n    "))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checks and return 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", nargs="?")
    parser.add_argument("--checks", nargs="*", choices=CHECKS, help="only these")
    parser.add_argument("--list", action="store_true", help="print the names of the checks")
    options = parser.parse_args(argv)
    if options.list:
        for name, check in CHECKS.items():
            print(f"{name:<14}{(check.__doc__ or '').partition(chr(10))[0]}")
        return 0
    if not options.version:
        parser.error("which version? make release VERSION=1.2.3")
    found = run(options.version, options.checks or list(CHECKS))
    failed = [name for name, problems in found.items() if problems]
    print()
    if failed:
        print(f"pairstep {options.version} cannot be released: {', '.join(failed)} failed.")
        return 1
    skipped = [name for name in CHECKS if name not in found]
    if skipped:
        print(f"These checks passed. Not run: {', '.join(skipped)}.")
        return 0
    print(f"Every check of pairstep {options.version} passed.\n")
    print(REMAINING.format(version=options.version), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
