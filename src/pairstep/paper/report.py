"""The report: one HTML file with the claims and all figures embedded."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..rules import RULES
from .claims import ASSUMPTIONS, INTERVALS, MIN_SEEDS, RULE_OF_VERDICTS, TIES, Kind, Verdict
from .experiment import Experiment, Scale

GROUPS = {
    Kind.OBSERVATION: "Observations of the paper",
    Kind.THEOREM: "Theorems of the paper",
    Kind.CITED: "Results that the paper cites",
    Kind.BEYOND: "Beyond the paper",
}
RULE_NAMES = re.compile("|".join(sorted(RULES, key=len, reverse=True)))
# The style of each verdict, for claims and for single horizons.
MARKS = {
    Verdict.HOLDS: "yes",
    Verdict.DEPENDS: "some",
    Verdict.FAILS: "no",
    Verdict.UNDECIDED: "open",
    Verdict.NOT_JUDGED: "open",
}
OF_HORIZON = {True: ("yes", "holds"), False: ("no", "fails"), None: ("open", "undecided")}
# Rows of the first table, for the claims of the paper.
ROWS = {
    Verdict.HOLDS: "Holds",
    Verdict.DEPENDS: "Depends on the horizon",
    Verdict.FAILS: "Fails",
    Verdict.UNDECIDED: "Undecided",
    Verdict.NOT_JUDGED: "Not judged",
}
# LaTeX commands in quoted sentences, and how they are written.
SYMBOLS = (
    ("subseteq", "⊆"),
    ("dots", "…"),
    ("R^", "R^"),
    ("leq", "≤"),
    ("mu", " mu"),
    ("alpha", "alpha"),
    ("delta", "delta"),
    ("E ", "E"),
    ("%", "%"),
)
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
    drawn: Mapping[str, Sequence[Mapping[str, str]]],
) -> str:
    """Return the page."""
    experiments = list(experiments)
    titles = {e.name: short(e.title) for e in experiments}
    return PAGE.format(
        style=STYLE,
        overview=overview(claims),
        judged=words(how_judged(about)),
        groups="\n".join(
            group(name, [claim for claim in claims if claim["kind"] == kind], titles)
            for kind, name in GROUPS.items()
        ),
        figures="\n".join(section(e, drawn.get(e.name, ()), claims) for e in experiments),
        about=provenance(about),
        made=f"<code>{html.escape(about['command'])}</code>, {seeds(about)}, "
        f"n = {about['scale']['n']}, pairstep {html.escape(about['version'])}",
    )


def seeds(about: Mapping[str, Any]) -> str:
    """Return the seeds as text."""
    given = about["seeds"]
    if len(given) > 2 and given == list(range(given[0], given[-1] + 1)):
        return f"seeds {given[0]} to {given[-1]}"
    return f"seeds {listed(given)}"


def how_judged(about: Mapping[str, Any]) -> str:
    """Say how the verdicts were made, or why there are none."""
    n, count = about["scale"]["n"], len(about["seeds"])
    if count < MIN_SEEDS:
        return (
            f"No verdicts: this run has n = {n} and {count} seeds, and a verdict needs {MIN_SEEDS} "
            "seeds. The values are shown without intervals."
        )
    size = "" if n == Scale.n else f" All verdicts are for n = {n}, not n = {Scale.n}."
    return f"{ASSUMPTIONS}. {count} seeds. {RULE_OF_VERDICTS}. {INTERVALS}. {TIES}.{size}"


def overview(claims: Sequence[Mapping[str, Any]]) -> str:
    """Return the first table: the claims of the paper by verdict, and those beyond it."""
    paper = [claim for claim in claims if claim["kind"] != Kind.BEYOND]
    rows = []
    for verdict, name in ROWS.items():
        with_verdict = [claim for claim in paper if claim["verdict"] == verdict]
        if with_verdict:
            rows.append(overview_row(MARKS[verdict], name, with_verdict, mixed=False))
        elif verdict is Verdict.FAILS and any(c["verdict"] == Verdict.HOLDS for c in paper):
            rows.append(overview_row(MARKS[verdict], name, [], mixed=False))
    beyond = [claim for claim in claims if claim["kind"] == Kind.BEYOND]
    if beyond:
        rows.append(overview_row("", "Beyond the paper", beyond, mixed=True))
    return "\n".join(rows)


def overview_row(mark: str, name: str, claims: Sequence[Mapping[str, Any]], mixed: bool) -> str:
    """Return a row of the first table: its claims, with where they hold if that depends."""
    items = []
    for claim in claims:
        own = f' class="{MARKS[Verdict(claim["verdict"])]}"' if mixed else ""
        statement = words(claim["statement"].rstrip("."))
        where = horizons_in_short(claim) if claim["verdict"] == Verdict.DEPENDS else ""
        cited = " (cited)" if claim["kind"] == Kind.CITED else ""
        items.append(f'<li{own}><a href="#{claim["name"]}">{statement}</a>{cited}{where}</li>')
    if not items:
        items.append("<li>No claim of the paper fails at every horizon</li>")
    count = f" <small>{len(claims)}</small>"
    return (
        f'<tr><th scope="row" class="{mark}">{name}{count}</th>'
        f"<td><ul>{''.join(items)}</ul></td></tr>"
    )


def horizons_in_short(claim: Mapping[str, Any]) -> str:
    """Return a mark for each horizon of a claim."""
    marks = [
        f'<span class="{OF_HORIZON[h["holds"]][0]}">{html.escape(horizon_name(h))}</span>'
        for h in claim["horizons"]
    ]
    return f' <small class="marks">{" ".join(marks)}</small>'


def horizon_name(horizon: Mapping[str, Any]) -> str:
    """Return a horizon as text."""
    iterations = horizon["iterations"]
    if iterations is None:
        return ""
    return iterations if isinstance(iterations, str) else f"{iterations:,}"


def group(name: str, claims: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> str:
    """Return the claims of one group below their heading."""
    if not claims:
        return ""
    rows = "\n".join(row(claim, titles) for claim in claims)
    heading = f'<tr class="group"><th colspan="3" scope="rowgroup">{name}</th></tr>'
    return f"<tbody>{heading}\n{rows}</tbody>"


def row(claim: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Return the table row of one claim: its verdict, its sentence, and what was measured."""
    verdict = Verdict(claim["verdict"])
    figure = claim["figure"]
    where = html.escape(titles.get(figure, figure))
    link = f'<a href="#{figure}">{where}</a>' if figure in titles else where
    heading = "Our reading" if claim["sentence"] else "Measured"
    return f"""<tr id="{claim["name"]}">
<td class="verdict {MARKS[verdict]}"><span>{verdict}</span></td>
<td><p class="statement">{words(claim["statement"])}</p>
{quotation(claim)}
<p class="reading">{heading}: {words(claim["reading"])}</p></td>
<td>{results(claim["value"], claim["horizons"], claim["summary"])}
<p>{words(claim["found"])} <span class="source">{link}</span></p>
{"".join(map(other_reading, claim["other_readings"]))}
<details><summary>More numbers</summary>{numbers(claim["numbers"])}</details></td>
</tr>"""


