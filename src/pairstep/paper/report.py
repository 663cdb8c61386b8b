"""The report: one HTML file with the claims and all figures embedded, from report.html."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from ..extras import needed
from .claims import MIN_SEEDS, Kind, Verdict, horizon_name
from .drawing import THEMES
from .experiment import Experiment, Scale
from .rules import RULES

pd = needed("pandas", by="reproduce")

VERDICTS = (
    "The paper does not state the number of iterations, the starting point, or the step of its "
    "second experiment. The horizons, the start at x = 0 and the step 1/L2 (1/L1 for gs-1) are our "
    "assumptions. A claim holds at a horizon if the whole interval satisfies it, fails if no part "
    "of it does, and is undecided otherwise. Intervals have 95% confidence: Student's t over the "
    "seeds, of logarithms for ratios; Wilson's for fractions of seeds; chi-square for standard "
    "deviations. An advantage of less than 1% is a tie, and a tie is not an advantage."
)
GROUPS = {
    Kind.OBSERVATION: "Observations of the paper",
    Kind.THEOREM: "Theorems of the paper",
    Kind.CITED: "Results that the paper cites",
    Kind.BEYOND: "Beyond the paper",
}
# The style of each verdict, for claims and for single horizons.
MARKS = {
    Verdict.HOLDS: "yes",
    Verdict.DEPENDS: "some",
    Verdict.FAILS: "no",
    Verdict.UNDECIDED: "open",
    Verdict.NOT_JUDGED: "open",
}
OF_HORIZON = {True: Verdict.HOLDS, False: Verdict.FAILS, None: Verdict.UNDECIDED}
RULE_NAMES = re.compile("|".join(sorted(RULES, key=len, reverse=True)))
# LaTeX commands in quoted sentences, and how they are written.
SYMBOLS = {
    "subseteq": "⊆",
    "dots": "…",
    "R^": "R^",
    "leq": "≤",
    "mu": " mu",
    "alpha": "alpha",
    "delta": "delta",
    "E ": "E",
    "%": "%",
}
# The numbers of the equations that quoted sentences refer to, as in the PDF.
EQUATIONS = {
    "eq:dk": 2, "eq:update2": 3, "eq:ik": 4, "eq:L2-smooth": 5, "eq:proxL1": 6, "eq:random": 8,
    "eq:deltaBound": 10, "eq:GS-q": 11, "eq:GS-1": 12, "eq:Dbound": 13, "eq:deltaLi": 14,
    "eq:GSL": 15, "eq:GSL-1": 16, "eq:ratio": 17,
}  # fmt: skip


def page(
    about: Mapping[str, Any],
    claims: Sequence[Mapping[str, Any]],
    experiments: Iterable[Experiment],
    folder: Path,
) -> str:
    """Return the page, with the figures in a folder."""
    n, seeds = about["scale"]["n"], about["seeds"]
    judged = (
        f"{VERDICTS} {len(seeds)} seeds."
        + ("" if n == Scale.n else f" All verdicts are for n = {n}, not n = {Scale.n}.")
        if len(seeds) >= MIN_SEEDS
        else f"No verdicts: this run has n = {n} and {len(seeds)} seeds, and a verdict needs "
        f"{MIN_SEEDS} seeds. The values are shown without intervals."
    )
    facts = {**about, "seeds": ", ".join(map(str, seeds))}
    return Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8")).substitute(
        judged=words(judged),
        claims="\n".join(
            f'<tr><th colspan="2">{name}</th></tr>'
            + "\n".join(claim_row(claim) for claim in claims if claim["kind"] == kind)
            for kind, name in GROUPS.items()
        ),
        figures="\n".join(section(e, folder, claims) for e in experiments),
        about="\n".join(f"<dt>{key}</dt><dd>{html.escape(str(facts[key]))}</dd>" for key in facts),
    )


def claim_row(claim: Mapping[str, Any]) -> str:
    """Return one claim: its verdict, and on request its sentence and what was measured."""
    ours, *others = claim["readings"]
    marks = " ".join(
        f'<span class="{MARKS[OF_HORIZON[h["holds"]]]}">{horizon_name(h["iterations"])}</span>'
        for h in ours["horizons"]
    )
    sentence = words(from_latex(claim["sentence"]))
    quotation = f"<blockquote>“{sentence}” <cite>{html.escape(claim['source'])}</cite></blockquote>"
    more = "".join(
        f"<p><b>Another reading: {other['verdict']}</b></p>{measurements(other)}"
        for other in others
    )
    return f"""<tr id="{claim["name"]}">
