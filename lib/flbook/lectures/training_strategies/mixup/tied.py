r"""The tie of single samples: a rare feature grows as the noise of the samples that carry it takes it along.

With noise patches orthogonal to each other a filter of sign + has, after small steps on any weighted sum over samples,

.. math:: \log\frac{|a(t)|}{|a(0)|} = \frac1S\sum_i\log\frac{|b_i(t)|}{|b_i(0)|}, \qquad
          a = \langle w, u_+\rangle, \quad b_i = \langle w, \xi_i\rangle,

a sum over the rare samples of its label. Derived on this lecture's page.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from flbook.dynamics.patches import PatchTraining
from flbook.lectures.training_strategies.shared.common_and_rare import FEATURES, PLACES
from flbook.training.problem import Params


def grown(problem: PatchTraining, params: Params, rare: Tensor) -> tuple[Float[Tensor, "*E"], Float[Tensor, "*E"]]:
    """Both sides of the tie, the mean over the two labels.

    Of each sign the filter that answers most to the rare feature at the start, and for each sample the filter of its
    sign that answers most to its noise: under the tie all filters of a sign grow alike.
    """
    start, now = (problem.preactivations(p).double().abs() for p in (problem.start(), params))
    square = problem.basis.b_b.diagonal(dim1=-2, dim2=-1).double()
    m, left, right = problem.a.shape[0] // 2, 0.0, 0.0
    for k, sign in enumerate((1.0, -1.0)):
        before, after = (z[..., k * m : (k + 1) * m, :] for z in (start, now))
        most = before.argmax(-2, keepdim=True)
        log = (after.gather(-2, most) / before.gather(-2, most)).log().squeeze(-2)
        own = torch.cat([rare.new_zeros(FEATURES), rare & (problem.observed[..., :] == sign).cpu()])
        left = left + log[..., PLACES["rare"] + k] / 2
        right = right + (log / square)[..., own].sum(-1) / 2
    return left, right
