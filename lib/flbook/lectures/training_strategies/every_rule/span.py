r"""Training in coordinates of the span of the data: the same numbers for every rule that commutes with rotations.

Filters move in the span of the training patches only, so the products :math:`\langle w,x\rangle` and all lengths are
those of the parts in the span: n samples of P patches cost nP dimensions at most, whatever d is.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from flbook import with_start
from flbook.lectures.training_strategies.shared.by_hand import ByHand
from flbook.models.cnn import TwoLayerCNN
from flbook.training.problem import Params


@dataclass(frozen=True)
class Span:
    """A training problem in an orthonormal basis of its patches, and the way back."""

    problem: ByHand
    basis: Tensor  # (*E, d, as many as patches, d at most)
    outside: Tensor  # what the first filters have outside the span, (*E, 2, m, d)

    @classmethod
    def of(cls, whole: ByHand) -> "Span":
        """The problem in the span of its data, without members yet."""
        flat, w, model = whole.x.flatten(-3, -2), whole.start()["w"], whole.model
        rows = torch.linalg.svd(flat.double(), full_matrices=False)[2]  # all: their number needs no look at the data
        basis = rows.mT.to(whole.x)
        inside = torch.matmul(w.flatten(-3, -2), basis).unflatten(-2, w.shape[-3:-1])
        seed = tuple(range(len(w))) if w.ndim > 3 else 0  # only its shape matters: the start is given
        small = TwoLayerCNN(basis.shape[-1], w.shape[-2], 0.0, model.activation, model.scale, seed=seed).to(w)
        x = torch.matmul(flat, basis).unflatten(-2, whole.x.shape[-3:-1])
        problem = ByHand(with_start(small, w=inside), x, whole.observed, whole.loss)
        return cls(problem, basis, w - cls._outward(inside, basis))

    def back(self, params: Params) -> Params:
        """Parameters in all d coordinates."""
        return {"w": self._outward(params["w"], self.basis) + self.outside}

    @staticmethod
    def _outward(w: Tensor, basis: Tensor) -> Tensor:
        return torch.matmul(w.flatten(-3, -2), basis.mT).unflatten(-2, w.shape[-3:-1])
