"""The parts that the docstrings of all estimators share, written once."""

from __future__ import annotations

from typing import TypeVar

PARAMETERS = {
    "kernel": """\
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel. A function takes two sets of n and m samples and returns their (n, m) kernel
        matrix. `fit` calls it once, so the matrix of the training samples must fit into memory.
    degree : int, default=3
        Degree of the polynomial kernel ``(gamma <x, y> + coef0) ** degree``.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the rbf, polynomial and sigmoid kernels. "scale" uses
        ``1 / (n_features * X.var())`` and "auto" uses ``1 / n_features``.
    coef0 : float, default=0.0
        Constant term of the polynomial and sigmoid kernels.
""",
    "tolerance": """\
    tol : float, default=1e-3
        Stop when the KKT violation is at most `tol`. The violation is recomputed in float64 from
        the data. Decisions on float32 samples use float32 arithmetic only if its error is at most
        `tol`.
""",
    "memory": """\
    shrinking : bool, default=True
        Accepted for compatibility and ignored. The solver decides which variables to leave out for
        a while, and checks all of them at the end.
    cache_size : float or "auto", default="auto"
        Memory for kernel rows and the block of the working set, in MB. "auto" is a quarter of the
        free memory, rounded down to a power of two, and at least 200 MB. Workers of joblib divide
        it. If results must have the same bits whatever else runs on the computer, give a number.
""",
    "probability": """\
    probability : bool, default=False
        Whether to enable `predict_proba` and `predict_log_proba`. They calibrate decisions by
        five-fold cross-validation within the fit, with the same folds as scikit-learn. Deprecated
        as in scikit-learn 1.9: use ``CalibratedClassifierCV(model, ensemble=False)`` instead.
""",
    "iterations": """\
    verbose : bool, default=False
        Print the progress of the fit and a summary at the end.
    max_iter : int, default=-1
        Limit on the iterations for each binary problem. -1 stands for the larger of ten million
        and 100 times the number of samples.
""",
    "classes": """\
    class_weight : dict or "balanced", default=None
        Factors of C for the samples of each class. "balanced" uses
        ``n_samples / (n_classes * np.bincount(y))``.
""",
    "decisions": """\
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With more than two classes, whether `decision_function` has a column per class ("ovr") or
        one per pair of classes ("ovo"). One model per pair of classes is trained in either case.
    break_ties : bool, default=False
        With more than two classes and "ovr", whether `predict` breaks ties between votes by the
        decision function. Otherwise it returns the first of the tied classes.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds of `probability`. Nothing else is random.
""",
    "added": """\
    n_jobs : int, default=None
        Number of threads. None uses all threads that the process may use, which is also the
        maximum. This number respects the CPU affinity, the cgroup, OMP_NUM_THREADS,
        ``threadpoolctl.threadpool_limits`` and ``joblib.parallel_config``. Inside a joblib worker
        None means one.
    warm_start : bool, default=False
        Whether `fit` starts from the solution of the last fit. C, weights and kernel may have
        changed and rows may have been appended. The start is a feasible point close to the last
        solution, and the result is the same.
    time_limit : float, default=None
        Stop after this many seconds.
    dtype : {numpy.float32, numpy.float64} or str, default=numpy.float32
        Type of the cached kernel rows. If float32 cannot reach `tol`, the solver continues in
        float64.
    support_columns : bool, default=False
        With ``kernel="precomputed"``, whether the X passed to `predict` has only the columns of the
        support vectors, in the order of `support_`. May be set after `fit`.
    device : {"cpu", "cuda", "cuda:1", ..., "auto"}, default="cpu"
        Where fits and decisions are computed. "cuda" is the first NVIDIA GPU, "cuda:1" the second,
        through CuPy (``pip install 'pairstep[cuda]'``). "auto" uses the GPU for CuPy and PyTorch
        arrays that are on it, and returns arrays of the same library. The CPU always computes small
        duals, kernels that are functions, and decisions with precomputed kernels. May be set after
        `fit`.
""",
    "search": """\
    cv : int, "loo", cross-validation generator or iterable, default=5
        The splits: a number of folds, which are stratified for classifiers, or anything that
        scikit-learn's `check_cv` accepts. "loo" scores the leave-one-out predictions of each
        candidate on all samples together, as `leave_one_out` does, from one fit per candidate.
    scoring : str or callable, default=None
        A scorer of scikit-learn. None uses the `score` method of the estimator.
    n_jobs : int, default=None
        Number of threads, as in the estimator itself. Under
        ``joblib.parallel_config(backend="dask")`` each gamma is a task for one of the workers.
    refit : bool or callable, default=True
        Whether to fit the best candidate to all samples. A function takes `cv_results_` and
        returns the index of the best candidate.
""",
    "shared": """\
    cache_size : float or "auto", default="auto"
        Memory for kernel matrices and the blocks of working sets, in MB. "auto" is a quarter of the
        free memory, as in the estimators.
    dtype : {numpy.float32, numpy.float64} or str, default=numpy.float32
        Type of the kernel matrix, whose entries are computed in float64.
    device : {"cpu", "cuda", "cuda:1", ..., "auto"}, default="cpu"
        Where fits and decisions are computed, as in the estimator. The kernel matrix is stored on
        the GPU if it takes at most three quarters of its free memory and `dtype` is float32.
        Otherwise each fit computes the kernel values that it needs. The CPU searches if each binary
        problem has fewer than 10,000 samples, or if the kernel is precomputed or a function.
    verbose : bool, default=False
        Print each score.
    random_state : int, RandomState instance or None, default=None
        Seed for shuffling the samples before they are split, if `cv` is a number. None keeps their
        order, as GridSearchCV does. Also the `random_state` of the estimator, if it has one.
    time_limit : float, default=None
        Stop the search after this many seconds. Candidates that have not been scored on all splits
        are left out, and a ConvergenceWarning names them. The time of the last fit is not included.
    checkpoint : path, default=None
        A file of scores, which is created if it does not exist. Scores that it contains are not
        computed again, and each new score is on the disk before the search continues, so that a
        search that was killed can be run again. Scores of other data, splits or parameters than
        `Cs`, `gammas` and `epsilons` are ignored, so several searches may share a file. `kernel`
        and `scoring` must be given by name, and `random_state` as a number, if at all.
""",
}

