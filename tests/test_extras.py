"""The package in an environment that has only NumPy and SciPy."""

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

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("extras")]


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Return the Python of a virtual environment with NumPy, SciPy and pairstep."""
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
        positive, risk = np.abs(A) + 0.1, A.T @ A
        objectives = [
            pairstep.Quadratic(risk), pairstep.FactorModel(A, 0.1),
            pairstep.LeastSquares(A, A[:, 0]),
            pairstep.L1Penalized(pairstep.Quadratic(risk), (0.1, 0.2), 0.1),
            pairstep.Smooth(lambda x: float(x @ risk @ x), n=10),
            pairstep.MixtureLikelihood(positive), pairstep.LogGrowth(0.01 * A),
            pairstep.Logistic(A, np.arange(30) % 2), pairstep.KLDivergence(positive, A[:, 0] ** 2),
            pairstep.DOptimal(A[:, :3]), pairstep.RiskParity(risk),
        ]
        for objective in objectives:
            result = pairstep.minimize(objective, pairstep.Simplex())
            assert result.success, (objective, result)
            result._repr_html_()
        assert pairstep.simplex_lstsq(A, A[:, :4], n_jobs=2).success.all()
        results = pairstep.path(pairstep.Quadratic(risk), pairstep.Simplex, over=[1.0, 2.0])
        assert all(result.success for result in results)
        assert pairstep.minimize(*pairstep.from_qp(np.eye(3), A=np.ones(3), b=1.0)).success
        limits = {"groups": list("aaabbbcccc"), "group_total": {"a": (0.0, 0.2)}}
        assert pairstep.solve_qp(risk, **limits).group_multipliers["a"] < 0
        assert len(pairstep.efficient_frontier(risk, A[0], n_points=3).risk) == 3
        pairstep.propose("gs-1", A[0], np.full(10, 0.1), 0.0, 1.0, alpha=0.1)
        print(pairstep.__file__)
    """
    (where,) = run(bare, script)
    assert where.startswith(str(bare.parents[1]))


def test_calls_commands_and_files_name_the_missing_package(bare):
    script = """
        import io, sys
        import numpy as np, pairstep
        from pairstep import cli
        from pairstep.data.svmlight import read_svmlight
        from pairstep.data.table import read_csv, read_parquet

        sys.stderr = sys.stdout
        for command in ("train", "predict", "tune"):
            assert cli.main([command, "data", "model"]) == 2
        assert cli.main(["reproduce", "--quick"]) == 2
        for call in (
            lambda: pairstep.SimplexRegressor,
            lambda: __import__("pairstep.svm"),
            lambda: pairstep.solve_qp(np.eye(2)).plot(),
            lambda: pairstep.Smooth(sum, "jax"),
            lambda: pairstep.Smooth(sum, hessian="torch"),
            lambda: read_csv(io.BytesIO(b"")),
            lambda: read_parquet(io.BytesIO(b"")),
            lambda: read_svmlight(io.BytesIO(b"")),
        ):
            try:
                call()
            except ImportError as error:
                print(error)
    """
    assert run(bare, script) == [
        "pairstep: train needs scikit-learn: pip install 'pairstep[sklearn]'",
        "pairstep: predict needs scikit-learn: pip install 'pairstep[sklearn]'",
        "pairstep: tune needs scikit-learn: pip install 'pairstep[sklearn]'",
        "pairstep: reproduce needs matplotlib: pip install 'pairstep[plots]'",
        "SimplexRegressor needs scikit-learn: pip install 'pairstep[sklearn]'",
        "pairstep.svm needs scikit-learn: pip install 'pairstep[sklearn]'",
        "plot needs matplotlib: pip install 'pairstep[plots]'",
        "Smooth needs jax: pip install 'pairstep[jax]'",
        "Smooth needs torch: pip install 'pairstep[torch]'",
        "a csv file needs pandas: pip install 'pairstep[cli]'",
        "a parquet file needs pyarrow: pip install 'pairstep[cli]'",
        "data in LIBSVM's format needs scikit-learn: pip install 'pairstep[sklearn]'",
    ]


def test_every_module_is_imported_or_names_the_extra_that_it_needs(bare):
    script = """
        import importlib, pkgutil, pairstep

        def walk(package):
            for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
                if module.name.endswith("__main__"):
                    continue
                try:
                    imported = importlib.import_module(module.name)
                except ImportError as error:
                    print(f"{module.name}: {error}")
                else:
                    if module.ispkg:
                        walk(imported)

        walk(pairstep)
    """
    printed = [line for line in run(bare, script) if not line.startswith("pairstep.gpu.")]
    paper = [line for line in printed if line.startswith("pairstep.paper.")]
    assert {line.partition(": ")[2] for line in paper} == {
        "reproduce needs joblib: pip install 'pairstep[plots]'"
    }
    assert [line for line in printed if line not in paper] == [
        "pairstep.dask: pairstep.dask needs distributed: pip install 'pairstep[dask]'",
        "pairstep.jax: pairstep.jax needs jax: pip install 'pairstep[jax]'",
        "pairstep.simplex: SimplexRegressor needs scikit-learn: pip install 'pairstep[sklearn]'",
        "pairstep.svm: pairstep.svm needs scikit-learn: pip install 'pairstep[sklearn]'",
        "pairstep.torch: pairstep.torch needs torch: pip install 'pairstep[torch]'",
    ]


def test_solve_and_info_need_numpy_and_scipy_only(bare):
    script = """
        import sys
        import numpy as np
        from pairstep import cli

        sys.stderr = sys.stdout
        np.savez("risk.npz", Q=np.diag([2.0, 1.0]))
        assert cli.main(["solve", "risk.npz"]) == 0
        assert cli.main(["info"]) == 0
    """
    printed = "\n".join(run(bare, script))
    assert "scikit-learn    not installed" in printed
    assert "jax             not installed" in printed


@pytest.mark.parametrize(
    ("absent", "extra"), [("joblib", "plots"), ("threadpoolctl", "plots"), ("pandas", "cli")]
)
def test_experiments_name_each_library_that_they_need(absent, extra):
    pytest.importorskip("matplotlib")
    script = f"""
        import sys
        sys.modules[{absent!r}] = None
        from pairstep import cli
        sys.exit(cli.main(["reproduce", "--quick"]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True
    )
    message = f"pairstep: reproduce needs {absent}: pip install 'pairstep[{extra}]'\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_submodules_are_loaded_on_first_use():
    script = "import pairstep; print(pairstep.svm.SVC.__name__, pairstep.theory.rate.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "SVC rate\n", done.stderr
