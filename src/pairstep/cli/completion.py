"""Completion of commands and options by the shell, through shtab."""

from __future__ import annotations

import argparse
from typing import Any

SHELLS = ("bash", "zsh", "tcsh")


class Completion(argparse.Action):
    """Print a script that teaches a shell our commands, and end."""

    def __init__(self, option_strings: list[str], dest: str, **options: Any):
        text = 'print a completion script; for bash: eval "$(pairstep --completion bash)"'
        super().__init__(option_strings, argparse.SUPPRESS, choices=SHELLS, help=text)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
        option_string: str | None = None,
    ) -> None:  # fmt: skip
        """Print it."""
        try:
            import shtab
        except ImportError:
            parser.error("completion needs shtab: pip install 'pairstep[cli]'")
        print(shtab.complete(parser, values))
        parser.exit()
