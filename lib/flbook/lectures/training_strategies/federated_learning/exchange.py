"""What a federation is worth, in samples of a client that trains alone: a power of the mean agreement says so."""

import numpy as np
import xarray as xr

from flbook import fits
from flbook.lectures.training_strategies.federated_learning.federation import agreeing


def agreements(federated: xr.DataArray) -> xr.DataArray:
    """Mean agreement of every cell; dimensions (clients, agreement)."""
    return agreeing(federated.clients, federated.agreement)


def exponent(federated: xr.DataArray, alone: xr.DataArray, samples: int) -> fits.Fit:
    """The power p for which a federation of N samples errs like a client alone with N chi^p, by the mean agreement.

    By least squares over all cells with 0 < chi < 1; between its samples the error of the client alone is a straight
    line in log n.
    """
    inner = federated.sel(agreement=(federated.agreement > 0) & (federated.agreement < 1))
    log_share = np.log(agreements(inner)).transpose("clients", "agreement").to_numpy().ravel()
    cells = inner.stack(cell=("clients", "agreement")).drop_vars(("clients", "agreement", "cell"))
    both = xr.concat([cells, alone.rename(n="cell").drop_vars("cell")], "cell")
    grid, powers = np.log(alone.n.to_numpy()), np.linspace(0, 4, 81)
    at = np.log(samples) + powers[:, None] * log_share

    def fitted(means):
        """Of one row of means or several: (R, cells and client) -> (R,)."""
        found = []
        for row in means:
            missed = ((np.interp(at, grid, row[len(log_share) :]) - row[: len(log_share)]) ** 2).sum(1)
            k = min(max(missed.argmin(), 1), len(powers) - 2)
            bend, slope = missed[k - 1] - 2 * missed[k] + missed[k + 1], missed[k + 1] - missed[k - 1]
            found.append(powers[k] - (slope / bend / 2 if bend > 0 else 0) * (powers[1] - powers[0]))
        return np.array(found)

    return fits.statistic(both, fitted, ("cell",))
