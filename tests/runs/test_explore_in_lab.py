"""An experiment of a user's own, explored in JupyterLab in a browser: one line, a slider, the figure that follows."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from headless import missing

EXPERIMENT = '''
from dataclasses import dataclass

import numpy as np
from flbook.domains import Natural, Positive, Probability
from flbook.runs import Experiment, Grid, axis


@dataclass(frozen=True)
class Setting(Grid):
    lr: tuple[Positive, ...] = axis([0.1, 0.2, 0.4, 0.8], "step size η")
    step: tuple[Natural, ...] = axis([0, 1, 2, 4, 8, 16], "step")
    seed: tuple[Natural, ...] = axis(range(4), "seed")
    flip_prob: Probability = 0.1

    def check(self):
        if self.flip_prob == 1:
            raise ValueError("flip_prob must be below 1; got 1")


experiment = Experiment(Setting, version=1, loops=("lr",), gives={"loss": ("training loss", "nats")})


@experiment.cell
def cell(s, device):
    return {"loss": s.flip_prob + np.exp(-s.lr * np.array(s.step)[:, None] - 0.1 * np.array(s.seed))}
'''
LINES = ["from my_experiment import experiment\n", "experiment.explore()"]


@pytest.fixture
def lab(tmp_path):
    """The address of a notebook in a JupyterLab of its own, which ends with the test, and its kernels with it."""
    pytest.importorskip("jupyterlab") if not os.environ.get("FLBOOK_BROWSER") else __import__("jupyterlab")
    home, work = tmp_path / "home", tmp_path / "work"
    for folder in (home, work):
        folder.mkdir()
    (work / "my_experiment.py").write_text(EXPERIMENT, encoding="utf-8")
    code = {"cell_type": "code", "id": "one", "metadata": {}, "execution_count": None, "outputs": [], "source": LINES}
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    (work / "try.ipynb").write_text(json.dumps({"cells": [code], "metadata": kernel, "nbformat": 4,
                                                "nbformat_minor": 5}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token, places = secrets.token_hex(8), ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.port={port}",
               "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={work}",
               "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None"]
    environment = os.environ | {f"JUPYTER_{name}": str(home / name) for name in places} | {
        "JUPYTERLAB_SETTINGS_DIR": str(home / "lab"), "JUPYTERLAB_WORKSPACES_DIR": str(home / "lab")}
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=work, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        _answering(f"http://127.0.0.1:{port}/api?token={token}", server, tmp_path / "log")
        yield f"http://127.0.0.1:{port}/lab/tree/try.ipynb?token={token}"
    finally:
        server.send_signal(signal.SIGTERM)  # twice would be at once; it shuts its kernels down
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _answering(address, server, log):
    for _ in range(200):
        try:
            return urllib.request.urlopen(address, timeout=2).read()
        except OSError:
            if server.poll() is not None:
                missing(f"JupyterLab does not start here: {log.read_text()[-300:]}")
            time.sleep(0.1)
    raise TimeoutError(log.read_text()[-2000:])


def test_a_slider_in_jupyterlab_moves_the_figure(lab, chromium):
    page = chromium.new_page(viewport={"width": 700, "height": 900})
    page.set_default_timeout(20_000)
    page.goto(lab)
    page.get_by_text("(ipykernel) | Idle").wait_for()
    page.keyboard.press("Control+b")  # the browser of files goes
    page.locator(".jp-Notebook .jp-Cell .cm-content").click()
    page.keyboard.press("Shift+Enter")
    picture = page.locator(".flf img")
    assert picture.get_attribute("alt") == "loss at lr = 0.4, flip_prob = 0.1"
    before = picture.get_attribute("src")
    page.get_by_role("slider").first.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("before => document.querySelector('.flf img').src !== before", arg=before)
    assert picture.get_attribute("alt") == "loss at lr = 0.429, flip_prob = 0.1"

    page.get_by_text("Other fields of the setting").click()
    cut = page.evaluate("""() => [...document.querySelectorAll('.jp-OutputArea :is(.widget-label, .flf)')].filter(
        one => one.scrollWidth > one.clientWidth || one.getBoundingClientRect().right > 690
    ).map(one => one.outerHTML)""")
    assert not cut and picture.bounding_box()["width"] > 450
    page.get_by_role("slider").nth(1).focus()
    page.keyboard.press("End")
    page.get_by_text("Not drawn: flip_prob must be below 1; got 1").wait_for()
