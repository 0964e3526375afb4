"""Many steps on facts: more are stored with time, and the grid's best is the one that is shown."""

from flbook.lectures.training_strategies.spectral_steps import many_steps


def test_more_steps_store_more():
    found = many_steps.run(many_steps.experiment.setting("tiny", steps=10))
    assert (found.stored.isel(step=-1) >= found.stored.isel(step=0)).all()
    assert found.step.values.tolist() == [1, 3, 10]
    assert ((found.best >= 0) & (found.best < 6)).all()
