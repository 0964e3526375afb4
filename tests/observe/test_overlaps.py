"""Order parameters of an ensemble."""

import pytest
import torch

from flbook import observe


def test_inner_products_of_an_ensemble_with_its_teacher():
    weights, teacher = torch.randn(4, 5, 3), torch.tensor([[1.0, 0, 0], [0, 2.0, 0]])
    weights[0, 0] = 0
    found = observe.order_parameters(weights, teacher)
    torch.testing.assert_close(found.overlaps, torch.stack([weights[..., 0], 2 * weights[..., 1]], -1))
    torch.testing.assert_close(found.students.diagonal(dim1=-2, dim2=-1), weights.square().sum(-1))
    assert found.teachers.tolist() == [[1, 0], [0, 4]] and found.cosines[0, 0].tolist() == [0, 0]
    torch.testing.assert_close(found.cosines[1, 2, 1], weights[1, 2, 1] / weights[1, 2].norm())


@pytest.mark.usefixtures("without_type_checks")
def test_other_dimensions_are_refused():
    with pytest.raises(ValueError, match="one dimension d; got 3 and 2"):
        observe.order_parameters(torch.ones(5, 3), torch.ones(1, 2))
