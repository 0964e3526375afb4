r"""The selective state-space layer of Mamba, and the predictors of a prompt that are made of it.

A layer reads tokens :math:`u_1, \dots, u_L` of p channels. With :math:`A = -aI` every channel keeps a state of its own,

.. math:: h_l = e^{-a\Delta_l} h_{l-1} + \frac{1 - e^{-a\Delta_l}}{a} B_l u_l, \qquad o_l = C_l^\top h_l, \qquad
          B_l = W_B u_l + b_B, \quad C_l = W_C u_l + b_C, \quad \Delta_l = \log(1 + e^{w_\Delta^\top u_l + b_\Delta}),

which is the differential equation :math:`h' = -ah + Bu` held for the time :math:`\Delta_l` (zero-order hold). Since
every state decays alike, the last state is a weighted sum of the tokens: no loop over them is needed.

Source: Gu and Dao (2023), section 3; with A = -I, Jiang, Huang, Zhang, Suzuki and Nie (2025), section 3.
"""

import math
from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad, softplus

from flbook import rng
from flbook.domains import Count, Positive, Range, Seeds, checked_arguments
from flbook.shapes import Context


class SelectiveLayer(nn.Module):
    """One layer, tokens in, tokens out; its weights start at 0, see `Mamba` for one that is drawn.

    What is trained, each with the ensemble's axes first: ``w_b``, ``w_c`` (s, p), ``b_b``, ``b_c`` (s), ``w_delta``
    (p), ``b_delta`` () and ``log_a`` (). Tokens have the shape (*E, *batch, L, p).

    Parameters
    ----------
    p, states
        Channels; size of a channel's state, s.
    a
        Rate of decay.
    ensemble
        Axes that lead every parameter.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Examples
    --------
    >>> SelectiveLayer(p=3, states=4)(torch.zeros(5, 7, 3, dtype=torch.float64)).shape
    torch.Size([5, 7, 3])
    """

    @checked_arguments
    def __init__(self, p: Count, states: Count, a: Positive = 1.0, ensemble: Sequence[int] = (),
                 dtype: torch.dtype = torch.float64):
        super().__init__()
        shapes = {"w_b": (states, p), "b_b": (states,), "w_c": (states, p), "b_c": (states,), "w_delta": (p,),
                  "b_delta": (), "log_a": ()}
        for name, shape in shapes.items():
            setattr(self, name, nn.Parameter(torch.zeros((*ensemble, *shape), dtype=dtype)))
        self.log_a.data.fill_(math.log(a))

    def _own(self, name: str, like: Tensor) -> Tensor:
        """A parameter with ones for the batch axes that the tokens have and it has not."""
        value, own = getattr(self, name), {"w_b": 2, "w_c": 2, "b_delta": 0, "log_a": 0}.get(name, 1)
        lead = value.ndim - own
        return value.reshape((*value.shape[:lead], *[1] * (like.ndim - 2 - lead), *value.shape[lead:]))

    def project(self, name: str, u: Float[Tensor, "*E L p"]) -> Float[Tensor, "*E L s"]:
        """B or C of every token: ``project("b", u)``, ``project("c", u)``."""
        weight, bias = self._own(f"w_{name}", u), self._own(f"b_{name}", u)
        return torch.einsum("...sp,...lp->...ls", weight, u) + bias[..., None, :]

    def held(self, u: Float[Tensor, "*E L p"]) -> Float[Tensor, "*E L"]:
        r"""The time :math:`a\Delta_l` that each token is held: its decay is :math:`e^{-a\Delta_l}`."""
        z = torch.einsum("...p,...lp->...l", self._own("w_delta", u), u) + self._own("b_delta", u)[..., None]
        return softplus(z, threshold=700) * self._own("log_a", u)[..., None].exp()

    def gain(self, u: Float[Tensor, "*E L p"]) -> Float[Tensor, "*E L"]:
        r"""What a token is multiplied with as it is written, :math:`(1 - e^{-a\Delta_l})/a`."""
        return -torch.expm1(-self.held(u)) / self._own("log_a", u)[..., None].exp()

    def weights(self, u: Float[Tensor, "*E L p"]) -> Float[Tensor, "*E L"]:
        r"""The weight of every token in the last state, :math:`\omega_l = \mathrm{gain}_l\prod_{m>l}e^{-a\Delta_m}`."""
        held = self.held(u)
        later = held.flip(-1).cumsum(-1).flip(-1) - held
        return self.gain(u) * torch.exp(-later)

    def states(self, u: Float[Tensor, "*E L p"]) -> Float[Tensor, "*E L p s"]:
        """The state after each token, by the recursion itself: one step a token."""
        written = torch.einsum("...l,...ls,...lp->...lps", self.gain(u), self.project("b", u), u)
        decay, state, states = torch.exp(-self.held(u)), torch.zeros_like(written[..., 0, :, :]), []
        for step in range(u.shape[-2]):
            state = decay[..., step, None, None] * state + written[..., step, :, :]
            states.append(state)
        return torch.stack(states, -3)

    def last_state(self, u: Float[Tensor, "*E L p"]) -> Float[Tensor, "*E p s"]:
        """The state after all tokens, from their weights: the state's size stays out of the sum over tokens."""
        weighted = self.weights(u)[..., None] * u
        moment = torch.einsum("...lk,...lp->...kp", weighted, u)
        bias = torch.einsum("...p,...s->...ps", weighted.sum(-2), self._own("b_b", u))
        return torch.einsum("...sk,...kp->...ps", self._own("w_b", u), moment) + bias

    def read(self, state: Float[Tensor, "*#E p s"], u: Float[Tensor, "*E q p"]) -> Float[Tensor, "*E q p"]:
        """The output at each of q tokens, every one of them as the next after this state."""
        old = torch.einsum("...l,...ls,...ps->...lp", torch.exp(-self.held(u)), self.project("c", u), state)
        own = torch.einsum("...l,...ls,...ls->...l", self.gain(u), self.project("b", u), self.project("c", u))
        return old + own[..., None] * u

    def forward(self, u: Float[Tensor, "*E L p"]) -> Float[Tensor, "*E L p"]:
        """The outputs at all tokens."""
        return torch.einsum("...ls,...lps->...lp", self.project("c", u), self.states(u))


