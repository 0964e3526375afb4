"""What the lectures measure, for a network of one's own.

A network is a callable and its parameters, ``f(params, x)``, with `params` a dict of tensors; `functional` makes both
from an ``nn.Module``. Outputs are ``(n,)`` or ``(n, k)``; ``(n, 1)`` counts as ``(n,)``. An ensemble is a leading axis
of the parameters, and `members` asks a function of each: ``members(agop)(f, params, x)``.

=====================  =======================================================================================
`agop`                 along which inputs the outputs vary
`ntk`, `alignment`     the tangent kernel, and how alike two kernels are
`sharpness`,           the largest eigenvalue of a loss's Hessian, its trace, and the curvature along a direction
`hessian_trace`,
`curvature_along`
`probe`, `erase`       what a linear probe reads in features, against chance, and features without a concept
`signal_and_noise`     how much of each layer's movement is shared signal, and how much memorises single samples
`order_parameters`     inner products of learned neurons with a teacher's
`coordinate_check`     how the change of each layer scales with the width
`border`, `exponent`   where a quantity crosses a level; the exponent of a curve, over a window that is straight
=====================  =======================================================================================

>>> import torch
>>> from flbook import observe
>>> f, params = observe.functional(torch.nn.Linear(3, 1))
>>> observe.agop(f, params, torch.randn(10, 3)).shape  # the average gradient outer product
torch.Size([3, 3])
"""

from flbook.observe.bisection import Border, border
from flbook.observe.ensembles import members
from flbook.observe.functions import functional
from flbook.observe.hessian import Estimate, TopEigenvalue, curvature_along, hessian_trace, sharpness
from flbook.observe.jacobians import agop, alignment, ntk
from flbook.observe.moved import Movement, signal_and_noise
from flbook.observe.overlaps import OrderParameters, order_parameters
from flbook.observe.powers import PowerLaw, exponent
from flbook.observe.read_out import Eraser, Reading, erase, probe
from flbook.observe.widths import CoordinateCheck, coordinate_check

__all__ = ["Border", "CoordinateCheck", "Eraser", "Estimate", "Movement", "OrderParameters", "PowerLaw", "Reading",
           "TopEigenvalue", "agop", "alignment", "border", "coordinate_check", "curvature_along", "erase", "exponent",
           "functional", "hessian_trace", "members", "ntk", "order_parameters", "probe", "sharpness",
           "signal_and_noise"]
