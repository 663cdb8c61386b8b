"""Debian packages of another release or architecture, unpacked into a folder.

No package is installed, and no root rights are needed. The mirror is that of this computer.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def mirror() -> str:
    """Return the mirror in the apt sources of this computer, or Debian's own."""
    for file in sorted(Path("/etc/apt").glob("sources.list.d/*.sources")):
        found = re.search(r"^URIs:\s*(\S+/debian)/?\s*$", file.read_text(), re.MULTILINE)
        if found:
            return found[1]
    raise SystemExit("no Debian mirror in /etc/apt/sources.list.d: run this on Debian")


class Archive:
    """The packages of one release for one architecture, with package lists of its own."""

    def __init__(self, suite: str, architecture: str, folder: Path) -> None:
        """Remember where the lists and the packages go."""
        self.suite, self.architecture = suite, architecture
        self.folder = folder / f"{suite}-{architecture}"

    def _apt(self, *arguments: str, cwd: Path | None = None) -> None:
        environment = {**os.environ, "APT_CONFIG": str(self.folder / "apt.conf")}
        log = self.folder / "apt.log"
        with log.open("a") as out:
            done = subprocess.run(
                ["apt-get", "--quiet", "--yes", *arguments],
                env=environment, cwd=cwd, stdout=out, stderr=out, check=False,
            )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"apt-get {' '.join(arguments)} failed; see {log}")

    def _update(self) -> None:
        if (self.folder / "apt.conf").exists():
            return
        for name in ("state/lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "state/status").touch()
        (self.folder / "debian.sources").write_text(
            f"Types: deb deb-src\nURIs: {mirror()}\nSuites: {self.suite}\nComponents: main\n"
            f"Architectures: {self.architecture}\nSigned-By: {KEYRING}\n"
        )
        settings = {
            "APT::Architecture": self.architecture,
            "APT::Architectures": self.architecture,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "Dir::State": self.folder / "state",
            "Dir::State::status": self.folder / "state/status",
            "Dir::Cache": self.folder / "cache",
            "Dir::Etc::sourcelist": self.folder / "debian.sources",
            "Dir::Etc::sourceparts": "-",
        }
        text = "".join(f'{name} "{value}";\n' for name, value in settings.items())
        (self.folder / "apt.conf").write_text(text)
        self._apt("update")

    def unpack(self, *packages: str) -> Path:
        """Unpack packages and everything they depend on, and return the folder."""
        root = self.folder / "root"
        done = root / f".{'-'.join(sorted(packages))}"
        if done.exists():
            return root
        self._update()
        self._apt("install", "--download-only", *packages)
        root.mkdir(exist_ok=True)
        for package in sorted(self.folder.glob("cache/archives/*.deb")):
            subprocess.run(["dpkg", "--extract", package, root], check=True)
        done.touch()
        return root

    def source(self, package: str) -> Path:
        """Unpack the source of a package, with Debian's patches, and return the folder."""
        parent = self.folder / "sources" / package
        if not parent.exists():
            self._update()
            parent.mkdir(parents=True)
            self._apt("source", package, cwd=parent)
        (folder,) = (path for path in parent.iterdir() if path.is_dir())
        return folder
