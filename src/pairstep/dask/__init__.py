"""Exact kernel SVMs on the workers of a dask cluster.

Examples
--------
>>> import dask.array, pairstep.dask
>>> from distributed import Client
>>> X = dask.array.random.default_rng(0).normal(size=(400, 2), chunks=(100, 2))
>>> y = X[:, 0] * X[:, 1] > 0
>>> with Client(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
...     model = pairstep.dask.SVC(C=10.0).fit(X, y)
...     accuracy = (model.predict(X) == y).mean().compute()
>>> bool(accuracy > 0.95), model.to_local()
(True, SVC(C=10.0))
"""

from ..extras import needed

# The oldest version of dask and distributed that works (year and month).
MIN_DASK_VERSION = "2025.1"

_version = needed("distributed", "pairstep.dask").__version__
if [int(part) for part in _version.split(".")[:2]] < [
    int(part) for part in MIN_DASK_VERSION.split(".")
]:
    raise ImportError(
        f"pairstep.dask needs dask and distributed {MIN_DASK_VERSION} or newer, got {_version}: "
        "pip install -U 'pairstep[dask]'"
    )

from .estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM, QuantileSVR  # noqa: E402

__all__ = ["SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM", "QuantileSVR"]
