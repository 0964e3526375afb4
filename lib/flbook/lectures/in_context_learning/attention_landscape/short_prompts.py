r"""The landscape of features below attention that reads a prompt of n examples.

The prompt estimates :math:`C = \Sigma_{fh}` by a mean over its examples. Averaged over prompts, queries and tasks,
with labels of noise variance :math:`\tau^2` and attention at its optimum :math:`\Gamma = A^{-1}B\Sigma_{hh}^{-1}`, the
loss is

.. math:: L^n(h) = \tfrac12\mathrm{tr}\big(\Sigma_{ff} - BA^{-1}B\,\Sigma_{hh}^{-1}\big), \qquad B = C^\top C, \quad
          A = \big(1 - \tfrac1n\big)B + \tfrac1n E\big[(|f|^2 + \tau^2)\,hh^\top\big] .

As without n it depends on the span of the features only. So the search here is over subspaces of the functions on N
points: `h` holds an orthonormal basis (under the mean over the points), and a step turns it. What is a minimum there is
one for every network whose neurons make these features, since their functions are among those compared.

Axes: n points, k features; ensemble axes lead. float64.
Sources: Kim and Suzuki (2024), appendix C.4, for the question; the closed forms are derived in the lecture.
"""

from typing import NamedTuple

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from flbook import rng
from flbook.lectures.in_context_learning.shared import mean_field
from flbook.lectures.in_context_learning.shared.mean_field import Particles, Population, second_moment
from flbook.runs import labelled


class RestingPoint(NamedTuple):
    """Where a descent ended."""

    h: Float[Tensor, "*E n k"]
    loss: Float[Tensor, "*E"]
    slope: Float[Tensor, "*E"]  # norm of the gradient over all turns
    curvature: Float[Tensor, "*E"]  # least eigenvalue of the Hessian over all turns


class Turn(NamedTuple):
    """On a rung: the features that are known, the useless one, and the true one that is missing."""

    known: Float[Tensor, "*E n j"]
    useless: Float[Tensor, "*E n"]
    missing: Float[Tensor, "*E n"]


def loss(h: Tensor, f: Tensor, n: float, noise: float = 0.0) -> Float[Tensor, "*E"]:
    """L^n at the best attention; n may be infinite, and then noise of the labels does not count."""
    B = second_moment(f, h)
    B = B.mT @ B
    A = (1 - 1 / n) * B + second_moment(h * (f.square().sum(-1, keepdim=True) + noise), h) / n
    gain = B if n == float("inf") else B @ torch.linalg.inv(A) @ B
    return (f.square().sum(-1).mean(-1) - (gain * torch.linalg.inv(second_moment(h, h))).sum((-1, -2))) / 2


def orthonormal(h: Tensor) -> Tensor:
    """A basis of the same span with covariance I."""
    return torch.linalg.qr(h)[0] * h.shape[-2] ** 0.5


def draw(seeds: tuple[int, ...], points: int = 24, k: int = 2, d: int = 4) -> tuple[Tensor, Tensor]:
    """True features of covariance I/k on the points, and starts; f (seed, n, k), starts (2, seed, n, k).

    The starts are random features, and next to the saddle of the first rung: all features known but one, and a useless
    one.
    """
    x = rng.normal((points, d), seeds, "points of the short prompts")
    f = mean_field.draw(20, k, d, seeds, "teacher", 4.0).whitened(x).features(x)
    random = rng.normal((points, k), seeds, "random features")
    spare = rng.normal((points, 1), seeds, "spare feature")
    spare = spare - k * f @ second_moment(f, spare)
    nudge = rng.normal((points, k), seeds, "nudge of the rung")
    rung = torch.cat([k**0.5 * f[..., :-1], spare / spare.square().mean(-2, keepdim=True).sqrt()], -1) + 1e-3 * nudge
    return f, orthonormal(torch.stack([random, rung]))


def _local(h: Tensor, f: Tensor, n: float, noise: float) -> tuple[Tensor, Tensor, Tensor]:
    """All functions orthogonal to the features, and gradient and Hessian of L^n in how much of them is added."""
    (points, k), lead = h.shape[-2:], h.shape[:-2]
    rest = torch.linalg.qr(torch.cat([h, torch.eye(points).to(h).expand(*lead, points, points)], -1))[0]
    rest = rest[..., k:] * points**0.5

    def added(X: Tensor, h: Tensor, rest: Tensor, f: Tensor) -> Tensor:
        return loss(h + rest @ X, f, n, noise)

    X = h.new_zeros(len(h), points - k, k)
    slope = torch.func.vmap(torch.func.grad(added))(X, h, rest, f).flatten(1)
    hessian = torch.func.vmap(torch.func.hessian(added))(X, h, rest, f)
    return rest, slope, hessian.reshape(len(h), slope.shape[-1], slope.shape[-1])


def descend(h: Tensor, f: Tensor, n: float, noise: float = 0.0, steps: int = 400, newton: int = 60) -> RestingPoint:
    """Gradient steps, then Newton's, of which every one has to lower the loss; h and f (member, n, k).

    A Newton step takes the Hessian's absolute value, so that it goes down along negative curvature, turns by a tenth at
    most, and is taken back (and the next one made shorter) where the loss does not fall.
    """
    for _ in range(steps):
        h = h.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss(h, f, n, noise).sum(), h)
        h = orthonormal(h.detach() - h.shape[-2] * slope)
    now, radius = loss(h, f, n, noise), h.new_full((len(h),), 0.1)
    for _ in range(newton):
        rest, slope, hessian = _local(h, f, n, noise)
        values, vectors = torch.linalg.eigh(hessian)
        if slope.norm(dim=-1).max() < 1e-10:
            break
        step = -torch.einsum("eij,ei->ej", vectors, slope) / values.abs().clamp_min(1e-7)
        step = step * (radius[:, None] / step.norm(dim=-1, keepdim=True)).clamp_max(1)
        turn = torch.einsum("eij,ej->ei", vectors, step).reshape(len(h), -1, h.shape[-1])
        new = orthonormal(h + rest @ turn)
        after = loss(new, f, n, noise)
        falls = after <= now + 1e-15
        h, now = torch.where(falls[:, None, None], new, h), torch.where(falls, after, now)
        radius = torch.where(falls, (2 * radius).clamp_max(0.1), radius / 4)
    _, slope, hessian = _local(h, f, n, noise)
    return RestingPoint(h, now, slope.norm(dim=-1), torch.linalg.eigvalsh(hessian)[..., 0])


