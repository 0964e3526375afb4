"""Pictures with flipped labels at a tiny preset: which are fitted last."""

from flbook.lectures.benign_overfitting.label_noise_stages import label_noise_images as pictures
from flbook.lectures.benign_overfitting.label_noise_stages.label_noise_images import experiment

TINY = experiment.setting("tiny", model=("network",), pair=("3 8",))


def test_flipped_pictures_come_last():
    run = experiment.measure(TINY.thinned(n=20, epochs=100, every=10)).squeeze()
    assert (run.train_clean[:, -1] == 1).all() and run.noise_flipped[:, -1].mean() > 0.9
    assert run.noise_flipped.min("epoch").mean() < 0.5
    assert run.small_loss[:, -1].mean() > run.small_loss.min("epoch").mean()
    assert 0 <= int(pictures.best_epoch(run)) <= 100