<td class="verdict {MARKS[claim["verdict"]]}">{claim["verdict"]}</td>
<td><details><summary>{words(claim["statement"])} <small>{marks}</small></summary>
{quotation if sentence else ""}{measurements(ours)}
<p>{words(claim["found"])} <a href="#{claim["figure"]}">Figure</a></p>{more}</details></td></tr>"""


def measurements(reading: Mapping[str, Any]) -> str:
    """Return a reading with the table of its horizons."""
    rows = [
        {
            "Horizon": horizon_name(h["iterations"]),
            "Value": f"{h['value']:.4g}",
            "95% interval": " to ".join(f"{x:.4g}" for x in h["interval"] or ()),
            "Verdict": "" if h["holds"] is h["interval"] is None else OF_HORIZON[h["holds"]],
        }
        for h in reading["horizons"]
    ]
    table = pd.DataFrame(rows).to_html(index=False, border=0, classes="horizons")
    return f"<p>{words(reading['reading'])}</p>{table}<p>{words(reading['value'])}.</p>"


def section(e: Experiment, folder: Path, claims: Sequence[Mapping[str, Any]]) -> str:
    """Return one figure in both themes, with its caption and its files."""
    paths = {theme: folder / f"{e.name}{ending}.svg" for theme, ending in THEMES.items()}
    found = [claim["found"] for claim in claims if claim["figure"] == e.name]
    picture = f"<p>{words(' '.join(found) or 'Not measured.')}</p>"
    if paths["light"].exists():
        encoded = {
            theme: f"data:image/svg+xml;base64,{base64.b64encode(path.read_bytes()).decode()}"
            for theme, path in paths.items()
        }
        picture = (
            f'<picture><source media="(prefers-color-scheme: dark)" srcset="{encoded["dark"]}">'
            f'<img src="{encoded["light"]}" alt="{html.escape(e.title)}"></picture>'
        )
    files = [f"{e.name}.{kind}" for kind in ("csv", "svg", "png")]
    links = ", ".join(f'<a href="{file}">{file}</a>' for file in files if (folder / file).exists())
    return f"""<section id="{e.name}"><h2>{words(e.title)}</h2><figure>{picture}
<figcaption>{words(e.caption)} {links}</figcaption></figure></section>"""


def words(text: str) -> str:
    """Return a text as HTML, with its mathematics typeset: L_i, mu_2, n^2, x^{k+1}."""
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"\bmu_(\w)\b", r"<i>μ</i><sub>\1</sub>", escaped)
    escaped = re.sub(r"\b([Laxgzij])_([ijk]|\d)\b", r"<i>\1</i><sub>\2</sub>", escaped)
    escaped = re.sub(r"\bL([12])\b", r"<i>L</i><sub>\1</sub>", escaped)
    escaped = RULE_NAMES.sub(lambda name: name[0].replace("-", "\N{NON-BREAKING HYPHEN}"), escaped)
    return re.sub(r"\^(?:\{(.*?)\}|(\w))", r"<sup>\1\2</sup>", escaped)


def from_latex(sentence: str) -> str:
    """Return a sentence of the paper as plain text, with the numbers of its equations."""
    text = re.sub(r"~?\\eqref\{(.*?)\}", lambda m: f" ({EQUATIONS[m[1]]})", sentence)
    text = re.sub(r"~?\\cite[pt]?(\[.*?\])*\{.*?\}", "", text)
    text = re.sub(r"\\(begin|end|label)\{.*?\}|\\[\[\]]|\\left|\\right|\$", " ", text)
    text = re.sub(r"\\frac\{([^{}]*)\}\{(\w+)\}", r"\1/\2", text)
    text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/(\2)", text)
    for name, symbol in SYMBOLS.items():
        text = text.replace(f"\\{name}", symbol)
    text = re.sub(r"L_([12])", r"L\1", text.replace("~", " "))
    text = re.sub(r"([xf])\^\*", r"\1*", text)
    text = re.sub(r"(\^\w)(?=[A-Za-z])", r"\1 ", text)
    return re.sub(r"\s+([,.:;)])", r"\1", " ".join(text.split())).replace("( ", "(")
