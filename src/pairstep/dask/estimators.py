"""SVMs on a dask cluster, with an interface like those of lightgbm.dask and xgboost.dask.

Predictions use `map_blocks` directly instead of dask-ml's `ParallelPostFit`. That wrapper has
neither `decision_function` nor `score_samples`, and dask-ml would be one more dependency.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

import dask
import dask.array
import numpy as np
from distributed import Client, default_client
from sklearn.base import clone
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import svm
from ..memory import MIN_CACHE_BYTES
from ..svm.base import BaseSVM
from ..svm.engine import Duals, Solutions
from ..svm.plan import FitPlan
from .cluster import Partitions
from .matrix import ClusterMatrix
from .svm import solve
from .waiting import compute

LENGTHS = "the lengths of the blocks of X"  # what a fit waits for, in messages

# Appended to the docstring of each estimator, with its name.
DOCUMENTATION = """

    Finds the same model as `pairstep.svm.{0}` on one computer. The training data are dask
    collections, and their rows stay on the workers.

    Parameters
    ----------
    client : distributed.Client, optional
        The client of the cluster. By default, the current default client.
    **parameters
        The parameters of `pairstep.svm.{0}`. `cache_size` is for each worker, and "auto" is
        200 MB. `n_jobs` is for the work of the client; workers use the threads that dask gave them.

    Attributes
    ----------
    traffic_ : Traffic
        Rounds, bytes and recoveries of the fit. The other attributes are those of
        `pairstep.svm.{0}`.
    """


class ClusterPlan(FitPlan):
    """A fit whose data and solver are on a cluster; mixed into the plan of the local estimator."""

    def check_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Read the properties of the matrix on the cluster, whose rows the workers have checked."""
        self.state["_sparse"], self.model.n_features_in_ = X.sparse, X.shape[1]
        self.model.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if X.names is not None:
            self.model.feature_names_in_ = X.names
        if get_tags(self.model).target_tags.required:
            check_consistent_length(X, y)
        return X, y

    def cache_bytes(self) -> int:
        """Return the memory for kernel rows of each worker.

        The free memory of the client says nothing about the workers, of which a computer may run
        several, so "auto" is the least that it can be elsewhere.
        """
        return MIN_CACHE_BYTES if self.model.cache_size == "auto" else super().cache_bytes()

    def run_solver(self, duals: Duals, **options: Any) -> Solutions:
        """Solve the duals over the workers."""
        return solve(self.matrix, self.kernel, duals, **options)


