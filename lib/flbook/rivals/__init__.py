"""Rivals: the same experiment by models that learn no feature, and by the best method known.

Many impressive curves are also produced by a model whose features never move. A problem brings its own rivals, on the
same data from the same draw, to be trained by the same rule (`rival`):

    linear   no activation: a linear classifier on the sum of the patches
    lazy     the network's first-order expansion about its start: a kernel method, features fixed at their gradients
    frozen   first layer fixed, only the output weights train: random features

Data bring rivals that are solved, with their penalty tuned (`for_`): linear, lazy, kernel and random features for any
data of one's own, and for a data model of the book also the best method known.

>>> from flbook import SignalNoise, rivals
>>> data = SignalNoise(n=30, d=40, mu_norm=4.0)
>>> sample, fresh = data.draw(seed=0), data.draw_test(200, seed=0)
>>> found = {name: predict(sample.x, sample.observed, fresh.x) for name, predict in rivals.for_(data).items()}
>>> list(found)
['linear', 'lazy', 'kernel', 'random features', 'averaging', 'told the patch']
>>> bool((found["told the patch"].sign() == fresh.y).all())
True
"""

from flbook.rivals.solved import Predictor, best_known, for_
from flbook.rivals.trained import RIVALS, FrozenCNN, Rival, rival

__all__ = ["RIVALS", "FrozenCNN", "Predictor", "Rival", "best_known", "for_", "rival"]
