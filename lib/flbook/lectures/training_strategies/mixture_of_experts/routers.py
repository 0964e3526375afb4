"""Routers that learn nothing with their experts: the true cluster, nearest centres, and a random linear one."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from flbook import rng
from flbook.lectures.training_strategies.mixture_of_experts.clustered import Clustered


def given(name: str, sample: Clustered, fresh: Clustered, experts: int, seed: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Which expert each training and each fresh sample goes to; shapes ``(*E, n)``.

    name: "oracle" knows the cluster; "k-means" has as many centres as there are experts, and finds them from the sums
    of the patches; "random" is a linear router that stays as it starts, Gaussian.
    """
    if name == "oracle":
        return sample.cluster, fresh.cluster
    train, test = sample.x.sum(-2), fresh.x.sum(-2)
    if name == "random":
        theta = rng.normal((experts, train.shape[-1]), seed, "random router").to(train)
        return (train @ theta.mT).argmax(-1), (test @ theta.mT).argmax(-1)
    centres = k_means(train, experts, seed)
    return torch.cdist(train, centres).argmin(-1), torch.cdist(test, centres).argmin(-1)


def k_means(x: Float[Tensor, "*E n d"], k: int, seed: tuple[int, ...], starts: int = 10,
            steps: int = 40) -> Float[Tensor, "*E k d"]:
    """Lloyd's algorithm from several random starts (k-means++); the centres of the start that ends closest."""
    x = x[..., None, :, :]  # an axis for the starts
    unit = rng.over_seeds(
        lambda one: torch.rand((starts, k), generator=rng.generator(one, "k-means"), dtype=x.dtype), seed).to(x)
    centres = x.new_zeros((*unit.shape, x.shape[-1]))
    weight = x.new_ones((*unit.shape[:-1], x.shape[-2]))
    for i in range(k):  # a further centre at a sample, drawn by its squared distance to those that are there
        reached = weight.cumsum(-1) / weight.sum(-1, keepdim=True)
        place = (reached < unit[..., i, None]).sum(-1).clamp(max=x.shape[-2] - 1)
        new = x.expand(*weight.shape, -1).take_along_dim(place[..., None, None], -2)
        centres[..., i, :] = new[..., 0, :]
        distance = (x - new).square().sum(-1)
        weight = distance if i == 0 else torch.minimum(weight, distance)
    for _ in range(steps):
        one_hot = torch.nn.functional.one_hot(torch.cdist(x, centres).argmin(-1), k).to(x)
        count = one_hot.sum(-2)[..., None]
        centres = torch.where(count > 0, one_hot.mT @ x / count.clamp(min=1), centres)
    best = torch.cdist(x, centres).amin(-1).square().sum(-1).argmin(-1)
    return centres.take_along_dim(best[..., None, None, None], -3)[..., 0, :, :]


def dispatched(expert: Int[Tensor, "*E n"], cluster: Int[Tensor, "*E n"], experts: int,
               clusters: int) -> Float[Tensor, "*E M K"]:
    """How many samples of each cluster each expert gets."""
    to, of = (torch.nn.functional.one_hot(one, k).double() for one, k in ((expert, experts), (cluster, clusters)))
    return to.mT @ of


def entropy(counts: Float[Tensor, "*E M K"]) -> Float[Tensor, "*E"]:
    """Entropy of the cluster given the expert: 0 if every expert sees one cluster only, ln K if all see all alike."""
    size = counts.sum(-1)
    share = counts / size[..., None].clamp(min=1)
    inside = -(share * share.clamp(min=1e-300).log()).sum(-1)
    return (size * inside).sum(-1) / size.sum(-1)
