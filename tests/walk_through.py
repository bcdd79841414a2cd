"""Take the screenshots of docs/walk-through.md: a live audit on the page, the same in a notebook, the summary of a failing job.

``python -m tests.walk_through`` needs Chromium and, for the notebook, Jupyter Notebook (``jupyter`` on the path). All servers
listen on this machine only.
"""

import base64
import io
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from tests.browsing import open_browser
from tests.pages import ROOT
from tests.serve.servers import serving
from tests.serve.test_browser import connected, key_of, running, show, wait_for
from tests.test_action import audit as run_action
from tests.waiting import wait_until

AUDIT = ("audit-dpsgd", "--epsilon", "2", "--true-noise", "0.6", "--epochs", "400", "--seed", "1", "--quiet")
"""DP-SGD on built-in data, with less noise than claimed. About ten models show it, in some seconds of training."""

CELLS = (
    """import lidp
from lidp.data import synthetic_purchases
from lidp.training import Training, training_target

claim = lidp.Claim(epsilon=2, delta=1e-5)
trainer = training_target(synthetic_purchases(2_000, 600), claim, training=Training(epochs=400), true_noise=0.6)""",
    "lidp.audit(trainer.target, claim=claim, design=lidp.CoinFlip(64), trials=256, seed=1)",
)

SUMMARY_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Summary of the job</title>
<style>body {{ font: 16px/1.5 sans-serif; max-width: 860px; margin: 24px auto; padding: 0 24px }}
td, th {{ border: 1px solid #d0d7de; padding: 6px 13px; text-align: left }} table {{ border-collapse: collapse }}
code, pre {{ background: #f0f1f3; padding: 2px 5px; white-space: pre-wrap }}</style>{}"""


def take(browser, file):
    """Write what the browser shows, down to the end of the page, to a PNG file."""
    picture = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
    # Few colours make small files, and pages have few.
    Image.open(io.BytesIO(base64.b64decode(picture["data"]))).convert("RGB").quantize(96).save(file, optimize=True)


def record_live_page(browser, folder):
    """Follow an audit from its start to its refutation on the page of ``lidp serve``."""
    with tempfile.TemporaryDirectory() as place, serving(Path(place)) as server:
        store = Path(place) / "nightly.db"
        with running(
            "audit-dpsgd", "--epsilon", "2", "--trials", "8", "--quiet", "--store", Path(place) / "yesterday.db"
        ) as before:
            before.wait()
        show(browser, server, f"audits/{key_of(server, 'yesterday')}")
        connected(browser)  # the server has loaded what it computes bounds with
        with running(*AUDIT, "--store", store) as process:
            wait_until(lambda: len(server.audits.catalogue().entries) == 2, "the audit is listed")
            show(browser, server, width=1100)
            wait_for(browser, "document.querySelector('.state.running') !== null", "the audit runs")
            take(browser, folder / "list-running.png")
            show(browser, server, f"audits/{key_of(server, 'nightly')}", width=1000)
            wait_for(browser, "parseInt(document.getElementById('progress').textContent) >= 4", "4 trials are done")
            take(browser, folder / "audit-running.png")
            assert process.poll() is None, "the audit ended before its pictures were taken; give it longer trials"
            wait_for(browser, "document.title.startsWith('refuted')", "the claim is refuted")
            process.wait()
        wait_for(browser, "document.getElementById('state').textContent.trim() !== 'running'", "the page knows the end")
        take(browser, folder / "audit-refuted.png")
        show(browser, server, f"audits/{key_of(server, 'nightly')}", width=390, scheme="dark")
        connected(browser)
        take(browser, folder / "audit-refuted-phone.png")


@contextmanager
def jupyter(folder):
    """Yield the address of Jupyter Notebook in a folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = (
        f"--ServerApp.port={port}",
        "--ServerApp.ip=127.0.0.1",
        "--IdentityProvider.token=",
        "--ServerApp.allow_root=True",
    )
    command = ["jupyter", "notebook", "--no-browser", f"--ServerApp.root_dir={folder}", *settings]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "Jupyter answers")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def write_notebook(file):
    """Write a notebook with the audit, for the kernel of this environment."""
    cells = [
        {"cell_type": "code", "execution_count": None, "id": f"cell-{at}", "metadata": {}, "outputs": [], "source": source}
        for at, source in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"display_name": "Python", "language": "python", "name": "lidp-walk-through"}}
    file.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


def _press_shift_enter(browser):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()


def _run_first_cell(browser):
    """Run the first cell, which a notebook ignores while it is being loaded; return whether it runs."""
    browser.execute_script("document.querySelector('.jp-CodeCell .cm-content').focus()")
    _press_shift_enter(browser)
    time.sleep(1)
    return browser.execute_script("return document.querySelector('.jp-InputPrompt').textContent.trim() !== '[ ]:'")


def record_notebook(browser, folder):
    """Run the audit in a notebook: a picture while it runs, and one of its result."""
    subprocess.run([sys.executable, "-m", "ipykernel", "install", "--user", "--name", "lidp-walk-through"], check=True)
    with tempfile.TemporaryDirectory() as place, jupyter(place) as address:
        write_notebook(Path(place) / "audit.ipynb")
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.get(f"{address}/notebooks/audit.ipynb")
        wait_for(browser, "document.querySelectorAll('.jp-CodeCell').length === 2", "the notebook is shown")
        wait_until(lambda: _run_first_cell(browser), "the notebook takes keys")
        _press_shift_enter(browser)
        outputs = "document.querySelector('.jp-CodeCell:nth-of-type(2) .jp-OutputArea, .jp-Notebook')?.innerText"
        wait_for(browser, f"/\\b[1-9]\\d*.256 trials/.test({outputs})", "trials are done")
        take(browser, folder / "notebook-running.png")
        wait_for(browser, f"/refuted: dpsgd/.test({outputs})", "the notebook shows the result")
        take(browser, folder / "notebook-refuted.png")


def record_job_summary(browser, folder):
    """Run the script of the GitHub Action on the audit, and show the summary of its job."""
    from markdown_it import MarkdownIt

    with tempfile.TemporaryDirectory() as place:
        code, summary, _ = run_action(Path(place), " ".join(AUDIT))
        assert code == 1, summary
        page = Path(place) / "summary.html"
        html = MarkdownIt("commonmark", {"html": True}).enable("table").render(summary)
        page.write_text(SUMMARY_PAGE.format(html), encoding="utf-8")
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": []})
        browser.get(page.as_uri())
        take(browser, folder / "job-summary.png")


def main(folder):
    """Take all screenshots; leave the notebook out where there is no Jupyter."""
    folder.mkdir(parents=True, exist_ok=True)
    with open_browser() as browser:
        record_live_page(browser, folder)
        record_job_summary(browser, folder)
        if shutil.which("jupyter") is None:
            sys.exit("jupyter is not on the path: no screenshots of a notebook; pip install notebook")
        record_notebook(browser, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "walk-through")
