"""Support vector machines with scikit-learn's interface."""
# ruff: noqa: E402 - the check for scikit-learn comes before the imports that need it

from ..extras import needed

needed("sklearn", by="pairstep.svm")

from .classification import SVC, NuSVC
from .export import to_sklearn
from .files import load, save
from .left_out import LeaveOneOutResult, leave_one_out
from .libsvm_files import load_libsvm_model, save_libsvm_model
from .novelty import OneClassSVM
from .plan import Optimality
from .regression import SVR, NuSVR, QuantileSVR
from .regularization import RegularizationPath, path
from .search import SVCCV, SVRCV

__all__ = [
    "SVC", "SVCCV", "SVR", "SVRCV", "LeaveOneOutResult", "NuSVC", "NuSVR", "OneClassSVM",
    "Optimality", "QuantileSVR", "RegularizationPath", "leave_one_out", "load",
    "load_libsvm_model", "path", "save", "save_libsvm_model", "to_sklearn",
]  # fmt: skip
