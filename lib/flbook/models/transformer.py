"""A causal transformer, and what it needs to read prompts: examples go in as separate tokens for x and y."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from flbook import rng
from flbook.domains import Count, NonNegative, Seeds, checked_arguments
from flbook.models.layers import Linear
from flbook.shapes import Context


class Norm(nn.Module):
    """Layer normalisation: each token gets mean 0 and variance 1, then a gain and a bias.

    Parameters
    ----------
    like
        A tensor of the shape that gain and bias get, ``(*S, width)``.
    """

    def __init__(self, like: Tensor):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones_like(like)), nn.Parameter(torch.zeros_like(like))

    def forward(self, x: Float[Tensor, "*S b L width"]) -> Float[Tensor, "*S b L width"]:
        """Every token on its own.

        Parameters
        ----------
        x
            Tokens, shape ``(*S, b, L, width)``.

        Returns
        -------
        Tensor
            Tokens, of the shape of x.
        """
        if self.gain.ndim == 1:
            return functional.layer_norm(x, self.gain.shape, self.gain, self.bias)
        return functional.layer_norm(x, x.shape[-1:]) * self.gain[..., None, None, :] + self.bias[..., None, None, :]


def softmax_attention(query: Float[Tensor, "*B h L k"], key: Float[Tensor, "*B h L k"],
                      value: Float[Tensor, "*B h L v"]) -> Float[Tensor, "*B h L v"]:
    r"""Each token's average of the values up to its own, weighted by :math:`\exp(\langle q, k\rangle/\sqrt k)`.

    Parameters
    ----------
    query, key
        Queries and keys of L tokens in h heads, shape ``(*B, h, L, k)``.
    value
        Values, shape ``(*B, h, L, v)``.

    Returns
    -------
    Tensor
        Averages, of the shape of `value`.
    """
    q, k, v = (part.flatten(0, -4) for part in (query, key, value))
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True).reshape(value.shape)


class Block(nn.Module):
    """One layer: every token looks at those up to itself, then thinks for itself; both are added to what it was.

    Shapes: S members of the ensemble, b sequences, L tokens, h heads of k = width / h coordinates.

    Parameters
    ----------
    width
        Coordinates of a token, a multiple of `heads`.
    heads
        Number of heads h.
    size, out_size
        Standard deviations of the initial weights: of those that read, and of those that write into the tokens.
    seed
        A tuple of seeds gives an ensemble, whose axis leads every parameter.
    role
        Names the draws; blocks of one seed and two roles are independent.
    attend
        How a head looks back, called with queries, keys and values ``(*S, b, h, L, k)``; it may be a module with
        parameters of its own.
    """

    def __init__(self, width: int, heads: int, size: float, out_size: float, seed: Seeds, role: str,
                 attend: Callable = softmax_attention):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.query_key_value = linear(width, 3 * width, size, seed, f"{role} ask")  # of all heads: one product
        self.output = linear(width, width, out_size, seed, f"{role} answer")
        self.mlp_in = linear(width, 4 * width, size, seed, f"{role} widen")
        self.mlp_out = linear(4 * width, width, out_size, seed, f"{role} narrow")
        self.attention_norm, self.mlp_norm = Norm(self.output.bias), Norm(self.output.bias)

    def forward(self, x: Float[Tensor, "*S b L width"]) -> Float[Tensor, "*S b L width"]:
        """Attention, then the two-layer network.

        Parameters
        ----------
        x
            Tokens, shape ``(*S, b, L, width)``.

        Returns
        -------
        Tensor
            Tokens, of the shape of x.
        """
        x = x + self.attention(self.attention_norm(x))  # (*S, b, L, width)
        hidden = self.mlp_in(self.mlp_norm(x))  # (*S, b, L, 4 width)
        return x + self.mlp_out(functional.gelu(hidden, approximate="tanh"))  # (*S, b, L, width)

    def attention(self, x: Float[Tensor, "*S b L width"]) -> Float[Tensor, "*S b L width"]:
        """Attention of every token to those up to itself, in all heads.

        Parameters
        ----------
        x
            Tokens, shape ``(*S, b, L, width)``.

        Returns
        -------
        Tensor
            Tokens, of the shape of x.
        """
        merged = self.query_key_value(x).unflatten(-1, (3, self.heads, -1))  # (*S, b, L, 3, h, k)
        query, key, value = merged.movedim(-3, 0).transpose(-2, -3)  # three of (*S, b, h, L, k)
        heads = self.attend(query, key, value)  # (*S, b, h, L, k)
        return self.output(heads.transpose(-2, -3).flatten(-2))  # (*S, b, L, width)


def linear(inputs: int, outputs: int, size: float, seed: Seeds, role: str) -> Linear:
    """An affine layer with Gaussian weights of standard deviation `size` and no bias at the start.

    Parameters
    ----------
    inputs, outputs
        Widths below and above.
    size
        Standard deviation of a weight at the start.
    seed
        A tuple of seeds gives an ensemble, whose axis leads weights and bias.
    role
        Names the draw; weights of one seed and two roles are independent.

    Returns
    -------
    Linear
        The layer, its weights of shape ``(*S, inputs, outputs)``.
    """
    return Linear(size * rng.normal((inputs, outputs), seed, role))


class GPT(nn.Module):
    r"""The decoder of GPT-2 without its vocabulary: a sequence of vectors in, a sequence of vectors out.

    .. math:: h \leftarrow h + \mathrm{Attn}(\mathrm{norm}(h)), \quad h \leftarrow h + \mathrm{MLP}(\mathrm{norm}(h))

    in every layer, learned positions before and a last norm after. Weights start as Gaussians of standard deviation
    sigma_0, those that write into h divided by the square root of how many do. A layer has 12 width² + 13 width
    parameters.

    Parameters
    ----------
    width
        Coordinates of a token, a multiple of ``heads``.
    layers
        How many blocks of attention and two-layer network.
    heads
        Of attention, of width / heads coordinates each.
    positions
        Tokens of the longest sequence.
    sigma_0
        Standard deviation of the initial weights.
    seed
        A tuple of seeds gives an ensemble of networks: each weight has one leading axis S.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or ``width`` is no multiple of ``heads``.

    Source: Radford et al. (2019).
    """

    @checked_arguments
    def __init__(self, width: Count, layers: Count, heads: Count, positions: Count, sigma_0: NonNegative = 0.02,
                 seed: Seeds = 0):
        super().__init__()
        if width % heads:
            raise ValueError(f"width must be a multiple of heads = {heads}; got {width}")
        self.position = nn.Parameter(sigma_0 * rng.normal((positions, width), seed, "positions"))
        out_size = sigma_0 / (2 * layers) ** 0.5
        self.blocks = nn.ModuleList(Block(width, heads, sigma_0, out_size, seed, f"block {k}") for k in range(layers))
        self.norm = Norm(self.position[..., 0, :])

    def forward(self, x: Float[Tensor, "*S b L width"]) -> Float[Tensor, "*S b L width"]:
        """What each token knows after the last layer, of itself and of those before it.

        Parameters
        ----------
        x
            Tokens, shape ``(*S, b, L, width)``.

        Returns
        -------
        Tensor
            Tokens, of the shape of x.
        """
        if x.shape[-2] > self.position.shape[-2]:
            raise ValueError(f"a sequence must have at most {self.position.shape[-2]} tokens, the positions that the "
                             f"network knows; got {x.shape[-2]}")
        x = x + self.position[..., None, : x.shape[-2], :]  # (*S, b, L, width)
        for block in self.blocks:
            x = block(x)  # (*S, b, L, width)
        return self.norm(x)  # (*S, b, L, width)


class PromptTransformer(nn.Module):
    r"""A `GPT` that continues :math:`x_1, y_1, \dots, x_n, y_n, x_q` with its prediction of :math:`y_q`.

    Tokens live in d + 1 coordinates: an input is (x, 0), a label (0, y). A linear map embeds them, another reads the
    prediction out at the tokens of the inputs; there the network knows every pair before, and no label of its own.

    Parameters
    ----------
    d
        Coordinates of an input.
    n
        Examples of the longest prompt.
    width, layers, heads, sigma_0
        Of the `GPT`.
    seed
        With a tuple of seeds, an ensemble, the first axis of the prompts is that of the networks, of length 1 if all
        read the same prompts.
    dtype
        Of the parameters.

    Raises
    ------
    ValueError
        If an argument is out of its domain, or ``width`` is no multiple of ``heads``.

    Source: Garg et al. (2022), Section 2; there a label takes the first coordinate of an input.

    Examples
    --------
    >>> network = PromptTransformer(d=3, n=4, width=8, layers=1)
    >>> network.predictions(torch.zeros(2, 5, 3), torch.zeros(2, 5)).shape  # 2 prompts, every prefix of each
    torch.Size([2, 5])
    """

    @checked_arguments
    def __init__(self, d: Count, n: Count, width: Count = 64, layers: Count = 3, heads: Count = 2,
                 sigma_0: NonNegative = 0.02, seed: Seeds = 0, dtype: torch.dtype = torch.float32):
        super().__init__()
        self.d = d
        self.embedding = linear(d + 1, width, (d + 1) ** -0.5, seed, "read-in")
        self.gpt = GPT(width, layers, heads, 2 * n + 1, sigma_0, seed)
        self.read_out = linear(width, 1, width**-0.5, seed, "read-out")
        self.to(dtype)

    def predictions(self, x: Float[Tensor, "*B N d"], y: Float[Tensor, "*B N"]) -> Float[Tensor, "*E N"]:
        """The prediction of every label from the pairs before it: one pass, N prompts of growing length.

        Parameters
        ----------
        x
            Inputs, shape ``(*B, N, d)``.
        y
            Their labels, shape ``(*B, N)``; the last is not read.

        Returns
        -------
        Tensor
            Predictions, shape ``(*E, N)``.
        """
        if x.shape[-1] != self.d:
            raise ValueError(f"inputs must have d = {self.d} coordinates; got shape {tuple(x.shape)}")
        pairs = torch.stack([functional.pad(x, (0, 1)), functional.pad(y[..., None], (self.d, 0))], -2)
        # (..., N, 2, d + 1)
        tokens = pairs.flatten(-3, -2)[..., :-1, :]  # (..., 2N - 1, d + 1): nobody looks at the last label
        lead, axes = tokens.shape[:-2], self.gpt.position.ndim - 2
        h = self.embedding(tokens.reshape(*lead[:axes], -1, *tokens.shape[-2:]))  # (*S, b, 2N - 1, width)
        out = self.read_out(self.gpt(h))[..., ::2, 0]  # (*S, b, N): at the tokens of the inputs
        return out.reshape(*out.shape[:axes], *lead[axes:], -1)  # (..., N)

    def forward(self, context: Context, query: Float[Tensor, "*B q d"]) -> Float[Tensor, "*E q"]:
        """Predictions at the queries; each reads the context and itself, not the other queries.

        Parameters
        ----------
        context
            Examples, inputs ``(*B, n, d)`` and labels ``(*B, n)``.
        query
            Queries, shape ``(*B, q, d)``.

        Returns
        -------
        Tensor
            Predictions, shape ``(*E, q)``.
        """
        copies = (*query.shape[:-1], *context.x.shape[-2:])
        x = torch.cat([context.x[..., None, :, :].expand(copies), query[..., None, :]], -2)  # (..., q, n + 1, d)
        y = functional.pad(context.y[..., None, :].expand(copies[:-1]), (0, 1))  # (..., q, n + 1)
        return self.predictions(x, y)[..., -1]  # (..., q)


def tiny(d: int, n: int, **how) -> PromptTransformer:
    """3 layers of width 64 with 2 heads.

    Parameters
    ----------
    d, n
        Coordinates of an input; examples of the longest prompt.
    **how
        Other arguments of `PromptTransformer`.

    Returns
    -------
    PromptTransformer
        The network before training.
    """
    return PromptTransformer(d, n, 64, 3, 2, **how)


def small(d: int, n: int, **how) -> PromptTransformer:
    """6 layers of width 128 with 4 heads.

    Parameters
    ----------
    d, n
        Coordinates of an input; examples of the longest prompt.
    **how
        Other arguments of `PromptTransformer`.

    Returns
    -------
    PromptTransformer
        The network before training.
    """
    return PromptTransformer(d, n, 128, 6, 4, **how)


def standard(d: int, n: int, **how) -> PromptTransformer:
    """12 layers of width 256 with 8 heads, the size of the literature.

    Parameters
    ----------
    d, n
        Coordinates of an input; examples of the longest prompt.
    **how
        Other arguments of `PromptTransformer`.

    Returns
    -------
    PromptTransformer
        The network before training.
    """
    return PromptTransformer(d, n, 256, 12, 8, **how)