ATTRIBUTES = {
    "classes": """\
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    class_weight_ : ndarray of shape (n_classes,)
        The factor of C for each class.
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors, grouped by class.
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
        The support vectors. Empty if the kernel is precomputed or a function.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray or sparse array of shape (n_classes - 1, n_SV)
        Dual coefficients of the support vectors in the decision functions, times the sign of their
        class, in LIBSVM's layout.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Constants of the decision functions.
    probA_, probB_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Slopes and offsets of the sigmoids of `probability`. Empty if `probability` is False.
    coef_ : ndarray or sparse array of shape (n_classes * (n_classes - 1) / 2, n_features)
        Weights of the features. Only available with a linear kernel.
    n_iter_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Number of iterations for each binary problem, at least 1.
""",
    "single": """\
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
        The support vectors. Empty if the kernel is precomputed or a function.
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray or sparse array of shape (1, n_SV)
        Coefficients of the support vectors in the decision function.
    intercept_ : ndarray of shape (1,)
        Constant of the decision function.
    coef_ : ndarray or sparse array of shape (1, n_features)
        Weights of the features. Only available with a linear kernel.
    n_iter_ : int
        Number of iterations, at least 1.
""",
    "search": """\
    cv_results_ : dict of arrays
        Scores and times of all candidates, as in GridSearchCV. The time of work that splits share
        is divided evenly among them.
    best_params_ : dict
        The parameters with the best mean score.
    best_score_ : float
        Their mean score.
    best_index_ : int
        Their index in `cv_results_`.
    best_estimator_ : estimator
        The estimator with these parameters, fitted to all samples. Only available if `refit` is
        not False. `predict`, `decision_function`, `predict_proba` and `score` are delegated to it.
    n_splits_ : int
        The number of splits.
    scorer_ : callable
        The scorer.
    refit_time_ : float
        Time of the last fit in seconds.
    classes_ : ndarray of shape (n_classes,)
        The class labels, if the estimator is a classifier.
    n_features_in_ : int
        The number of columns of X.
""",
    "fit": """\
    optimality_ : Optimality
        `kkt_violation` and `duality_gap` of each binary problem, recomputed in float64 from the
        data, and the `status` of its solve.
    fit_status_ : int
        0 if all problems were solved to `tol` in fewer than `max_iter` iterations, 1 otherwise.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int
        The number of columns of X. Not set if the kernel is a function.
    feature_names_in_ : ndarray of str
        The names of the columns. Only set if X has names.
""",
}


Estimator = TypeVar("Estimator", bound=type)


def documented(model: Estimator) -> Estimator:
    """Insert the shared parts into the docstring of a class, in place of their names."""
    text = model.__doc__ or ""
    for kind, parts in (("parameters", PARAMETERS), ("attributes", ATTRIBUTES)):
        for name, part in parts.items():
            text = text.replace(f"    <{name} {kind}>\n", part)
    model.__doc__ = text
    return model