class ClusterSVM(BaseSVM):
    """Mixin for an estimator of `pairstep.svm`, `local`, that fits dask collections."""

    client: Client | None

    def __init_subclass__(cls, local: type[BaseSVM], **kwargs: Any):
        cls._local = local
        cls.plan_type = type("ClusterPlan", (ClusterPlan, local.plan_type), {})
        cls.__doc__ = f"{cls.__doc__}{DOCUMENTATION.format(local.__name__)}"
        signature = inspect.signature(local.__init__)
        own, *parameters = signature.parameters.values()
        client = inspect.Parameter(
            "client", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Client | None"
        )

        def __init__(self: Any, *, client: Client | None = None, **parameters: Any) -> None:
            signature.bind(self, **parameters)  # raises TypeError as the local estimator would
            local.__init__(self, **parameters)
            self.client = client

        parameters = [own, *parameters, client]
        __init__.__dict__["__signature__"] = signature.replace(parameters=parameters)
        cls.__init__ = __init__  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to training data on the workers of a cluster.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame
            Training samples. They are partitioned evenly over the workers, and stay there.
        y : dask.array.Array, dask.dataframe.Series or array_like
            Class labels, or numbers in regression. They are sent to the client, as weights are.
        sample_weight : dask.array.Array, dask.dataframe.Series or array_like, optional
            Factors of C, one per sample. Samples whose weight is not positive are ignored.

        Returns
        -------
        object
            The fitted estimator itself.
        """
        if not isinstance(self.kernel, str) or self.kernel == "precomputed":
            raise ValueError(
                f"kernel must be the name of a kernel function on a cluster, not {self.kernel!r}; "
                "use pairstep.svm for callable and precomputed kernels"
            )
        client = default_client() if self.client is None else self.client
        if client.asynchronous:
            raise ValueError("client must not be asynchronous; use Client(asynchronous=False)")
        rows, names = _rows_of(X, client)
        for count, kind in zip(rows.shape, ("sample", "feature"), strict=True):
            if count == 0:
                raise ValueError(
                    f"Found array with 0 {kind}(s) (shape={rows.shape}) while a minimum of 1 is "
                    f"required by {type(self).__name__}."
                )
        y, sample_weight = (
            compute(client, y, "y"),
            compute(client, sample_weight, "sample_weight"),
        )
        with Partitions(client, rows) as partitions:
            super().fit(ClusterMatrix(partitions, names), y, sample_weight)
        self.traffic_ = partitions.traffic
        return self

    def to_local(self) -> Any:
        """Return the estimator of `pairstep.svm`, fitted as this one is.

        Returns
        -------
        object
            An instance of the class of this name in `pairstep.svm`.
        """
        local = object.__new__(self._local)
        local.__dict__.update(self.__dict__)
        for name in ("client", "traffic_"):
            local.__dict__.pop(name, None)
        return local

    def _lazily(self, method: str, X: Any) -> Any:
        """Call a method of the local estimator, lazily on each block if X is a dask collection."""
        check_is_fitted(self)
        local = self.to_local()
        if not dask.is_dask_collection(X):
            return getattr(local, method)(X)
        rows = X if isinstance(X, dask.array.Array) else X.to_dask_array()
        if rows.numblocks[1] > 1:
            rows = rows.rechunk({1: -1})
        local.__dict__.pop("feature_names_in_", None)  # arrays have no names
        vectors, row = local.support_vectors_, (1, local.n_features_in_)
        sample = type(vectors)(row) if local._sparse else np.zeros(row, vectors.dtype)
        like = getattr(local, method)(sample)
        shape: dict[str, Any] = {"drop_axis": 1}
        if like.ndim == 2:
            shape = {"chunks": (rows.chunks[0], like.shape[1:])}
        return rows.map_blocks(
            _block, dask.delayed(local), method, like[:0], dtype=like.dtype, meta=like[:0],
            name=f"pairstep-{method}-{dask.base.tokenize(local, rows)}", **shape,
        )  # fmt: skip

    def predict(self, X: Any) -> Any:
        """Predict, lazily for dask collections.

        Parameters
        ----------
        X : dask.array.Array, dask.dataframe.DataFrame or array_like
            Samples.

        Returns
        -------
        dask.array.Array or ndarray
            The predictions of the local estimator.
        """
        return self._lazily("predict", X)

    @available_if(lambda self: hasattr(self._local, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Evaluate the decision function, lazily as `predict` does."""
        return self._lazily("decision_function", X)

    @available_if(lambda self: hasattr(super(), "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes, lazily as `predict` does."""
        return self._lazily("predict_proba", X)

    @available_if(lambda self: hasattr(super(), "predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities, lazily as `predict` does."""
        return self._lazily("predict_log_proba", X)

    @available_if(lambda self: hasattr(self._local, "score_samples"))  # type: ignore[untyped-decorator]
    def score_samples(self, X: Any) -> Any:
        """Return the scores of the samples, lazily as `predict` does."""
        return self._lazily("score_samples", X)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # it belongs to this process

    def __sklearn_clone__(self) -> Any:
        parameters = {
            name: clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
            if name != "client"
        }
        return type(self)(client=self.client, **parameters)


class SVC(ClusterSVM, svm.SVC, local=svm.SVC):
    """Support vector classification on a cluster."""


class NuSVC(ClusterSVM, svm.NuSVC, local=svm.NuSVC):
    """Nu-support vector classification on a cluster."""


class SVR(ClusterSVM, svm.SVR, local=svm.SVR):
    """Epsilon-support vector regression on a cluster."""


class NuSVR(ClusterSVM, svm.NuSVR, local=svm.NuSVR):
    """Nu-support vector regression on a cluster."""


class QuantileSVR(ClusterSVM, svm.QuantileSVR, local=svm.QuantileSVR):
    """Quantile regression with kernels on a cluster."""


class OneClassSVM(ClusterSVM, svm.OneClassSVM, local=svm.OneClassSVM):
    """Unsupervised outlier detection on a cluster."""


def _rows_of(X: Any, client: Client) -> tuple[Any, Any]:
    """Return a collection as an array with known block lengths, and the names of its columns."""
    names = None
    if hasattr(X, "to_dask_array"):
        columns = np.asarray(X.columns, object)
        names = columns if all(isinstance(name, str) for name in columns) else None
        X = X.to_dask_array(lengths=tuple(compute(client, X.map_partitions(len), LENGTHS)))
    if not isinstance(X, dask.array.Array):
        raise TypeError(
            f"X must be a dask array or dataframe, got {type(X).__name__}; use pairstep.svm for "
            "data in memory"
        )
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if np.isnan(X.shape[0]):
        ones = tuple((1,) * count for count in X.numblocks)
        each = X.map_blocks(_length, dtype=np.int64, chunks=ones, meta=np.empty((0, 0), np.int64))
        lengths = compute(client, each, LENGTHS)[:, 0].tolist()
        X = dask.array.Array(X.dask, X.name, (tuple(lengths), X.chunks[1]), meta=X)
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X, names


def _length(block: Any) -> Any:
    return np.array([[block.shape[0]]])


def _block(X: Any, model: Any, method: str, empty: Any) -> Any:
    """Call a method on a block; return an empty array for a block without rows."""
    return getattr(model, method)(X) if X.shape[0] else empty
