"""Support vector machines over a dask cluster, in the manner of lightgbm.dask and xgboost.dask."""

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
from ..svm.base import SupportVectorMachine
from ..svm.machine import Dual, Solution
from .cluster import Shares
from .machine import solve
from .matrix import ClusterMatrix
from .waiting import computed

LENGTHS = "the lengths of the blocks of X"

# What is said of every machine, with its name.
DOCUMENTATION = """

    The machine that `pairstep.svm.{0}` would find on one computer; the training data are dask
    collections, whose rows stay with the workers.

    Parameters
    ----------
    client : distributed.Client, optional
        Of the cluster; the default client if none is given.
    **parameters
        Those of `pairstep.svm.{0}`. `cache_size` is for each worker, and `n_jobs` for the part of
        the work that the client does; workers use the threads that dask gave them.

    Attributes
    ----------
    traffic_ : Traffic
        Rounds, bytes and recoveries of the fit. All others are those of `pairstep.svm.{0}`.
    """


class ClusterMachine(SupportVectorMachine):
    """A machine whose training data are dask collections; beside the class of the plain one."""

    client: Client | None

    def __init_subclass__(cls, local: type[SupportVectorMachine], **kwargs: Any):
        cls._local = local
        cls.__doc__ = f"{cls.__doc__}{DOCUMENTATION.format(local.__name__)}"
        signature = inspect.signature(local.__init__)
        own, *parameters = signature.parameters.values()
        client = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None)

        def __init__(self: Any, *, client: Client | None = None, **parameters: Any) -> None:
            signature.bind(self, **parameters)  # refuses what the plain machine would
            local.__init__(self, **parameters)
            self.client = client

        parameters = [own, client, *parameters]
        __init__.__dict__["__signature__"] = signature.replace(parameters=parameters)
        cls.__init__ = __init__  # type: ignore[method-assign]
        super().__init_subclass__(**kwargs)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the machine to training data that lie on the workers of a cluster.

        Parameters
        ----------
        X : dask.array.Array or dask.dataframe.DataFrame
            Training samples. They are shared out evenly over the workers, and stay there.
        y : dask.array.Array, dask.dataframe.Series or array_like
            Class labels or, in regression, numbers. They come to the client, as weights do.
        sample_weight : dask.array.Array, dask.dataframe.Series or array_like, optional
            Factors of C, one per sample. Samples whose weight is not positive are left out.

        Returns
        -------
        object
            The fitted machine itself.
        """
        if not isinstance(self.kernel, str) or self.kernel == "precomputed":
            raise ValueError(
                f"kernel must be the name of a kernel function on a cluster, got {self.kernel!r}"
            )
        client = default_client() if self.client is None else self.client
        if client.asynchronous:
            raise ValueError("client must not be asynchronous")
        rows, names = _rows_of(X, client)
        y, sample_weight = (
            computed(client, y, "y"),
            computed(client, sample_weight, "sample_weight"),
        )
        with Shares(client, rows) as shares:
            super().fit(ClusterMatrix(shares, names), y, sample_weight)
        self.traffic_ = shares.traffic
        return self

    def _training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        self._sparse, self.n_features_in_ = X.sparse, X.shape[1]
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if X.names is not None:
            self.feature_names_in_ = X.names
        if get_tags(self).target_tags.required:
            check_consistent_length(X, y)
        return X, y

    def _solve(self, K: Any, duals: list[Dual], **how: Any) -> list[Solution]:
        return solve(K, self._kernel(), duals, **how)

    def to_local(self) -> Any:
        """Give the plain machine of `pairstep.svm`, fitted as this one is.

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
        """What a method of the plain machine says, block by block where X is a dask collection."""
        check_is_fitted(self)
        local = self.to_local()
        if not dask.is_dask_collection(X):
            return getattr(local, method)(X)
        rows = X if isinstance(X, dask.array.Array) else X.to_dask_array()
        if rows.numblocks[1] > 1:
            rows = rows.rechunk({1: -1})
        local.__dict__.pop("feature_names_in_", None)  # arrays have no names
        like = getattr(local, method)(local.support_vectors_[:1])
        shape: dict[str, Any] = {"drop_axis": 1}
        if like.ndim == 2:
            shape = {"chunks": (rows.chunks[0], like.shape[1:])}
        return rows.map_blocks(
            _block, dask.delayed(local), method, dtype=like.dtype, meta=like[:0],
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
            What the plain machine predicts.
        """
        return self._lazily("predict", X)

    @available_if(lambda self: hasattr(self._local, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Evaluate the decision function of the plain machine, lazily as `predict` does."""
        return self._lazily("decision_function", X)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}  # which belongs to its process

    def __sklearn_clone__(self) -> Any:
        parameters = {
            name: clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
            if name != "client"
        }
        return type(self)(client=self.client, **parameters)


class SVC(ClusterMachine, svm.SVC, local=svm.SVC):
    """Support vector classification over a cluster."""


class NuSVC(ClusterMachine, svm.NuSVC, local=svm.NuSVC):
    """Nu-support vector classification over a cluster."""


class SVR(ClusterMachine, svm.SVR, local=svm.SVR):
    """Epsilon-support vector regression over a cluster."""


class NuSVR(ClusterMachine, svm.NuSVR, local=svm.NuSVR):
    """Nu-support vector regression over a cluster."""


class OneClassSVM(ClusterMachine, svm.OneClassSVM, local=svm.OneClassSVM):
    """Unsupervised detection of outliers over a cluster."""


def _rows_of(X: Any, client: Client) -> tuple[Any, Any]:
    """A collection as an array whose blocks are known rows, and the names of its columns."""
    names = None
    if hasattr(X, "to_dask_array"):
        columns = np.asarray(X.columns, object)
        names = columns if all(isinstance(name, str) for name in columns) else None
        X = X.to_dask_array(lengths=tuple(computed(client, X.map_partitions(len), LENGTHS)))
    if not isinstance(X, dask.array.Array):
        raise TypeError(
            f"X must be a dask array or dataframe, got {type(X).__name__}; pairstep.svm takes it"
        )
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    if np.isnan(X.shape[0]):
        ones = tuple((1,) * count for count in X.numblocks)
        each = X.map_blocks(_length, dtype=np.int64, chunks=ones, meta=np.empty((0, 0), np.int64))
        lengths = computed(client, each, LENGTHS)[:, 0].tolist()
        X = dask.array.Array(X.dask, X.name, (tuple(lengths), X.chunks[1]), meta=X)
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X, names


def _length(block: Any) -> Any:
    return np.array([[block.shape[0]]])


def _block(X: Any, machine: Any, method: str) -> Any:
    return getattr(machine, method)(X)