def results(value: str, horizons: Sequence[Mapping[str, Any]], summary: str) -> str:
    """Return the measurements at each horizon as a table, with a sentence."""
    if not horizons:
        return ""
    with_horizon = any(h["iterations"] is not None for h in horizons)
    head = "<th>Iterations</th>" if with_horizon else ""
    rows = "".join(
        f"<tr>{f'<th>{html.escape(horizon_name(h))}</th>' if with_horizon else ''}"
        f"<td>{listed(h['value'])}</td><td>{interval(h)}</td>{cell(h)}</tr>"
        for h in horizons
    )
    return (
        f'<p class="summary">{words(summary)}</p><p class="value">{words(value)}:</p>'
        f'<table class="horizons">'
        f"<tr>{head}<th>Value</th><th>95% interval</th><th></th></tr>{rows}</table>"
    )


def interval(horizon: Mapping[str, Any]) -> str:
    """Return an interval as text."""
    return " to ".join(map(listed, horizon["interval"])) if horizon["interval"] else "–"


def cell(horizon: Mapping[str, Any]) -> str:
    """Return the verdict of one horizon as a table cell."""
    if horizon["holds"] is None and not horizon["interval"]:
        return "<td></td>"
    mark, verdict = OF_HORIZON[horizon["holds"]]
    return f'<td class="mark {mark}">{verdict}</td>'


