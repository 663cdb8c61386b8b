"""The parts that the docstrings of all machines share, written once."""

from __future__ import annotations

from typing import TypeVar

PARAMETERS = {
    "kernel": """\
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
        The kernel. A function takes two samples of sizes n and m and returns their (n, m) kernel
        matrix; it is asked once, so the matrix of the training sample must fit into memory.
    degree : int
        Degree of the polynomial kernel ``(gamma <x, y> + coef0) ** degree``.
    gamma : {"scale", "auto"} or float
        Factor in the rbf, polynomial and sigmoid kernels: "scale" is
        ``1 / (n_features * X.var())`` and "auto" ``1 / n_features``.
    coef0 : float
        Constant term of the polynomial and sigmoid kernels.
""",
    "tolerance": """\
    tol : float
        The fit ends when the KKT violation is at most `tol`, recomputed in float64 from the data.
        Decisions on float32 samples use float32 only where that cannot be off by more than `tol`.
""",
    "memory": """\
    shrinking : bool
        Taken for compatibility: the engine decides by itself which variables to set aside, and
        checks all of them in the end.
    cache_size : float
        Memory for kernel rows and the block of the working set, in MB.
""",
    "probability": """\
    probability : bool
        Whether there are `predict_proba` and `predict_log_proba`: decisions calibrated by
        five-fold cross-validation within the fit, in the same folds as scikit-learn's. Deprecated,
        as in scikit-learn 1.9: who gives it is warned, and sent to
        ``CalibratedClassifierCV(machine, ensemble=False)``.
""",
    "iterations": """\
    verbose : bool
        Print how far the fit has come, and how it ended.
    max_iter : int
        At most so many iterations for each binary problem; -1 for the larger of ten million and
        100 times the number of samples.
""",
    "classes": """\
    class_weight : dict or "balanced", optional
        Factors of the weights of all samples of a class. "balanced" is
        ``n_samples / (n_classes * np.bincount(y))``.
""",
    "decisions": """\
    decision_function_shape : {"ovr", "ovo"}
        With more than two classes, whether `decision_function` has a column per class or one per
        pair of classes. Machines are trained for pairs in either case.
    break_ties : bool
        With more than two classes and "ovr", whether `predict` breaks ties between votes by the
        decision function; otherwise the first class wins.
    random_state : int, RandomState or None
        Draws the folds of `probability`; nothing else is drawn.
""",
    "added": """\
    n_jobs : int, optional
        Threads to use; by default, and at most, as many as the process may use: its affinity, its
        cgroup, OMP_NUM_THREADS, ``threadpoolctl.threadpool_limits`` and
        ``joblib.parallel_config`` are respected. Inside a worker of joblib the default is one.
    warm_start : bool
        Whether `fit` continues from the last dual. C, weights and kernel may have changed and rows
        may have been appended: a feasible point close to it is the start, the result the same.
    time_limit : float, optional
        Stop after so many seconds.
    rule : str
        The rule that chooses what to move within the working set: a guided one of
        `pairstep.rules.RULES` (not random or cyclic), or "auto".
    dtype : {numpy.float32, numpy.float64}, or their names
        Type of the cached kernel rows. If float32 cannot reach `tol`, the engine goes on in
        float64.
    support_columns : bool
        With ``kernel="precomputed"``, whether the X to predict has only the columns of the support
        vectors, in the order of `support_`. May be set after `fit`.
    device : {"cpu", "cuda", "auto"}
        Where fits and decisions are computed: "cuda" is an NVIDIA GPU, through CuPy
        (``pip install 'pairstep[cuda]'``); "auto" takes it for arrays that are there already, of
        CuPy or PyTorch, and gives results of their kind. Small duals, kernels that are functions
        and decisions by precomputed ones are the processor's in any case. May be set after `fit`.
""",
    "search": """\
    cv : int, splitter or iterable
        The splits: a number of folds, stratified for classes, or what scikit-learn's `check_cv`
        takes.
    scoring : str or callable, optional
        A scorer of scikit-learn; by default the `score` of the machine.
    n_jobs : int, optional
        Threads to use; by default all that are available, as in the machine itself. Under
        ``joblib.parallel_config(backend="dask")`` each gamma is a task for one of the workers.
    refit : bool or callable
        Whether to fit the best machine to all samples; a function takes `cv_results_` and gives the
        index of the best candidate.
    halving : bool
        Successive halving: all candidates are scored on a ninth of the samples, drawn by
        `random_state`, the best third of them on a third, and the best third of these on all. There
        are fewer such rounds where the first would have less than 300 samples. Every round has rows
        of its own in `cv_results_`, with its number, ``iter``, and its samples, ``n_resources``, as
        scikit-learn's HalvingGridSearchCV has it; in the journal the splits of earlier rounds have
        numbers beyond those of the last.
""",
    "shared": """\
    cache_size : float
        Memory for the kernel matrix and the blocks of working sets, in MB.
    dtype : {numpy.float32, numpy.float64}, or their names
        Type of the kernel matrix, whose values are computed in float64.
    verbose : bool
        Print each score.
    random_state : int, RandomState or None
        Shuffles the samples before they are split into `cv` folds, if `cv` is a number; None leaves
        them in order, as GridSearchCV does.
    time_limit : float, optional
        Stop the search after so many seconds: candidates that have not been scored on all splits
        are left out, and a ConvergenceWarning names them. The last fit comes after it.
    journal : MutableMapping, optional
        Scores by candidate and split. Those that it has are not computed again, and each new one is
        put into it at once, so that a search can go on where another one was ended. The keys are
        ``((("C", 1.0), ("gamma", 0.1)), 0)``: the parameters in the order of their names, and the
        number of the split.
""",
}

