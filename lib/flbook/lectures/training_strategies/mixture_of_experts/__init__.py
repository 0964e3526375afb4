r"""A router and its experts, trained together on clusters that nobody names.

Claim (Chen et al. 2022, Theorems 4.1 and 4.2): where signal and misleading patch have one law, every sum of a function
over patches errs on at least 1/8; a mixture of cubic experts under a top-1 router has a test error that vanishes.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import xarray as xr

from flbook import devices
from flbook.domains import Count, Natural
from flbook.lectures.training_strategies.mixture_of_experts.clustered import Clustered, ExpertClusters
from flbook.lectures.training_strategies.mixture_of_experts.experts import DoubleSoftmax, Experts
from flbook.lectures.training_strategies.mixture_of_experts.recipe import ExpertRecipe, ExpertTraining
from flbook.lectures.training_strategies.mixture_of_experts.routers import dispatched, entropy, given
from flbook.models.activations import cube, identity
from flbook.runs import Experiment, Grid, axis
from flbook.shapes import Quantity
from flbook.training.fit import fit
from flbook.training.losses import logistic
from flbook.training.problem import Params

PLAIN = "learned, single softmax"
ROUTERS = ("learned", PLAIN, "oracle", "k-means", "random")
EXPERTS = {"cubic": cube, "linear": identity}


@dataclass(frozen=True)
class Setting(Grid):
    """Everything the experiment depends on; tuples are the axes of the sweep. Data: setting 3 of the official code."""

    expert: tuple[Literal["cubic", "linear"], ...] = axis(tuple(EXPERTS), "experts")
    router: tuple[Literal[ROUTERS], ...] = axis(("learned",), "router")
    seed: tuple[Natural, ...] = axis(range(10), "seed")
    n: Count = 1000
    d: Count = 50
    experts: Count = 8
    filters: Count = 8  # of either sign, in each expert
    steps: Count = 300
    points: Count = 2000  # fresh samples

    def check(self) -> None:
        """Refuse a dimension without room for the vectors, and fewer experts than clusters."""
        if self.d < 8:
            raise ValueError(f"d must be at least 8, for four signals and four centres; got {self.d}")
        if self.experts < 4:
            raise ValueError(f"experts must be at least 4, one for each cluster; got {self.experts}")

    @property
    def data(self) -> ExpertClusters:
        """The data model."""
        return ExpertClusters(n=self.n, d=self.d)

    def rule(self, router: str) -> ExpertRecipe:
        """The official recipe; with a single softmax, whose loss has no floor, it runs to the end."""
        return ExpertRecipe(stop=0.0, rise=10.0) if router == PLAIN else ExpertRecipe()


experiment = Experiment(
    Setting, version=1, loops=("expert", "router"), chunk={"expert": 1, "router": 1}, stored="longer",
    gives={
        "test_error": ("test error", "fraction"),
        "entropy": ("dispatch entropy", "nats"),
        "train_loss": ("training loss", "nats"),
    },
    presets={
        "tiny": ("A blink", dict(
            router=ROUTERS, seed=(0, 1), n=60, d=12, experts=4, filters=2, steps=6, points=50)),
        "longer": ("The four routers that the book's preset leaves out", dict(router=ROUTERS[1:])),
        "runs": ("Both kinds of experts under their own routers, on 40 data sets", dict(seed=tuple(range(40)))),
    },
)


class Cell:
    """A mixture of experts of one kind on all data sets of a setting, and what is asked of it."""

    def __init__(self, setting: Setting, expert: str, router: str = "learned", device: str = "cpu"):
        data, seed, place = setting.data, setting.seed, devices.device(device)
        drawn = data.draw(seed), data.draw_test(setting.points, seed)
        self.sample, self.fresh = (Clustered(*(part.to(place) for part in one)) for one in drawn)
        self.setting = setting
        learned = router in ("learned", PLAIN)
        self.ways = None if learned else given(router, self.sample, self.fresh, setting.experts, seed)
        net = Experts(setting.d, setting.experts, setting.filters, EXPERTS[expert], seed=seed).to(place)
        route = None if self.ways is None else self.ways[0]
        loss = logistic if router == PLAIN else DoubleSoftmax()
        self.problem = ExpertTraining(net, self.sample.x, self.sample.observed, loss, seed, route)
        self.rule = setting.rule(router)
        self.x = self.fresh.x.to(self.problem.x)

    def counts(self, params: Params) -> torch.Tensor:
        """Fresh samples by expert and cluster, ``(seed, M, K)``."""
        expert = self.problem.dispatch(params, self.x) if self.ways is None else self.ways[1]
        return dispatched(expert, self.fresh.cluster, self.setting.experts, 4)

    def test_error(self, params: Params) -> torch.Tensor:
        """Share of wrong signs on fresh samples, routed without noise."""
        route = None if self.ways is None else self.ways[1]
        with torch.no_grad():
            f = self.problem.predict(params, self.x, route)
        return (f * self.fresh.observed.to(f) <= 0).double().mean(-1)

    def skill(self, params: Params) -> torch.Tensor:
        """Overlap of every expert with every signal, the A of the lecture, ``(seed, M, K)``."""
        w = self.problem.model.activation(params["w"][..., :4])
        return (w[..., 0, :, :] - w[..., 1, :, :]).sum(-2)


@experiment.cell
def cell(s: Setting, device: str) -> dict[str, torch.Tensor]:
    """Train mixtures of one kind under one router to the end."""
    mixture = Cell(s, s.expert, s.router, device)
    params = fit(mixture.problem, mixture.rule, s.steps).params
    with torch.no_grad():
        return {"test_error": mixture.test_error(params), "entropy": entropy(mixture.counts(params)),
                "train_loss": mixture.problem.train_loss(params)}


run = experiment.run


@experiment.also
def race(setting: Setting, device: str = "cpu") -> xr.Dataset:
    """Training under a learned router, step by step; dimensions (expert, step, seed, ...)."""
    histories = []
    for expert in setting.expert:
        one = Cell(setting, expert, device=device)
        quantities = [
            Quantity("test_error", one.test_error, (), "test error", "fraction"),
            Quantity("entropy", lambda params, one=one: entropy(one.counts(params)), (), "dispatch entropy", "nats"),
            Quantity("counts", one.counts, ("number", "cluster"), "fresh samples"),
            Quantity("skill", one.skill, ("number", "cluster"), "overlap A with the signal"),
            Quantity("router", lambda params: params["theta"][..., 4:8], ("number", "cluster"), "router's overlap"),
        ]
        marks = {*range(0, 61, 5), 70, 80, 95, *range(125, 201, 25), 250, setting.steps}
        histories.append(fit(one.problem, one.rule, setting.steps, quantities, ("seed",), at=sorted(marks)).history)
    joined = xr.concat(histories, "expert").assign_coords(setting.coordinates("expert", "seed"))
    return joined.assign(lead=lead(joined.skill), agreement=agreement(joined.router, joined.skill))


def lead(skill: xr.DataArray) -> xr.DataArray:
    """By which share an expert's best cluster leads its second best: median over experts."""
    ordered = np.sort(skill.transpose(..., "cluster").values, -1)
    share = (ordered[..., -1] - ordered[..., -2]) / np.abs(ordered[..., -1])
    over = skill.isel(cluster=0, drop=True).transpose(..., "number")
    return over.copy(data=share).median("number").assign_attrs(long_name="relative lead of the best cluster", units="1")


def agreement(router: xr.DataArray, skill: xr.DataArray) -> xr.DataArray:
    """Correlation, over experts and clusters, of the router's overlaps with the experts'."""
    found = xr.corr(router, skill, ("number", "cluster")).where(router.std(("number", "cluster")) > 0)
    return found.assign_attrs(long_name="correlation of router and experts", units="1")
