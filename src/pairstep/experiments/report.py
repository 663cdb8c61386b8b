"""The report: one HTML file with the claims and all figures embedded."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..rules import RULES
from .experiment import Experiment

OBSERVED, THEOREMS = "Observations of the paper", "Theorems of the paper"
BEYOND = "Beyond the paper"
GROUPS = OBSERVED, THEOREMS, BEYOND
RULE_NAMES = re.compile("|".join(sorted(RULES, key=len, reverse=True)))
VERDICTS = {True: ("yes", "holds"), False: ("no", "does not hold"), None: ("open", "not measured")}


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
        summary=summary(claims),
        groups="\n".join(
            group(name, [claim for claim in claims if group_of(claim) == name], titles)
            for name in GROUPS
        ),
        figures="\n".join(section(e, drawn.get(e.name, ()), claims) for e in experiments),
        about=provenance(about),
        made=f"<code>{html.escape(about['command'])}</code>, "
        f"seeds {listed(about['seeds'])}, "
        f"n = {about['scale']['n']}, pairstep {html.escape(about['version'])}",
    )


def group_of(claim: Mapping[str, Any]) -> str:
    """Return the group of a claim."""
    if not claim["quote"]:
        return BEYOND
    return THEOREMS if claim["name"].startswith("theorem") else OBSERVED


def summary(claims: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence with the numbers of claims that hold."""
    sentences = []
    for name in GROUPS:
        verdicts = [claim["holds"] for claim in claims if group_of(claim) == name]
        measured = [holds for holds in verdicts if holds is not None]
        if verdicts:
            sentence = f"{name}: {sum(measured)} of {len(measured)} hold"
            missing = len(verdicts) - len(measured)
            sentences.append(sentence + (f", {missing} not measured" if missing else ""))
    return ". ".join(sentences)


def group(name: str, claims: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> str:
    """Return the claims of one group below their heading."""
    if not claims:
        return ""
    rows = "\n".join(row(claim, titles) for claim in claims)
    heading = f'<tr class="group"><th colspan="3" scope="rowgroup">{name}</th></tr>'
    return f"<tbody>{heading}\n{rows}</tbody>"


def row(claim: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """Return the table row of one claim: its verdict, its statement, and what was measured."""
    mark, verdict = VERDICTS[claim["holds"]]
    figure = claim["figure"]
    where = html.escape(titles.get(figure, figure))
    link = f'<a href="#{figure}">{where}</a>' if figure in titles else where
    return f"""<tr id="{claim["name"]}">
<td class="verdict {mark}"><span>{verdict}</span></td>
<td><p class="statement">{words(claim["statement"])}</p>
{quotation(claim)}</td>
<td>{failed(claim)}<p>{words(claim["found"])} <span class="source">{link}</span></p>
<details><summary>How it was measured</summary><p>{words(claim["how"])}</p>
{numbers(claim["numbers"])}</details></td>
</tr>"""


def quotation(claim: Mapping[str, Any]) -> str:
    """Return the sentence of the paper, if the claim is from it."""
    if not claim["quote"]:
        return ""
    return (
        f"<blockquote>“{words(claim['quote'])}” "
        f"<cite>{html.escape(claim['where'])}</cite></blockquote>"
    )


def failed(claim: Mapping[str, Any]) -> str:
    """Return why a claim does not hold; empty if it does."""
    return f'<p class="why">{words(claim["why"])}</p>\n' if claim["why"] else ""


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
    escaped = re.sub(r"\b([Laxgz])_([ij]|\d)\b", r"<i>\1</i><sub>\2</sub>", escaped)
    escaped = re.sub(r"\bL([12])\b", r"<i>L</i><sub>\1</sub>", escaped)
    escaped = RULE_NAMES.sub(lambda name: name[0].replace("-", "\N{NON-BREAKING HYPHEN}"), escaped)
    return re.sub(r"\^(?:\{(.*?)\}|(\w))", r"<sup>\1\2</sup>", escaped)


def short(title: str) -> str:
    """Return a title up to its first period."""
    return title.split(". ")[0]


STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #5b6470; --line: #e3e3df;
  --paper: #fcfcfa; --card: #ffffff; --link: #0067a5; --yes: #00694d; --no: #a63d00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e0; --soft: #a0a6ad; --line: #33373c; --paper: #16181b; --card: #1d2024;
    --link: #7cb8e4; --yes: #4cc39b; --no: #f0915a; } }
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
header { max-width: 46rem; margin-bottom: 2.5rem; } header p { color: var(--soft); }
header .summary { color: var(--ink); font-size: 1.15rem; margin-bottom: .2rem;
  text-wrap: balance; }
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
.verdict { white-space: nowrap; width: 8.5rem; }
.verdict span::before { display: inline-block; width: 1.3em; font-weight: 700; }
.yes { color: var(--yes); } .yes span::before { content: "✓"; }
.no { color: var(--no); } .no span::before { content: "✗"; }
.open { color: var(--soft); } .open span::before { content: "–"; }
blockquote { margin: .2rem 0 0; padding-left: .8rem; border-left: 2px solid var(--line);
  color: var(--soft); font-size: .92rem; } blockquote cite { font-style: normal; }
blockquote cite::before { content: "— "; } .why { color: var(--no); }
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
  .claims thead { display: none; }
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
<p class="summary">{summary}.</p>
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