ATTRIBUTES = {
    "classes": """\
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    class_weight_ : ndarray of shape (n_classes,)
        The factor of each class.
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors, class by class.
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
        The support vectors; empty if the kernel is precomputed or a function.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    dual_coef_ : ndarray or sparse array of shape (n_classes - 1, n_SV)
        Coefficients of the support vectors in the decision functions, times their sign, in
        LIBSVM's layout.
    intercept_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Constants of the decision functions.
    probA_, probB_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Slopes and offsets of the sigmoids of `probability`; empty without.
    coef_ : ndarray or sparse array of shape (n_classes * (n_classes - 1) / 2, n_features)
        Weights of the features; with a linear kernel only.
    n_iter_ : ndarray of shape (n_classes * (n_classes - 1) / 2,)
        Iterations of each binary problem, at least 1.
""",
    "single": """\
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : ndarray or sparse array of shape (n_SV, n_features)
        The support vectors; empty if the kernel is precomputed or a function.
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    dual_coef_ : ndarray or sparse array of shape (1, n_SV)
        Coefficients of the support vectors in the decision function.
    intercept_ : ndarray of shape (1,)
        Constant of the decision function.
    coef_ : ndarray or sparse array of shape (1, n_features)
        Weights of the features; with a linear kernel only.
    n_iter_ : int
        Iterations, at least 1.
""",
    "search": """\
    cv_results_ : dict of arrays
        Scores and times of all candidates, as GridSearchCV has them. Times of work that splits
        share are divided evenly among them.
    best_params_ : dict
        The parameters with the best mean score.
    best_score_ : float
        Their mean score.
    best_index_ : int
        Their place in `cv_results_`.
    best_estimator_ : SupportVectorMachine
        The machine with these parameters, fitted to all samples; with `refit` only. `predict`,
        `decision_function` and `score` are its own.
    n_splits_ : int
        The number of splits.
    scorer_ : callable
        What has given the scores.
    refit_time_ : float
        Seconds that the last fit took.
    classes_ : ndarray of shape (n_classes,)
        The class labels, of a classifier.
    n_features_in_ : int
        The number of columns of X.
""",
    "fit": """\
    optimality_ : Optimality
        `kkt_violation` and `duality_gap` of each binary problem, recomputed in float64 from the
        data, and the `status` with which its solve ended.
    fit_status_ : int
        0 if all problems were solved to `tol` in fewer than `max_iter` iterations, 1 otherwise.
    shape_fit_ : tuple of int
        Shape of the training data.
    n_features_in_ : int
        The number of columns of X, unless the kernel is a function.
    feature_names_in_ : ndarray of str
        Their names, where X has them.
""",
}


Machine = TypeVar("Machine", bound=type)


def documented(machine: Machine) -> Machine:
    """Put the shared parts in the place of their names in the docstring."""
    text = machine.__doc__ or ""
    for kind, parts in (("parameters", PARAMETERS), ("attributes", ATTRIBUTES)):
        for name, part in parts.items():
            text = text.replace(f"    <{name} {kind}>\n", part)
    machine.__doc__ = text
    return machine