def train(particles: Particles, population: Population, n: float, lr: float, steps: int) -> Particles:
    """Gradient descent of all neurons on L^n; the members of the ensemble do not see each other."""
    for _ in range(steps):
        particles = Particles(*(part.detach().requires_grad_() for part in particles))
        value = loss(particles.features(population.x), population.f, n).sum()
        slope = Particles(*torch.autograd.grad(value, particles))
        particles = Particles(*(part.detach() for part in particles)).moved(slope, -lr * particles.a.shape[-2])
    return particles


def known(h: Tensor, f: Tensor) -> Float[Tensor, "*E k"]:
    """How much of each direction of the true features the learned ones hold, from 0 to 1, least first."""
    cross = second_moment(f, orthonormal(h))
    return h.shape[-1] * torch.linalg.eigvalsh(cross.mT @ cross)


def turn(h: Tensor, f: Tensor) -> Turn:
    """The known features, the useless one and the missing true one, of mean square 1, at a point of the first rung."""
    h = orthonormal(h)
    cross = second_moment(f, h)
    basis = h @ torch.linalg.eigh(cross.mT @ cross)[1]
    missing = mean_field.regress(h, f).residual
    missing = torch.linalg.svd(missing, full_matrices=False)[0][..., 0] * h.shape[-2] ** 0.5
    return Turn(basis[..., 1:], basis[..., 0], missing)


def along(at: Turn, f: Tensor, n: float, angle: Float[Tensor, "*E s"], noise: float = 0.0) -> Float[Tensor, "*E s"]:
    """L^n where the useless feature is turned by an angle towards the missing one."""
    size = angle.shape + at.useless.shape[-1:]
    turned = angle.cos()[..., None] * at.useless[..., None, :] + angle.sin()[..., None] * at.missing[..., None, :]
    kept = at.known[..., None, :, :].expand(*size, at.known.shape[-1])
    return loss(torch.cat([kept, turned[..., None]], -1), f[..., None, :, :].expand(*size, f.shape[-1]), n, noise)


def spare(at: Turn, f: Tensor, noise: float = 0.0) -> tuple[Tensor, Tensor]:
    r"""kappa = E(|f|^2 + tau^2) z^2 and q (chi on the page), the use of z as a control variate for the others."""
    weight = f.square().sum(-1) + noise
    kappa = (weight * at.useless.square()).mean(-1)
    both = torch.einsum("...n,...nj->...j", weight * at.useless, at.known) / f.shape[-2]
    return kappa, both.square().sum(-1) / kappa**2


def bump(t: Tensor, q: Tensor) -> Tensor:
    r"""n (L^n(s) - L^n(0)) / kappa, to leading order, with t = n sin^2(s) / (k kappa)."""
    return (q - (q + t**2) / (1 + t)) / 2


def basins(h: Tensor, f: Tensor, lengths: tuple[int, ...]) -> xr.Dataset:
    """Minima on the first rung, followed from one length of the prompt to the next, and how far they reach.

    radius is the angle at which L^n is largest on the way to the missing feature, a mean of both directions, and theory
    its leading order; curvature is that of L^n on this way, times k/q; profile is n (L^n(s) - L^n(0)) / kappa.
    """
    k, rows, scaled = f.shape[-1], [], torch.linspace(-1.5, 1.5, 61).to(f)
    for n in lengths:
        point = descend(h, f, n, steps=0)
        h, at = point.h, turn(point.h, f)
        kappa, q = spare(at, f)
        theory = (k * kappa * ((1 + q).sqrt() - 1) / n).sqrt()
        grid = theory[:, None] * torch.linspace(0, 3, 1501).to(f)
        tops = [grid.gather(1, along(at, f, n, way * grid).argmax(-1, keepdim=True))[:, 0] for way in (1, -1)]
        small = along(at, f, n, torch.tensor([-1e-4, 0.0, 1e-4]).to(f).expand(len(h), -1))
        bent = (small[:, 0] - 2 * small[:, 1] + small[:, 2]) / 1e-8
        way = along(at, f, n, torch.asin(scaled * (k * kappa / n).sqrt()[:, None]))
        rows.append([(tops[0] + tops[1]) / 2, theory, k * bent / q, n * (way - small[:, 1:2]) / kappa[:, None],
                     point.curvature, q])
    radius, theory, curvature, profile, least, q = (torch.stack(part).numpy() for part in zip(*rows, strict=True))
    dims = ("n", "minimum")
    return labelled({"radius": (dims, radius, "angle of the top", "1"),
                     "theory": (dims, theory, "its leading order", "1"),
                     "curvature": (dims, curvature, "curvature towards the missing feature, times k/q", "1"),
                     "least": (dims, least, "least eigenvalue of the Hessian", "1"), "q": (dims, q, "use of z", "1"),
                     "profile": ((*dims, "scaled"), profile, "n (L^n(s) - L^n(0)) / kappa", "1")},
                    {"n": ("n", list(lengths), "examples n"), "scaled": ("scaled", scaled.numpy(), "sqrt(t)")})
