"""What works where only numpy and scipy are installed, in an environment that has nothing else."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import scipy

import pairstep
from pairstep import _core

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The Python of a virtual environment with numpy, scipy and pairstep."""
    environment = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python*/site-packages")
    for library in (np, scipy):
        folder = Path(library.__file__).parent
        for part in (folder, folder.with_name(f"{folder.name}.libs")):
            if part.exists():
                (site / part.name).symlink_to(part)
    shutil.copytree(Path(pairstep.__file__).parent, site / "pairstep", dirs_exist_ok=True)
    shutil.copy(_core.__file__, site / "pairstep")
    return environment / "bin" / "python"


def run(python, script):
    done = subprocess.run(
        [python, "-W", "error", "-c", textwrap.dedent(script)],
        capture_output=True, text=True, check=False, cwd=python.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_solvers_need_numpy_and_scipy_only(bare):
    script = """
        import importlib.util
        import numpy as np, pairstep
        for absent in ("sklearn", "joblib", "pandas", "polars", "threadpoolctl", "matplotlib"):
            assert importlib.util.find_spec(absent) is None, absent
        A = np.random.default_rng(0).normal(size=(30, 10))
        assert pairstep.solve_qp(A.T @ A).success
        assert pairstep.simplex_lstsq(A, A[:, :4], n_jobs=2).success.all()
        assert pairstep.minimize(pairstep.LeastSquares(A, A[:, 0]), pairstep.Simplex()).success
        results = pairstep.path(pairstep.Quadratic(A.T @ A), pairstep.Simplex, over=[1.0, 2.0])
        assert all(result.success for result in results)
        assert pairstep.minimize(*pairstep.from_qp(np.eye(3), A=np.ones(3), b=1.0)).success
        print(pairstep.__file__)
    """
    (where,) = run(bare, script)
    assert where.startswith(str(bare.parents[1]))


def test_estimators_and_plots_say_what_to_install(bare):
    script = """
        import numpy as np, pairstep

        def said(call):
            try:
                call()
            except ImportError as error:
                print(error)

        said(lambda: pairstep.SimplexRegressor)
        said(lambda: pairstep.KernelMeanMatching)
        said(lambda: __import__("pairstep.svm"))
        said(lambda: pairstep.solve_qp(np.eye(2)).plot())
    """
    assert run(bare, script) == [
        "SimplexRegressor needs scikit-learn: pip install 'pairstep[sklearn]'",
        "KernelMeanMatching needs scikit-learn: pip install 'pairstep[sklearn]'",
        "pairstep.svm needs scikit-learn: pip install 'pairstep[sklearn]'",
        "plot needs matplotlib: pip install 'pairstep[plots]'",
    ]
