r"""A `PromptTransformer` opened: its tokens after every layer, what is read off them, and runs with changed tokens.

The tokens between the layers are the residual stream. Layer 0 is the embedding; the token of input i stands at place
2i, that of its label at 2i + 1.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from flbook.models.transformer import PromptTransformer

Stream = Float[Tensor, "S b L width"]


class OpenedPass(NamedTuple):
    """What one pass leaves."""

    answers: Float[Tensor, "S b N"]  # predictions of every label
    stream: list[Stream]  # tokens after each layer, the embedding first


def opened(network: PromptTransformer, x: Float[Tensor, "#S b N d"], y: Float[Tensor, "#S b N"]) -> OpenedPass:
    """Predictions of an ensemble, and its tokens after every layer; the last label is not read."""
    pairs = torch.stack([functional.pad(x, (0, 1)), functional.pad(y[..., None], (network.d, 0))], -2)
    tokens = pairs.flatten(-3, -2)[..., :-1, :]  # (S, b, L, d + 1) with L = 2N - 1
    start = network.embedding(tokens) + network.gpt.position[..., None, : tokens.shape[-2], :]
    return continued(network, start, 0)


def continued(network: PromptTransformer, tokens: Stream, layer: int) -> OpenedPass:
    """What the layers above `layer` make of tokens that may have been changed there."""
    stream = [tokens]
    for block in network.gpt.blocks[layer:]:
        stream.append(block(stream[-1]))
    return OpenedPass(network.read_out(network.gpt.norm(stream[-1]))[..., ::2, 0], stream)


class LinearProbe(NamedTuple):
    """Affine maps from a token to numbers, one for each member of an ensemble."""

    weight: Float[Tensor, "S width k"]
    token_mean: Float[Tensor, "S width"]
    mean: Float[Tensor, "S k"]

    def __call__(self, tokens: Stream) -> Float[Tensor, "S b L k"]:
        """What the probe reads off the tokens."""
        return (tokens - self.token_mean[:, None, None]) @ self.weight[:, None] + self.mean[:, None, None]


def probe(tokens: Stream, truth: Float[Tensor, "#S b L k"], lam: float = 1e-5) -> LinearProbe:
    """The best affine map from tokens to the truth, by least squares with a ridge that is small beside the tokens."""
    h, z = tokens.flatten(1, 2), truth.expand(len(tokens), *truth.shape[1:]).flatten(1, 2)  # (S, b L, ...)
    mean, centre = h.mean(1), z.mean(1)
    h, z = h - mean[:, None], z - centre[:, None]
    moment = h.mT @ h / h.shape[1]
    size = moment.diagonal(dim1=-2, dim2=-1).mean(-1)[:, None, None]
    eye = torch.eye(h.shape[-1], dtype=h.dtype, device=h.device)
    return LinearProbe(torch.linalg.solve(moment + lam * size * eye, h.mT @ z / h.shape[1]), mean, centre)


class TokenSubspace(NamedTuple):
    """A subspace of the tokens, one for each member, and the tokens' mean."""

    basis: Float[Tensor, "S width k"]  # orthonormal
    mean: Float[Tensor, "S width"]

    def part(self, tokens: Stream) -> Stream:
        """What tokens have in it, less the mean."""
        return (tokens - self.mean[:, None, None]) @ self.basis[:, None] @ self.basis[:, None].mT


def covariance_subspace(tokens: Stream, truth: Float[Tensor, "#S b L k"]) -> TokenSubspace:
    """Where the tokens covary with the truth: without it no affine map predicts the truth better than its mean."""
    h, z = tokens.flatten(1, 2), truth.expand(len(tokens), *truth.shape[1:]).flatten(1, 2)
    mean = h.mean(1)
    return TokenSubspace(torch.linalg.qr((h - mean[:, None]).mT @ (z - z.mean(1, keepdim=True)))[0], mean)


def erased(tokens: Stream, subspace: TokenSubspace, places: slice) -> Stream:
    """Tokens at these places without their part in the subspace; its mean stays."""
    tokens = tokens.clone()
    tokens[:, :, places] -= subspace.part(tokens[:, :, places])
    return tokens


def scores(read: Float[Tensor, "*E b L k"], truth: Float[Tensor, "*#E b L k"]) -> Float[Tensor, " *E"]:
    """Share of the variance of the truth that was read, R²; the mean over the k numbers."""
    lost = (read - truth).square().mean((-3, -2))  # (..., k)
    return 1 - (lost / truth.flatten(-3, -2).var(-2)).mean(-1)


def correlations(answers: Float[Tensor, "*E b"], rules: Float[Tensor, "*#E b k"]) -> Float[Tensor, "*E k"]:
    """The correlation of the answers with those of k rules over the prompts, about 0, the mean of all of them."""
    product = (answers[..., None] * rules).sum(-2)
    return product / (answers.square().sum(-1)[..., None] * rules.square().sum(-2)).sqrt()
