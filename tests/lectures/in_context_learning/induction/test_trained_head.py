"""Training of both layers: it arrives at the parent, also where the first gradient prefers the place itself."""

from flbook.lectures.in_context_learning.induction import trained_head


def test_it_turns_from_itself_to_the_parent():
    setting = trained_head.experiment.setting(seed=(0, 1), count=1500, steps=100)
    found = trained_head.run(setting).mean("seed")
    end = found.isel(step=-1)
    assert (end.parent > end.itself).all()
    early = found.sel(rho=0.2).sel(step=20, method="nearest")
    assert early.itself > early.parent, "the first gradient points to the place itself"
    assert (end.loss < found.loss.isel(step=0)).all() and (end.beta > 1).all()
