"""Second derivatives of products whose factors are zero: what a zero hides is no zero to them."""

import pytest

import rushlight as m
from rushlight.autograd import gradcheck, gradgradcheck

INDEX = m.tensor([0, 1, 0, 0])

# Each multiplies the five numbers of x, or groups of them.
PRODUCTS = {
    "prod": lambda x: x.prod(),
    "prod.dim_int": lambda x: x.prod(0),
    "cumprod": lambda x: x.cumprod(0),
    "scatter_reduce": lambda x: x[:2].scatter_reduce(0, INDEX[:3], x[2:], "prod"),
    "scatter_reduce_": lambda x: x[:2].clone().scatter_reduce_(0, INDEX[:3], x[2:], "prod"),
    "scatter_reduce, source": lambda x: x[:2].scatter_reduce(
        0, INDEX, x[1:], "prod", include_self=False
    ),
    "times": lambda x: x[0] * x[1] * x[2] * x[3] * x[4],
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("zeros", [(), (2,), (0,), (0, 2), (2, 4), (1, 3)])
def test_second_derivatives_where_factors_are_zero(name, zeros):
    x = m.tensor([1.5, -0.7, 0.9, 2.0, -1.3], dtype=m.float64)
    x[list(zeros)] = 0
    x.requires_grad_()
    assert gradcheck(PRODUCTS[name], x)
    assert gradgradcheck(PRODUCTS[name], x)
