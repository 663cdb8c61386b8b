"""The paper's rules inside the SVM solver: iterations and seconds of SVC(rule=...).

Run it with `python -m benchmarks.svm --rules`.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from pairstep.rules import RULES

from .svm_problems import PROBLEMS
from .svm_worker import in_process

SETS = {"a9a-C1": 10_000, "phishing": None, "usps": None}  # number of rows; None for all
TOL = 1e-3


def rules() -> list[str]:
    """Return the default, then each rule that uses derivatives; rules with two names only once."""
    guided = {rule.code: name for name, rule in RULES.items() if rule.guided}
    return ["default", *guided.values()]


def study(folder: Path, scratch: Path, options: argparse.Namespace) -> None:
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for p in (p for p in PROBLEMS if p.name in SETS):
        data = p.data(folder, 1500 if options.quick else SETS[p.name])
        joblib.dump(data, scratch / "data")
        title = f"{p.name}, {data.X.shape[0]} rows"
        print(f"\n{title}\n\n  {'rule':18}{'iterations':>12}{'seconds':>10}{'us each':>9}"
              f"{'violation':>11}{'objective':>17}  status")  # fmt: skip
        for rule in rules():
            params = p.params if rule == "default" else {**p.params, "rule": rule}
            report = in_process(
                {"data": str(scratch / "data"), "solver": "pairstep", "estimator": p.estimator,
                 "params": params, "dtype": "float64", "budget": options.budget, "tol": TOL,
                 "reference": False, "predict": False},
                scratch,
            )  # fmt: skip
            if report["exceeded"]:
                report["status"] = f"over budget (> {options.budget:g} s)"
            elif report["status"] == "ok" and report["violation"] > 1.5 * TOL:
                report["status"] = f"not reached (violation {report['violation']:.1e})"
            table.setdefault(title, {})[rule] = report
            if report["status"] == "ok":
                each = 1e6 * report["seconds"] / max(report["iterations"], 1)
                line = f"{report['iterations']:12}{report['seconds']:10.3f}{each:9.2f}"
                line += f"{report['violation']:11.1e}{report['objective']:17.9g}"
                print(f"  {rule:18}{line}", flush=True)
            else:
                print(f"  {rule:18}{'':59}  {report['status']}", flush=True)
    save(options.out, table)
    plot(options.out, table)


def save(out: Path, table: dict[str, dict[str, dict[str, Any]]]) -> None:
    names = ["status", "iterations", "seconds", "violation", "objective", "support"]
    with open(out / "rules.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["set", "rule", *names])
        for title, reports in table.items():
            for rule, report in reports.items():
                writer.writerow([title, rule, *(report.get(n, "") for n in names)])


def plot(out: Path, table: dict[str, dict[str, dict[str, Any]]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained", sharey=True)
    names = rules()
    places = np.arange(len(names))
    for axes, field in zip(panels, ("iterations", "seconds"), strict=True):
        for k, (title, reports) in enumerate(table.items()):
            lengths = [reports[r][field] if reports[r]["status"] == "ok" else np.nan for r in names]
            axes.barh(places + 0.27 * (k - 1), lengths, 0.25, label=title)
        axes.set(xlabel=field, xscale="log")
    panels[0].set_yticks(places, names)
    panels[0].invert_yaxis()
    figure.legend(*panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle("SVC(rule=...) to a violation of 1e-3 (no bar: not supported, or not reached)")
    for kind in ("png", "svg"):
        figure.savefig(out / f"rules.{kind}", dpi=150)
    plt.close(figure)
