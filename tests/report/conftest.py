"""A folder with a user's file, data and checkpoints; and a page that is taken apart."""

import base64
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

NETS = '''
"""Networks of somebody who has never seen this book."""
import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.conv = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
        self.norm, self.head = nn.BatchNorm2d(4), nn.Linear(4, 3)

    def forward(self, x):
        h = self.stem(x)
        return self.head((h + self.norm(self.conv(h)).relu()).mean((-2, -1)))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.embed, self.encoder = nn.Linear(4, 8), nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x))[:, -1])


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(7, 5), nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.embed(x).mean(1))


class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.out.expand(len(x))


def mlp():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))


def line():
    made = nn.Linear(5, 1, bias=False).double()
    with torch.no_grad():
        made.weight.copy_(torch.tensor([[1.0, 2.0, 0.0, 0.0, 0.0]]))
    return made


def number():
    return 3


def broken():
    return undefined


def half():
    return nn.Linear(5, 1).bfloat16()


def frozen():
    return nn.Linear(5, 1).requires_grad_(False)


def pair():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 1)

        def forward(self, x):
            return self.layer(x), x

    return Pair()


def exploded():
    made = nn.Linear(5, 1)
    with torch.no_grad():
        made.weight.fill_(float("inf"))
    return made


def deep():
    return nn.Sequential(nn.Linear(5, 4), nn.Unflatten(1, (2, 2)))
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder holds what a user has."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets.py").write_text(NETS)
    g = np.random.default_rng(0)
    x = g.normal(size=(24, 3, 6, 6))
    np.savez("crops.npz", x=x.astype("f4"), y=np.arange(24) % 3)
    x = g.normal(size=(20, 6, 4))
    np.savez("prompts.npz", x=x, y=(x[:, 0, 0] > 0).astype(int))
    np.savez("words.npz", x=g.integers(0, 7, (20, 4)), y=np.arange(20) % 3)
    x, fresh = g.normal(size=(30, 5)), g.normal(size=(30, 5))
    np.savez("values.npz", x=x, y=x[:, 0] * x[:, 1], x_test=fresh, y_test=fresh[:, 0] * fresh[:, 1])
    (tmp_path / "states").mkdir()
    for step in (0, 9, 10):
        torch.manual_seed(step)
        made = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        torch.save(made.state_dict(), f"states/step_{step}.pt")
    return tmp_path


class Page(HTMLParser):
    """What stands on a page: headings, paragraphs, pictures, and every address that it asks for."""

    def __init__(self, text: str):
        super().__init__()
        self.headings, self.words, self.pictures, self.asked, self.open = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "img":
            kind, _, content = attrs["src"].partition("base64,")
            assert kind == "data:image/png;" and base64.b64decode(content).startswith(b"\x89PNG")
            self.pictures.append(attrs["alt"])
        self.asked += [value for key, value in attrs.items() if key in ("src", "href") and "data:" not in value]
        assert tag not in ("script", "link", "iframe")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and data.strip():
            (self.headings if self.open[-1] == "h2" else self.words).append(data)


@pytest.fixture
def read():
    """Take a page apart."""
    return lambda path: Page(path.read_text(encoding="utf-8"))
