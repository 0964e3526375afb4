"""Trained decoders: what each member is shown, and a chain that is learned."""

import torch

from flbook.lectures.in_context_learning.chain_of_thought import trained_decoder
from flbook.runs.cells import cell_of


def test_members_see_steps_noisy_steps_or_blanks():
    setting = trained_decoder.experiment.setting("tiny", n=(300,), seed=(0,))
    data = trained_decoder.members(cell_of(setting, {"d": 6}))
    drawn = data.draw(200, 0, 0, "cpu")
    products = drawn.inputs[..., 6:]
    assert (products[0].abs() == 1).all() and (products[2] == 0).all()
    assert drawn.weights.tolist()[2] == [0, 0, 1] and abs(float(drawn.weights[0].sum()) - 1) < 1e-6
    last = drawn.targets[..., 0] * drawn.targets[..., 1] * drawn.targets[..., 2]
    assert (last[0] == 1).all() and 0.05 < float((last[1] < 0).float().mean()) < 0.25


def test_it_learns_a_chain_and_writes_it():
    setting = trained_decoder.experiment.setting("tiny", d=(4,), n=(500,), seed=(0,), width=32, layers=1, steps=250,
                                                 batch=64, lr=5e-3, warmup=20, points=200)
    found = trained_decoder.run(setting).squeeze()
    assert float(found.accuracy.sel(shown="steps")) > 0.8
    assert float(found.loss.sel(shown="steps")[-1]) < 0.2 < float(found.loss.sel(shown="noisy steps")[-1])


def test_answers_over_blanks_show_nothing():
    network = trained_decoder.ChainDecoder(8, width=8, layers=1, heads=2, seed=(0, 1))
    bits = torch.ones(2, 3, 6)
    said = trained_decoder.answer(network, bits, 3, torch.zeros(2, 1))
    padded = torch.cat([bits, torch.zeros(2, 3, 2)], -1)
    assert torch.equal(said, torch.where(network(padded)[..., -1] > 0, 1.0, -1.0))
