"""Problems in weights: a network, data and a loss, differentiated by autograd; trained freely, or held lazy."""

import copy
from functools import reduce
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from flbook.shapes import broadcasts, per_member
from flbook.training.losses import check_labels, logistic
from flbook.training.problem import Params, Problem, gradient_of


class Training(Problem):
    r"""Minimise :math:`L_S(w) = \frac1n \sum_i \ell(f(w, x_i), \tilde y_i)` for every member of an ensemble at once.

    Parameters
    ----------
    model
        A module whose forward maps ``x`` to outputs ``(*E, n)`` or ``(*E, n, 1)``, or logits ``(*E, n, classes)`` if
        the loss takes them; its parameters carry the ensemble axes, a module of one's own has none. Where the axis of
        the samples is in x follows from the labels, unless the model's attribute ``sample_axes`` says how many axes
        one sample has.
    x, observed
        Samples and the labels of the loss; ensemble axes lead, or are absent where all members share the data.
    loss
        One of `flbook.training.losses`.

    Raises
    ------
    ValueError
        If shapes clash, x is not finite, labels are not what the loss takes, or the model has no parameters, or a part
        in training mode that draws numbers or changes buffers at every call (dropout, batch normalisation).

    Examples
    --------
    >>> from flbook import SignalNoise, TwoLayerCNN
    >>> sample = SignalNoise(n=20, d=100).draw(seed=(0, 1))
    >>> problem = Training(TwoLayerCNN(d=100, m=4, seed=(0, 1)), sample.x, sample.observed)
    >>> problem.train_loss(problem.start()).shape, problem.gradient(problem.start())["w"].shape
    (torch.Size([2]), torch.Size([2, 2, 4, 100]))
    """

    def __init__(self, model: nn.Module, x: Tensor, observed: Tensor, loss=logistic):
        check_model(model)
        getattr(loss, "check", check_labels)(observed)
        outside = ~torch.isfinite(x)
        if bool(outside.any()):
            raise ValueError(f"x must be finite; found {x[outside].flatten()[0].item():g}")
        lead = _samples_axis(model, x, observed)
        like = next(model.parameters())
        self.sample_axes = x.ndim - 1 - lead
        self.places, self.total = None, observed.shape[-1]  # of all samples: which are here, and how many there are
        self.model, self.x, self.observed, self.loss, self.column = model, x.to(like), observed.to(like), loss, False
        self.ensemble = self._members(self.x[(0,) * lead], self.observed[(0,) * (observed.ndim - 1)])
        for name, given in (("x", x.shape[:lead]), ("observed", observed.shape[:-1])):
            if not broadcasts(given, self.ensemble):
                raise ValueError(f"the model's parameters carry the ensemble axes, of shape {tuple(self.ensemble)}; "
                                 f"those of {name}, of shape {tuple(given)}, do not fit them")

    def _members(self, x: Tensor, observed: Tensor) -> torch.Size:
        """The ensemble axes, from the outputs on one member's data; outputs in a column are noticed."""
        outputs, n = self.predict(self.start(), x).shape, len(observed)
        classes = getattr(self.loss, "takes_classes", False)
        self.column = not classes and len(outputs) > 1 and outputs[-1] == 1 and (outputs[-2] == n > 1)
        ensemble = outputs[:-2] if classes or self.column else outputs[:-1]
        wanted = "(*E, n, classes)" if classes else "(*E, n) or (*E, n, 1)"
        if outputs[len(ensemble) : len(ensemble) + 1] != (n,) or len(outputs) < 1 + classes:
            raise ValueError(f"the model's outputs must have the shape {wanted} for {n} labels, E the ensemble axes of "
                             f"its parameters; they have {tuple(outputs)} for x of shape {tuple(x.shape)}")
        mixed = next((name for name, p in self.model.named_parameters() if p.shape[: len(ensemble)] != ensemble), None)
        mixed = mixed or (self._mixed(x, len(ensemble)) if len(ensemble) else None)
        if mixed:
            raise ValueError(f"the model's outputs must have the shape {wanted}; they have {tuple(outputs)} for x of "
                             f"shape {tuple(x.shape)} and labels of shape {tuple(observed.shape)}, but its parameter "
                             f"{mixed} does not carry the axes {tuple(ensemble)} of an ensemble")
        return ensemble

    def _mixed(self, x: Tensor, axes: int) -> str | None:
        """A parameter of other members that the outputs of the first depend on; the book's models have none."""
        if hasattr(self.model, "sample_axes") or x.device.type == "meta":
            return None
        params = {name: p.requires_grad_() for name, p in self.start().items()}
        first = self.predict(params, x)[(0,) * axes].sum()
        slopes = torch.autograd.grad(first, list(params.values()), allow_unused=True, materialize_grads=True)
        others = (slope.flatten(0, axes - 1)[1:] for slope in slopes)
        return next((name for name, slope in zip(params, others, strict=True) if bool(slope.any())), None)

    def to(self, *where: Any) -> "Training":
        """On another device or in another dtype.

        Parameters
        ----------
        *where
            A device, a dtype or both, as ``Tensor.to`` takes them.

        Returns
        -------
        Training
            A copy with a model of its own.
        """
        there, device = copy.copy(self), torch.empty(0).to(*where).device
        there.model = copy.deepcopy(self.model).to(*where)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(there, name, value.to(*where) if value.is_floating_point() else value.to(device))
        return there

    def start(self) -> Params:
        """The parameters before training.

        Returns
        -------
        Params
            Copies of the model's parameters by name, each of shape ``(*E, ...)``.
        """
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """Outputs on the training samples, or on `x`.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            Samples, shape ``(*#E, n, ...)``; those of training if None.

        Returns
        -------
        Tensor
            Outputs, shape ``(*E, n)``, or logits, shape ``(*E, n, classes)``.
        """
        outputs = torch.func.functional_call(self.model, params, (self.x if x is None else x.to(self.x),))
        return outputs.squeeze(-1) if self.column else outputs

    def train_loss(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Tensor:
        """Mean loss of each member, shape ``*E``; at other inputs or labels where these are given.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            Samples, shape ``(*#E, n, ...)``; those of training if None.
        observed
            Labels, shape ``(*#E, n)``; those of training if None.

        Returns
        -------
        Tensor
            Mean over the n samples, one number a member.
        """
        labels = self.observed if observed is None else observed
        return self.loss(self.predict(params, x), labels).mean(-1)

    def gradient(self, params: Params, *, x: Tensor | None = None, observed: Tensor | None = None) -> Params:
        """Gradient of each member's loss: one backward pass, since members do not share parameters.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            Samples, shape ``(*#E, n, ...)``; those of training if None.
        observed
            Labels, shape ``(*#E, n)``; those of training if None.

        Returns
        -------
        Params
            Gradient in the form of `params`.
        """
        return gradient_of(lambda leaves: self.train_loss(leaves, x=x, observed=observed), params)

    def norm(self, direction: Params) -> Tensor:
        """Euclidean length of a direction in parameter space, shape ``*E``.

        Parameters
        ----------
        direction
            A direction in the form of the parameters, each of shape ``(*E, ...)``.

        Returns
        -------
        Tensor
            Length over all parameters, one number a member.
        """
        squares = (p.square().reshape(*self.ensemble, -1).sum(-1) for p in direction.values())
        return reduce(torch.add, squares).sqrt()

    def output_gradients(self, params: Params) -> Tensor:
        r"""Inner products :math:`\langle\nabla f_i, \nabla f_j\rangle`, by one backward pass a sample: small n only.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.

        Returns
        -------
        Tensor
            Matrix of inner products, shape ``(*E, n, n)``.
        """
        rows = sample_gradients(self, params, self.x)
        return torch.einsum("...nk,...mk->...nm", rows, rows)

    def batch(self, places: Tensor) -> "Training":
        """The same problem on some of its samples, the same places for every member.

        Parameters
        ----------
        places
            Places of the b samples to keep, shape ``(b,)``.

        Returns
        -------
        Training
            The problem on x of shape ``(*#E, b, ...)``, with the same model.
        """
        part = copy.copy(self)
        part.x = self.x.index_select(self.x.ndim - 1 - self.sample_axes, places)
        part.observed = self.observed.index_select(-1, places)
        part.places, part.total = places if self.places is None else self.places[places], self.total
        return part

    def sample_indices(self) -> tuple[int, Tensor | slice]:
        """How many samples there are, and which of them this problem has.

        Returns
        -------
        tuple
            Number of all samples, and places of this problem's among them: a tensor of shape ``(b,)``, or a slice of
            everything.
        """
        return self.total, slice(None) if self.places is None else self.places

    def lazy(self) -> "LazyTraining":
        """The network's first-order expansion about its initial weights.

        Returns
        -------
        LazyTraining
            The lazy problem on the same data, with the same loss.
        """
        return LazyTraining(self.model, self.x, self.observed, self.loss)


def check_model(model: nn.Module) -> None:
    """Refuse a module that cannot be trained as a function of its parameters and inputs alone.

    Parameters
    ----------
    model
        Any module.

    Raises
    ------
    ValueError
        If it has no parameters, or a part in training mode draws numbers or changes buffers at every call.
    """
    if next(model.parameters(), None) is None:
        raise ValueError(f"the model, {type(model).__name__}, has no parameters to train")
    for name, part in model.named_modules():
        changes = isinstance(part, nn.modules.batchnorm._NormBase) and part.track_running_stats
        if part.training and (changes or isinstance(part, nn.modules.dropout._DropoutNd)):
            does = "changes its running averages" if changes else "draws other numbers"
            raise ValueError(f"the model's part {name or 'itself'}, {type(part).__name__}, is in training mode, in "
                             f"which it {does} at every call; call model.eval() first")


def _samples_axis(model: nn.Module, x: Tensor, observed: Tensor) -> int:
    """Which axis of x numbers the samples: as the model says, or the one that fits the labels and their own axes."""
    n, own = observed.shape[-1], getattr(model, "sample_axes", None)
    places = [x.ndim - 1 - own] if own is not None else [observed.ndim - 1, 0, x.ndim - 3]
    for place in places:
        if 0 <= place < x.ndim and x.shape[place] == n:
            return place
    found = x.shape[places[0]] if 0 <= places[0] < x.ndim else "no"
    hint = "" if own is not None else "; a model may say in `sample_axes` how many axes one sample has"
    raise ValueError(f"x holds {found} samples, shape {tuple(x.shape)}, but observed labels have shape "
                     f"{tuple(observed.shape)}{hint}")


def sample_gradients(problem: Training, params: Params, x: Tensor) -> Float[Tensor, "*E n params"]:
    """Gradient of every output in all parameters, flattened, by one backward pass a sample.

    Parameters
    ----------
    problem
        A problem whose outputs have the shape ``(*E, n)``.
    params
        Parameters by name, each of shape ``(*E, ...)``.
    x
        Samples, shape ``(*#E, n, ...)``.

    Returns
    -------
    Tensor
        Gradients, shape ``(*E, n, params)``, parameters in the order of the dictionary.
    """
    leaves = {name: p.detach().requires_grad_() for name, p in params.items()}
    outputs = problem.predict(leaves, x)
    members = len(problem.ensemble)
    if outputs.ndim > members + 1:
        raise ValueError(f"gradients are those of one output a sample; the outputs have shape {tuple(outputs.shape)}")
    found = []
    for i in range(outputs.shape[-1]):  # members share no parameter, so the sum over them mixes nothing
        grads = torch.autograd.grad(outputs[..., i].sum(), list(leaves.values()), retain_graph=True)
        found.append(torch.cat([g.flatten(members) for g in grads], -1))
    return torch.stack(found, -2)


class LazyTraining(Training):
    r"""Train :math:`f(w_0, x) + \langle \nabla f(w_0, x), w - w_0\rangle` instead of the network."""

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """The network's tangent at its start, by one forward-mode derivative.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            Samples, shape ``(*#E, n, ...)``; those of training if None.

        Returns
        -------
        Tensor
            Outputs, shape ``(*E, n)``, or logits, shape ``(*E, n, classes)``.
        """
        start = self.start()
        moved = {name: params[name] - start[name] for name in start}
        f_0, df = torch.func.jvp(lambda p: super(LazyTraining, self).predict(p, x), (start,), (moved,))[:2]
        return f_0 + df


class ScaledTraining(Training):
    r"""Train :math:`F = \alpha (f(w, x) - f(w_0, x))`: one dial from features that move to features that stay.

    A large :math:`\alpha` lets F fit the data while the weights hardly move, and training is that of `LazyTraining`; a
    small one asks the weights to grow. With a step size divided by :math:`\alpha^2`, the first steps of F are the same
    for every :math:`\alpha`.

    Source: Chizat et al. (2019), Section 1.

    Parameters
    ----------
    model, x, observed, loss
        Network, data, labels and loss, as `Training` takes them.
    alpha
        :math:`\alpha`, a positive number, or one a member, shape ``(*E,)``.
    """

    def __init__(self, model: nn.Module, x: Tensor, observed: Tensor, loss, alpha: float | Tensor):
        if not bool((torch.as_tensor(alpha) > 0).all()):
            raise ValueError(f"alpha must be positive, the factor of the output; got {alpha}")
        self.alpha, self.f_0 = alpha, None
        super().__init__(model, x, observed, loss)
        self.f_0 = super().predict(self.start()).detach()

    def predict(self, params: Params, x: Tensor | None = None) -> Tensor:
        """How far the outputs have moved from those before training, times alpha.

        Parameters
        ----------
        params
            Parameters by name, each of shape ``(*E, ...)``.
        x
            Samples, shape ``(*#E, n, ...)``; those of training if None.

        Returns
        -------
        Tensor
            Outputs, shape ``(*E, n)``, or logits, shape ``(*E, n, classes)``.
        """
        f = super().predict(params, x)
        if self.f_0 is None:  # being made: only the shape counts
            return f
        f_0 = self.f_0 if x is None else super().predict(self.start(), x)
        return per_member(self.alpha, f) * (f - f_0)

    def batch(self, places: Tensor) -> "ScaledTraining":
        """The same problem on some of its samples, less what the network said of them before training.

        Parameters
        ----------
        places
            Places of the b samples to keep, shape ``(b,)``.

        Returns
        -------
        ScaledTraining
            The problem on b samples, with the same model and alpha.
        """
        part = super().batch(places)
        assert isinstance(part, ScaledTraining) and self.f_0 is not None  # a copy of a problem that has been made
        part.f_0 = self.f_0.index_select(len(self.ensemble), places)
        return part

    def lazy(self) -> "LazyScaledTraining":
        """The tangent at the start, which is the limit as alpha grows.

        Returns
        -------
        LazyScaledTraining
            The lazy problem on the same data, with the same loss and alpha.
        """
        return LazyScaledTraining(self.model, self.x, self.observed, self.loss, self.alpha)


class LazyScaledTraining(LazyTraining, ScaledTraining):
    """The tangent of `ScaledTraining`, the limit that it has as alpha grows."""