def other_reading(reading: Mapping[str, Any]) -> str:
    """Return another reading and its measurements."""
    return (
        f"<details><summary>Another reading: {reading['verdict']}</summary>"
        f"<p>{words(reading['reading'])}.</p>"
        f"{results(reading['value'], reading['horizons'], reading['summary'])}</details>"
    )


def quotation(claim: Mapping[str, Any]) -> str:
    """Return the sentence of the paper, if the claim is from it."""
    if not claim["sentence"]:
        return ""
    return (
        f"<blockquote>“{words(from_latex(claim['sentence']))}” "
        f"<cite>{html.escape(claim['source'])}</cite></blockquote>"
    )


def from_latex(sentence: str) -> str:
    """Return a sentence of the paper as plain text, with the numbers of its equations."""
    text = re.sub(r"~?\\eqref\{(.*?)\}", lambda m: f" ({EQUATIONS[m[1]]})", sentence)
    text = re.sub(r"~?\\cite[pt]?(\[.*?\])*\{.*?\}", "", text)
    text = re.sub(r"\\(begin|end|label)\{.*?\}|\\[\[\]]|\\left|\\right|\$", " ", text)
    text = re.sub(r"\\(?:textit|text)\{(.*?)\}", r"\1", text)
    text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", fraction, text)
    for name, symbol in SYMBOLS:
        text = text.replace(f"\\{name}", symbol)
    text = re.sub(r"L_([12])", r"L\1", text.replace("~", " "))
    text = re.sub(r"([xf])\^\*", r"\1*", text)
    text = re.sub(r"(\^\w)(?=[A-Za-z])", r"\1 ", text)
    return re.sub(r"\s+([,.:;)])", r"\1", " ".join(text.split())).replace("( ", "(")


def fraction(match: re.Match[str]) -> str:
    """Return a LaTeX fraction on one line."""
    over, under = match[1], match[2]
    return f"{over}/{under}" if re.fullmatch(r"\w+", under) else f"{over}/({under})"


def numbers(value: Mapping[str, Any]) -> str:
    """Return the numbers of a claim as HTML; nested dicts become tables."""
    lines = []
    for name, of in value.items():
        if isinstance(of, Mapping):
            rows = "".join(
                f"<tr><th>{words(key)}</th><td>{listed(x)}</td></tr>" for key, x in of.items()
            )
            lines.append(f"<p>{words(name)}:</p><table>{rows}</table>")
        else:
            lines.append(f"<p>{words(name)}: {listed(of)}</p>")
    return f'<div class="numbers">{"".join(lines)}</div>'


def listed(value: Any) -> str:
    """Return a number or several as text."""
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{words(key)} {listed(x)}" for key, x in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(listed(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))


def section(
    e: Experiment, panels: Sequence[Mapping[str, str]], claims: Sequence[Mapping[str, Any]]
) -> str:
    """Return one figure: its panels, which are stacked on narrow screens, and its caption."""
    images = "\n".join(
        '<picture><source media="(prefers-color-scheme: dark)" '
        f'srcset="{embedded(svg["dark"])}"><img src="{embedded(svg["light"])}" '
        f'alt="{html.escape(f"{e.title}, panel {k}")}" width="430" height="330"></picture>'
        for k, svg in enumerate(panels, 1)
    )
    if not panels:
        found = [claim["found"] for claim in claims if claim["figure"] == e.name]
        images = f'<p class="absent">{words(" ".join(found) or "Not measured.")}</p>'
    kinds = ("csv", "svg", "png") if panels else ()
    files = ", ".join(f'<a href="{e.name}.{kind}">{kind.upper()}</a>' for kind in kinds)
    return f"""<section id="{e.name}">
<h2>{words(e.title)}</h2>
<figure data-panels="{len(panels)}">
<div class="panels columns-{min(e.columns, len(panels) or 1)}">
{images}
</div>
<figcaption>{words(e.caption)} <span class="files">{files}</span></figcaption>
</figure>
</section>"""


