"""`python -m pairstep`: the `pairstep` command."""

import sys

from .cli import main

sys.exit(main())
