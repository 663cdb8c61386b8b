"""`pairstep reproduce --quick`: files, claims, determinism, resumption, and the report page."""

import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("joblib")

from pairstep import __version__
from pairstep.cli import main
from pairstep.paper.claims import TO_LOWEST
from pairstep.paper.experiment import QUICK
from pairstep.paper.reproduce import EXPERIMENTS, reproduce
from pairstep.paper.support_vectors import FILES, data_file

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]

HAS_DATA = any(data_file(name) for name in FILES)
DRAWN = [name for name in EXPERIMENTS if HAS_DATA or name != "support_vectors"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Return the folder that `pairstep reproduce --quick` writes."""
    folder = tmp_path_factory.mktemp("quick")
    assert main(["reproduce", "--quick", "--out", str(folder)]) == 0
    return folder


def csv_files(folder):
    return {p.name: p.read_bytes() for p in folder.glob("*.csv") if "timing" not in p.name}


@pytest.mark.parametrize("name", DRAWN)
def test_every_figure_writes_its_files(quick, name):
    assert (quick / f"{name}.csv").read_text().count("\n") > 10
    for theme in ("", "-dark"):
        assert (quick / f"{name}{theme}.png").read_bytes().startswith(b"\x89PNG")
        assert ET.parse(quick / f"{name}{theme}.svg").getroot().tag.endswith("svg")


@pytest.mark.parametrize("name", DRAWN)
def test_light_and_dark_figures_have_no_color_in_common(quick, name):
    """A color that is hard-coded in a figure would be the same in both."""
    colors = [
        set(re.findall(r"#[0-9a-f]{6}\b", (quick / f"{name}{theme}.svg").read_text().lower()))
        for theme in ("", "-dark")
    ]
    assert colors[0]
    assert colors[1]
    assert not colors[0] & colors[1]


def test_quotations_of_the_paper_are_marked(quick):
    content = json.loads((quick / "claims.json").read_text())
    page = (quick / "report.html").read_text()
    assert page.count("<blockquote>") == sum(bool(c["sentence"]) for c in content["claims"])
    for claim in content["claims"]:
        assert bool(claim["sentence"]) == (claim["kind"] != "beyond")
        assert page.count(f'<tr id="{claim["name"]}">') == 1


def test_claims_report_the_results(quick):
    content = json.loads((quick / "claims.json").read_text())
    assert content["about"]["version"] == __version__
    assert content["about"]["seeds"] == [0, 1]
    assert len({claim["name"] for claim in content["claims"]}) == len(content["claims"])
    for claim in content["claims"]:
        assert claim["readings"][0]["reading"]
        assert claim["found"]
        assert claim["figure"] in EXPERIMENTS
        assert bool(claim["sentence"]) == bool(claim["source"])  # quotations name their place


def test_the_quick_form_gives_no_verdicts(quick):
    """Two seeds at n = 100 decide little, and some verdicts would differ from the full form."""
    content = json.loads((quick / "claims.json").read_text())
    page = (quick / "report.html").read_text()
    for claim in content["claims"]:
        assert claim["verdict"] == "not judged"
        for h in (h for reading in claim["readings"] for h in reading["horizons"]):
            assert h["holds"] is None
            assert h["interval"] is None
    assert "No verdicts: this run has n = 100 and 2 seeds" in page
    assert ">holds<" not in page
    assert ">fails<" not in page


def test_ten_seeds_give_verdicts(tmp_path):
    scale = replace(QUICK, seeds=tuple(range(10)))
    page = reproduce(tmp_path, figures=["figure1"], scale=scale).read_text()
    content = json.loads((tmp_path / "claims.json").read_text())
    found = {claim["name"]: claim for claim in content["claims"]}
    assert found["greedy-beats-random"]["verdict"] == "holds"
    first = [claim["readings"][0] for claim in found.values()]
    assert all(h["interval"] for reading in first for h in reading["horizons"])
    assert TO_LOWEST in page
    assert "All verdicts are for n = 100, not n = 1000" in page
    assert "our assumptions" in page


def test_the_page_has_no_latex(quick):
    page = (quick / "report.html").read_text()
    text = re.sub(r"<style>.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert not re.findall(r"\\\w+|\$|\beq:\w+|\bdeltaLi\b", text)


def kept(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("output.pkl")}


@pytest.fixture
def running(tmp_path):
    """Return the command of a run that takes long, and its process, when parts are finished."""
    command = [sys.executable, "-m", "pairstep", "reproduce", "--quick", "--figure", "figure2"]
    command += ["--out", str(tmp_path), "--seeds", *map(str, range(200))]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while process.poll() is None and len(kept(tmp_path)) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return command, process


@pytest.mark.faults
@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_finished_parts_and_leaves_no_worker(quick, tmp_path, running, number):
    command, process = running
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        os.kill(process.pid, number)
    # Workers hold the pipe too, so its end means that none is left.
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run the same command again" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    before = kept(tmp_path)
    assert len(before) >= 3
    if number == signal.SIGINT:  # the same command again, which takes seconds
        subprocess.run([*command[:-200], "0", "1"], check=True, capture_output=True)
        after = kept(tmp_path)
        assert all(after[path] == stamp for path, stamp in before.items())
        assert csv_files(tmp_path) == {"figure2.csv": csv_files(quick)["figure2.csv"]}


@pytest.mark.faults
@pytest.mark.skipif(shutil.which("pgrep") is None, reason="looks for a worker with pgrep")
def test_a_killed_worker_is_reported_in_one_line(running):
    _, process = running
    workers = subprocess.run(
        ["pgrep", "-P", str(process.pid), "-f", "LokyProcess"], capture_output=True, text=True
    ).stdout.split()
    os.kill(int(workers[0]), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "\npairstep: a worker process was killed" in f"\n{errors}", errors
    assert "Traceback" not in errors


def test_missing_data_are_reported(tmp_path, monkeypatch):
    monkeypatch.delenv("PAIRSTEP_DATA", raising=False)
    page = reproduce(tmp_path, figures=["support_vectors"], scale=QUICK).read_text()
    (claim,) = json.loads((tmp_path / "claims.json").read_text())["claims"]
    assert claim["verdict"] == "not judged"
    assert "set PAIRSTEP_DATA" in claim["found"]
    assert "Not measured" in page
    assert not list(tmp_path.glob("*.csv"))


def test_the_page_stands_alone(quick):
    page = (quick / "report.html").read_text()
    assert "pairstep reproduce --quick --out" in page
    assert f"<dd>{__version__}</dd>" in page
    assert page.index("<table") < page.index("<figure")
    loaded = re.findall(r'\b(?:src|srcset|data)="([^"]*)"|url\(([^)]*)\)|@import', page)
    assert loaded
    assert all(link[0].startswith("data:") for link in loaded)
    assert "<script" not in page


PROBE = """<script>
const errors = [];
addEventListener("error", e => errors.push(String(e.message || e.target.src)), true);
addEventListener("load", () => {
  const images = [...document.images];
  document.title = JSON.stringify({
    figures: [...document.querySelectorAll("section[id] figure")].map(f => [
      f.parentNode.id, f.querySelectorAll("img").length]),
    broken: images.filter(i => !i.complete || !i.naturalWidth).length,
    verdicts: document.querySelectorAll(".verdict").length,
    overflow: document.documentElement.scrollWidth - innerWidth,
    errors});
});
</script>"""


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_opens_in_a_browser(quick, tmp_path, width):
    browser = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if browser is None:
        pytest.skip("no Chromium on the PATH")
    page = tmp_path / "page.html"
    text = (quick / "report.html").read_text()
    page.write_text(text.replace("<head>", "<head>" + PROBE))
    run = subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900",
            "--enable-logging=stderr", "--dump-dom", page.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    title = re.search(r"<title>(.*?)</title>", run.stdout, re.DOTALL)
    seen = json.loads(html.unescape(title[1]))
    assert "CONSOLE" not in run.stderr
    assert seen["errors"] == []
    assert seen["broken"] == 0
    assert seen["overflow"] <= 0
    assert seen["verdicts"] == len(json.loads((quick / "claims.json").read_text())["claims"])
    assert [name for name, *_ in seen["figures"]] == list(EXPERIMENTS)
    assert {name for name, images in seen["figures"] if images} == set(DRAWN)