def tokens(context: Context, marked: bool = False) -> Float[Tensor, "*E n p"]:
    """Examples as tokens (x, y), and a 1 behind if `marked`."""
    parts = [context.x, context.y[..., None]]
    return torch.cat([*parts, torch.ones_like(parts[1])] if marked else parts, -1)


@checked_arguments
def half_life(n: Count) -> float:
    r"""The bias :math:`b_\Delta` at which :math:`\Delta = \ln 2/n`: a token counts half after n more (at a = 1)."""
    return math.log(math.expm1(math.log(2) / n))


class Mamba(SelectiveLayer):
    r"""A layer over tokens :math:`(x_l, y_l)`; its prediction is the label's channel at the token :math:`(x_q, 0)`.

    :math:`W_B, W_C` start standard normal, their biases at 0, and :math:`\Delta = \ln 2/n` whatever the token.

    Parameters
    ----------
    d
        Coordinates of an input.
    states
        The state's size s.
    n
        Examples, which set the decay alone.
    seed
        One seed is one network; a tuple of seeds is an ensemble with one leading axis.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain.

    Source: Jiang, Huang, Zhang, Suzuki and Nie (2025), section 3.

    Examples
    --------
    >>> x, y = torch.zeros(6, 10, 3, dtype=torch.float64), torch.zeros(6, 10, dtype=torch.float64)
    >>> Mamba(d=3, states=8, n=10)(Context(x, y), x[:, :2]).shape
    torch.Size([6, 2])
    """

    @checked_arguments
    def __init__(self, d: Count, states: Count, n: Count, seed: Seeds = 0, dtype: torch.dtype = torch.float64):
        members = (len(seed),) if isinstance(seed, tuple | list | range) else ()
        super().__init__(d + 1, states, ensemble=members, dtype=dtype)
        for name in ("w_b", "w_c"):
            getattr(self, name).data.copy_(rng.normal((states, d + 1), seed, f"selective layer {name}"))
        self.b_delta.data.fill_(half_life(n))

    def forward(self, context: Context, query: Float[Tensor, "*E q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries, each as if it came alone after the examples."""
        if query.shape[-1] != self.w_b.shape[-1] - 1:
            raise ValueError(f"queries of shape {tuple(query.shape)} do not fit a layer for d = "
                             f"{self.w_b.shape[-1] - 1}")
        u, asked = tokens(context), pad(query, (0, 1))
        state = torch.einsum("...l,...lk->...k", self.weights(u) * context.y, u)
        mass = (self.weights(u) * context.y).sum(-1)
        label = torch.einsum("...k,...sk->...s", state, self._own("w_b", u)) + mass[..., None] * self._own("b_b", u)
        return torch.einsum("...q,...qs,...s->...q", torch.exp(-self.held(asked)), self.project("c", asked), label)

    def merged(self) -> Float[Tensor, "*E d d"]:
        r"""The block :math:`(W_C^\top W_B)_{1:d,1:d}`: what stands between query and example, :math:`\Gamma`."""
        return torch.einsum("...sk,...sl->...kl", self.w_c, self.w_b)[..., :-1, :-1]

    @classmethod
    @checked_arguments
    def of(cls, gamma: Float[Tensor, "*E d d"], decay: Annotated[float, Range(0, 1, "()")]) -> "Mamba":
        r"""The layer that predicts :math:`x_q^\top\Gamma\sum_i\omega_i y_{n-i}x_{n-i}` with this decay, made by hand.

        :math:`\omega_i = (1 - \alpha)\alpha^{i+1}`; the state has as many entries as the inputs. Raises ValueError
        unless the decay lies strictly between 0 and 1.
        """
        *ensemble, d, _ = gamma.shape
        layer = cls(d, d, 1, dtype=gamma.dtype)
        SelectiveLayer.__init__(layer, d + 1, d, ensemble=tuple(ensemble), dtype=gamma.dtype)
        layer.w_b.data.copy_(pad(torch.eye(d, dtype=gamma.dtype), (0, 1)).expand(*ensemble, d, d + 1))
        layer.w_c.data.copy_(pad(gamma.transpose(-1, -2), (0, 1)))
        layer.b_delta.data.fill_(math.log(math.expm1(-math.log(decay))))
        return layer

    @classmethod
    @checked_arguments
    def gated(cls, gamma: Float[Tensor, "*E d d"], slope: float, bias: float, a: Positive = 1.0) -> "Mamba":
        r"""The same with a time that the label sets, :math:`\Delta = \log(1 + e^{wy + b})`, and rate of decay a.

        An example is written with :math:`y\,(1 - (1 + e^{wy + b})^{-a})/a`, at a = 1 the sigmoid gate
        :math:`y\,\sigma(wy + b)`, and keeps :math:`(1 + e^{wy + b})^{-a}` of all before it.
        """
        layer = cls.of(gamma, 0.5)
        layer.w_delta.data[..., -1] = slope
        layer.b_delta.data.fill_(bias)
        layer.log_a.data.fill_(math.log(a))
        return layer
