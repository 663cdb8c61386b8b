"""Packages of other releases and architectures of Debian, and sources of Ubuntu, in a folder.

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


def ubuntu_archive(suite: str, folder: Path) -> Archive:
    """Return a release of Ubuntu, which keeps sources that mirrors of Debian may lack.

    Debian's packages have its URL (debootstrap) and the keys that sign it (ubuntu-keyring).
    """
    root = Archive("trixie", "amd64", folder).unpack("debootstrap", "ubuntu-keyring")
    script = (root / "usr/share/debootstrap/scripts/gutsy").read_text()
    found = re.search(r"default_mirror (http\S+/ubuntu)$", script, re.MULTILINE)
    if not found:
        raise SystemExit("debootstrap does not name the archive of Ubuntu")
    keyring = root / "usr/share/keyrings/ubuntu-archive-keyring.gpg"
    return Archive(suite, "amd64", folder, found[1], keyring)


class Archive:
    """The packages of one release for one architecture, with package lists of its own."""

    def __init__(
        self,
        suite: str,
        architecture: str,
        folder: Path,
        url: str | None = None,
        keyring: Path = KEYRING,
    ) -> None:
        """Remember where the packages come from, and where the lists and the packages go."""
        self.suite, self.architecture = suite, architecture
        self.folder = folder / f"{suite}-{architecture}"
        self.url, self.keyring = url, keyring

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
            f"Types: deb deb-src\nURIs: {self.url or mirror()}\n"
            f"Suites: {self.suite}\nComponents: main\n"
            f"Architectures: {self.architecture}\nSigned-By: {self.keyring}\n"
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
            extracted = package.with_suffix(".extracted")
            if not extracted.exists():  # again would replace the script of `pythons.runnable`
                subprocess.run(["dpkg", "--extract", package, root], check=True)
                extracted.touch()
        done.touch()
        return root

    def source(self, package: str) -> Path:
        """Unpack the source of a package, without Debian's patches, and return the folder."""
        parent = self.folder / "sources" / package
        unpacked = parent / "unpacked"
        if not unpacked.exists():
            self._update()
            parent.mkdir(parents=True, exist_ok=True)
            self._apt("source", "--tar-only", package, cwd=parent)
            (tar,) = parent.glob("*.orig.tar.*z")
            unpacked.mkdir()
            command = ["tar", "--extract", "--strip-components=1", "--file", tar]
            subprocess.run(command, cwd=unpacked, check=True)
        return unpacked