def embedded(svg: str) -> str:
    """Return a data URL of an image."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def provenance(about: Mapping[str, Any]) -> str:
    """Return a list of facts about the run."""
    scale = about["scale"]
    facts = {
        "Command": f"<code>{html.escape(about['command'])}</code>",
        "Version": f"pairstep {html.escape(about['version'])}",
        "Seeds": listed(about["seeds"]),
        "Assumptions": words(f"{ASSUMPTIONS}."),
        "Size": f"n = {scale['n']} in the synthetic problems, up to {scale['sizes'][-1]:,} for the "
        f"time of one choice, at most {scale['rows']} rows of each data set",
        "Computer": html.escape(about["machine"]),
        "Finished": f"{about['finished']}, after {about['seconds']:g} seconds "
        "(parts that were finished in an earlier run are not measured again)",
    }
    return "\n".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts.items())


def words(text: str) -> str:
    """Return a text as HTML, with its mathematics typeset: L_i, mu_2, n^2, x^{k+1}."""
    escaped = html.escape(text, quote=False)
    escaped = re.sub(r"\bmu_(\w)\b", r"<i>μ</i><sub>\1</sub>", escaped)
    escaped = re.sub(r"\b([Laxgzij])_([ijk]|\d)\b", r"<i>\1</i><sub>\2</sub>", escaped)
    escaped = re.sub(r"\bL([12])\b", r"<i>L</i><sub>\1</sub>", escaped)
    escaped = RULE_NAMES.sub(lambda name: name[0].replace("-", "\N{NON-BREAKING HYPHEN}"), escaped)
    return re.sub(r"\^(?:\{(.*?)\}|(\w))", r"<sup>\1\2</sup>", escaped)


def short(title: str) -> str:
    """Return a title up to its first period."""
    return title.split(". ")[0]


STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #5b6470; --line: #e3e3df;
  --paper: #fcfcfa; --card: #ffffff; --link: #0067a5; --yes: #00694d; --no: #a63d00;
  --some: #7a5600; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e0; --soft: #a0a6ad; --line: #33373c; --paper: #16181b; --card: #1d2024;
    --link: #7cb8e4; --yes: #4cc39b; --no: #f0915a; --some: #d9ae45; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 17px/1.55 Charter, "Bitstream Charter", "Iowan Old Style", Georgia, Cambria, serif; }
main { max-width: 1180px; margin: 0 auto; padding: 56px 24px 72px; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; font-weight: 600; text-wrap: balance; }
h2 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 1rem; font-weight: 600; }
p { margin: 0 0 .4rem; } a { color: var(--link); text-underline-offset: 2px; }
code { font: .88em ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
sub, sup { line-height: 0; font-size: .72em; }
header { margin-bottom: 2.5rem; } header p { color: var(--soft); font-size: .92rem; }
.overview { width: 100%; margin: .6rem 0 1rem; font-size: .88rem; line-height: 1.4; }
.overview th { width: 11rem; font-size: 1rem; } .overview small { color: var(--soft); }
.overview th, .overview td { padding: .55rem 1rem .55rem 0; }
.overview th::before { display: inline-block; width: 1.2em; }
.overview th.yes::before, .overview li.yes::before, .marks .yes::before { content: "✓ "; }
.overview th.no::before, .overview li.no::before, .marks .no::before { content: "✗ "; }
.overview th.some::before, .overview li.some::before { content: "◐ "; }
.overview th.open::before, .overview li.open::before, .marks .open::before { content: "? "; }
.overview ul { margin: 0; padding: 0; list-style: none; columns: 2; column-gap: 2rem; }
.overview li { break-inside: avoid; } .overview li a { color: var(--ink); }
.overview li a { text-decoration-color: var(--line); }
.marks span { white-space: nowrap; margin-right: .35em; }
.overview .yes, .marks .yes { color: var(--yes); } .overview .no, .marks .no { color: var(--no); }
.overview .some { color: var(--some); } .overview .open, .marks .open { color: var(--soft); }
table { border-collapse: collapse; } .claims { width: 100%; margin-bottom: 4rem; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .9rem; }
th, td { padding: .85rem 1.25rem .85rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
.claims > tbody > tr > td:nth-child(2) { width: 38%; } td p:last-child { margin-bottom: 0; }
.group th { color: var(--ink); font-size: 1.1rem; padding-top: 2.2rem; }
.numbers { font-size: .92em; line-height: 1.4; overflow-x: auto; }
.numbers p { margin: .4rem 0 0; } .numbers p::first-letter { text-transform: uppercase; }
.numbers th, .numbers td { padding: 0 1rem 0 0; border: 0;
  font-size: inherit; font-weight: 400; white-space: nowrap; color: inherit; }
.verdict { width: 8.5rem; }
.verdict span::before, .mark::before { display: inline-block; width: 1.3em; font-weight: 700; }
.yes { color: var(--yes); } .verdict.yes span::before, .mark.yes::before { content: "✓"; }
.no { color: var(--no); } .verdict.no span::before, .mark.no::before { content: "✗"; }
.some { color: var(--some); } .verdict.some span::before { content: "◐"; }
.horizons { margin: .3rem 0 .6rem; font-size: .92rem; line-height: 1.35; }
.value { color: var(--soft); font-size: .92rem; line-height: 1.35; }
.horizons th, .horizons td { padding: .1rem 1rem .1rem 0; border: 0; white-space: nowrap;
  font-size: inherit; font-weight: 400; }
.horizons td:nth-last-child(1) { padding-right: 0; } .reading { color: var(--soft);
  font-size: .92rem; margin-top: .5rem; } .summary { font-weight: 600; }
.open { color: var(--soft); } .verdict.open span::before, .mark.open::before { content: "?"; }
blockquote { margin: .2rem 0 0; padding-left: .8rem; border-left: 2px solid var(--line);
  color: var(--soft); font-size: .92rem; } blockquote cite { font-style: normal; }
blockquote cite::before { content: "— "; }
.source, details, figcaption, dl, .absent { color: var(--soft); font-size: .92rem; }
summary { cursor: pointer; } details p { margin-top: .3rem; }
section { margin: 0 0 3.5rem; scroll-margin-top: 1.5rem; } figure { margin: 0; }
.panels { display: grid; gap: 8px; background: var(--card); border: 1px solid var(--line);
  border-radius: 10px; padding: 10px; margin-bottom: .8rem; }
.columns-1 { grid-template-columns: minmax(0, 560px); justify-content: center; }
.columns-2 { grid-template-columns: repeat(2, minmax(0, 1fr)); }
.columns-3 { grid-template-columns: repeat(3, minmax(0, 1fr)); }
.panels img { width: 100%; height: auto; display: block; }
figcaption { max-width: 52rem; } .files { white-space: nowrap; }
dl { display: grid; grid-template-columns: 7rem 1fr; gap: .3rem 1rem; margin: 0; }
dd { margin: 0; color: var(--ink); }
@media (max-width: 900px) { .columns-3 { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@media (max-width: 640px) {
  body { font-size: 16px; } main { padding: 28px 16px 48px; } h1 { font-size: 1.6rem; }
  .panels { grid-template-columns: minmax(0, 1fr); padding: 4px; }
  .overview, .overview tbody, .overview tr, .overview th, .overview td { display: block; }
  .overview th { width: auto; border: 0; padding-bottom: 0; } .overview ul { columns: 1; }
  .claims thead { display: none; } .horizons { overflow-x: auto; }
  .claims, .claims > tbody, .claims > tbody > tr, .claims > tbody > tr > *,
  .claims > tbody > tr > td:nth-child(2) { display: block; width: auto; }
  .claims > tbody > tr { padding: 1rem 0; border-bottom: 1px solid var(--line); }
  .claims > tbody > tr > * { border: 0; padding: .15rem 0; } .group th { padding-top: 1rem; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; } }
@media print { body { font-size: 11px; } figure, tr { break-inside: avoid; } }
"""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Greedy two-coordinate updates, reproduced</title>
<style>{style}</style>
</head>
<body>
<main>
<header>
<h1>Greedy two-coordinate updates, reproduced</h1>
<table class="overview"><tbody>
{overview}
</tbody></table>
<p>{judged}</p>
<p>The experiments of Ramesh, Mishkin, Schmidt, Zhou, Lavington and She, <cite>Analyzing and
Improving Greedy 2-Coordinate Updates for Equality-Constrained Optimization via Steepest Descent in
the 1-Norm</cite> (2023), and a few more.</p>
<p>Made by {made}.</p>
</header>
<table class="claims">
<thead><tr><th scope="col">Verdict</th><th scope="col">Claim</th><th scope="col">Found</th></tr>
</thead>
{groups}
</table>
{figures}
<section id="about">
<h2>How this page was made</h2>
<dl>
{about}
</dl>
</section>
</main>
</body>
</html>
"""
