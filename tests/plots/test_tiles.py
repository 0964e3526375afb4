"""Sheets of small pictures: where each tile lands, and how bright a weight is."""

import numpy as np

from flbook import plots
from flbook.plots.tiles import mosaic, sizes


def test_every_tile_has_its_place():
    tiles = np.arange(5)[:, None, None, None] / 10 + np.zeros((5, 3, 2, 2))
    whole = mosaic(tiles, columns=3)
    assert whole.shape == (5, 8, 3)
    for k in range(5):
        top, left = 3 * (k // 3), 3 * (k % 3)
        assert (whole[top : top + 2, left : left + 2] == k / 10).all()
    assert (whole[2] == 1).all() and (whole[:, 2] == 1).all(), "white between them"
    assert (whole[3:, 6:] == 1).all(), "and where there is no tile"


def test_channels_are_colours():
    tile = np.zeros((1, 3, 1, 1))
    tile[0, 2] = 1
    assert mosaic(tile, 1)[0, 0].tolist() == [0, 0, 1]


def test_a_weight_is_as_bright_as_it_is_large_beside_its_own_filter():
    filters = np.zeros((2, 3, 1, 2))
    filters[0, 0, 0] = [1.0, -1.0]  # rms sqrt(2 / 6)
    filters[1] = 1e-3
    found = sizes(filters)
    np.testing.assert_allclose(found[0, 0, 0], [1 / (2.5 * (2 / 6) ** 0.5)] * 2)
    np.testing.assert_allclose(found[1], 0.4)
    assert (found[0, 1:] == 0).all() and (sizes(np.zeros((1, 3, 2, 2))) == 0).all()
    assert sizes(np.eye(25)[:1].reshape(1, 1, 5, 5).repeat(3, 1)).max() == 1


def test_sheets():
    rng = np.random.default_rng(0)
    fig = plots.picture_sheet(rng.random((12, 3, 8, 8)), [str(k) for k in range(12)], title="which?")
    (ax,) = fig.axes
    names = [text.get_text() for text in ax.texts]
    assert names == [str(k) for k in range(12)] and ax.get_title(loc="left") == "which?"
    fig = plots.filter_sheet({"before": rng.normal(size=(16, 3, 5, 5)), "after": rng.normal(size=(16, 3, 5, 5))})
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["before", "after"]
    assert all(ax.images[0].get_array().shape == (11, 47, 3) for ax in fig.axes)
