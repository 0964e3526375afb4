"""What the lectures measure, for a network of one's own.

A network is a callable and its parameters, ``f(params, x)``, with `params` a dict of tensors; `functional` makes both
from an ``nn.Module``. Outputs are ``(n,)`` or ``(n, k)``; ``(n, 1)`` counts as ``(n,)``.

>>> import torch
>>> from flbook import observe
>>> f, params = observe.functional(torch.nn.Linear(3, 1))
>>> observe.agop(f, params, torch.randn(10, 3)).shape  # the average gradient outer product
torch.Size([3, 3])
"""

from flbook.observe.bisection import Border, border
from flbook.observe.functions import functional
from flbook.observe.hessian import Estimate, TopEigenvalue, curvature_along, hessian_trace, sharpness
from flbook.observe.jacobians import agop, alignment, ntk
from flbook.observe.overlaps import OrderParameters, order_parameters
from flbook.observe.widths import CoordinateCheck, coordinate_check

__all__ = ["Border", "CoordinateCheck", "Estimate", "OrderParameters", "TopEigenvalue", "agop", "alignment", "border",
           "coordinate_check", "curvature_along", "functional", "hessian_trace", "ntk", "order_parameters", "sharpness"]
