"""A causal transformer, and what it needs to read prompts: examples go in as separate tokens for x and y."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from flbook import rng
from flbook.shapes import Context


class Linear(nn.Module):
    """``x @ weight + bias``; weight ``(*S, inputs, outputs)``, so an ensemble is one batched product."""

    def __init__(self, inputs: int, outputs: int, size: float, seed, role: str):
        super().__init__()
        self.weight = nn.Parameter(size * rng.normal((inputs, outputs), seed, role))
        self.bias = nn.Parameter(torch.zeros_like(self.weight[..., 0, :]))

    def forward(self, x: Float[Tensor, "*#S b L inputs"]) -> Float[Tensor, "*S b L outputs"]:
        """The same map for every token."""
        out = x.flatten(-3, -2) @ self.weight
        return (out + self.bias[..., None, :].to(out)).unflatten(-2, x.shape[-3:-1])


class Norm(nn.Module):
    """Layer normalisation: each token gets mean 0 and variance 1, then a gain and a bias."""

    def __init__(self, like: Tensor):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones_like(like)), nn.Parameter(torch.zeros_like(like))

    def forward(self, x: Float[Tensor, "*S b L width"]) -> Float[Tensor, "*S b L width"]:
        """Every token on its own."""
        if self.gain.ndim == 1:
            return functional.layer_norm(x, self.gain.shape, self.gain, self.bias)
        return functional.layer_norm(x, x.shape[-1:]) * self.gain[..., None, None, :] + self.bias[..., None, None, :]


class Block(nn.Module):
    """One layer: every token looks at those up to itself, then thinks for itself; both are added to what it was."""

    def __init__(self, width: int, heads: int, size: float, out_size: float, seed, role: str):
        super().__init__()
        self.heads = heads
        self.ask = Linear(width, 3 * width, size, seed, f"{role} ask")  # queries, keys and values of all heads
        self.answer = Linear(width, width, out_size, seed, f"{role} answer")
        self.widen = Linear(width, 4 * width, size, seed, f"{role} widen")
        self.narrow = Linear(4 * width, width, out_size, seed, f"{role} narrow")
        self.norm_1, self.norm_2 = Norm(self.answer.bias), Norm(self.answer.bias)

    def forward(self, x: Float[Tensor, "*S b L width"]) -> Float[Tensor, "*S b L width"]:
        """Attention, then the two-layer network."""
        split = self.ask(self.norm_1(x)).unflatten(-1, (3, self.heads, -1)).flatten(0, -5)  # (S b) L 3 heads k
        q, k, v = split.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.answer(seen.transpose(1, 2).flatten(-2).reshape(x.shape))
        return x + self.narrow(functional.gelu(self.widen(self.norm_2(x)), approximate="tanh"))


class GPT(nn.Module):
    r"""The decoder of GPT-2 without its vocabulary: a sequence of vectors in, a sequence of vectors out.

    .. math:: h \leftarrow h + \mathrm{Attn}(\mathrm{norm}(h)), \quad h \leftarrow h + \mathrm{MLP}(\mathrm{norm}(h))

    in every layer, learned positions before and a last norm after. Weights start as Gaussians of standard deviation
    sigma_0, those that write into h divided by the square root of how many do. A layer has 12 width² + 13 width
    parameters. A tuple of seeds gives an ensemble of networks: each weight has one leading axis S.

    Source: Radford et al. (2019).
    """

    def __init__(self, width: int, layers: int, heads: int, positions: int, sigma_0: float = 0.02,
                 seed: int | tuple[int, ...] = 0):
        super().__init__()
        for name, value in (("layers", layers), ("heads", heads), ("positions", positions)):
            if value < 1:
                raise ValueError(f"{name} must be at least 1; got {value}")
        if width < 1 or width % heads:
            raise ValueError(f"width must be a multiple of heads = {heads}; got {width}")
        self.position = nn.Parameter(sigma_0 * rng.normal((positions, width), seed, "positions"))
        out_size = sigma_0 / (2 * layers) ** 0.5
        self.blocks = nn.ModuleList(Block(width, heads, sigma_0, out_size, seed, f"block {k}") for k in range(layers))
        self.norm = Norm(self.position[..., 0, :])

    def forward(self, x: Float[Tensor, "*S b L width"]) -> Float[Tensor, "*S b L width"]:
        """What each token knows after the last layer, of itself and of those before it."""
        if x.shape[-2] > self.position.shape[-2]:
            raise ValueError(f"a sequence must have at most {self.position.shape[-2]} tokens, the positions that the "
                             f"network knows; got {x.shape[-2]}")
        x = x + self.position[..., None, : x.shape[-2], :]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class PromptTransformer(nn.Module):
    r"""A `GPT` that continues :math:`x_1, y_1, \dots, x_n, y_n, x_q` with its prediction of :math:`y_q`.

    Tokens live in d + 1 coordinates: an input is (x, 0), a label (0, y). A linear map reads them in, another reads the
    prediction out at the tokens of the inputs; there the network has seen every pair before, and no label of its own.

    n: examples of the longest prompt. With an ensemble (a tuple of seeds) the first axis of the prompts is that of the
    networks, of length 1 if all read the same prompts.

    Source: Garg et al. (2022), Section 2; there a label takes the first coordinate of an input.
    """

    def __init__(self, d: int, n: int, width: int = 64, layers: int = 3, heads: int = 2, sigma_0: float = 0.02,
                 seed: int | tuple[int, ...] = 0, dtype: torch.dtype = torch.float32):
        super().__init__()
        if d < 1 or n < 1:
            raise ValueError(f"d and n must be at least 1: dimension and examples of a prompt; got d={d}, n={n}")
        self.d = d
        self.read_in = Linear(d + 1, width, (d + 1) ** -0.5, seed, "read-in")
        self.gpt = GPT(width, layers, heads, 2 * n + 1, sigma_0, seed)
        self.read_out = Linear(width, 1, width**-0.5, seed, "read-out")
        self.to(dtype)

    def predictions(self, x: Float[Tensor, "*B N d"], y: Float[Tensor, "*B N"]) -> Float[Tensor, "*E N"]:
        """The prediction of every label from the pairs before it: one pass, N prompts of growing length."""
        if x.shape[-1] != self.d:
            raise ValueError(f"inputs must have d = {self.d} coordinates; got shape {tuple(x.shape)}")
        pairs = torch.stack([functional.pad(x, (0, 1)), functional.pad(y[..., None], (self.d, 0))], -2)
        tokens = pairs.flatten(-3, -2)[..., :-1, :]  # the last label is seen by nobody
        lead, axes = tokens.shape[:-2], self.gpt.position.ndim - 2
        out = self.read_out(self.gpt(self.read_in(tokens.reshape(*lead[:axes], -1, *tokens.shape[-2:]))))
        return out[..., ::2, 0].reshape(*out.shape[:axes], *lead[axes:], -1)

    def forward(self, context: Context, query: Float[Tensor, "*B q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries; each reads the context and itself, not the other queries."""
        copies = (*query.shape[:-1], *context.x.shape[-2:])
        x = torch.cat([context.x[..., None, :, :].expand(copies), query[..., None, :]], -2)
        y = functional.pad(context.y[..., None, :].expand(copies[:-1]), (0, 1))
        return self.predictions(x, y)[..., -1]


def tiny(d: int, n: int, **how) -> PromptTransformer:
    """3 layers of width 64 with 2 heads."""
    return PromptTransformer(d, n, 64, 3, 2, **how)


def small(d: int, n: int, **how) -> PromptTransformer:
    """6 layers of width 128 with 4 heads."""
    return PromptTransformer(d, n, 128, 6, 4, **how)


def standard(d: int, n: int, **how) -> PromptTransformer:
    """12 layers of width 256 with 8 heads, the size of the literature."""
    return PromptTransformer(d, n, 256, 12, 8, **how)
