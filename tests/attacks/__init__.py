"""Random attacks on the solvers and on the SVMs, with checks that do not trust the package.

`python -m tests.attacks.solvers --count 20000` and `python -m tests.attacks.svms --count 3000`;
`make attack` runs both. pytest does not collect this folder.
"""
