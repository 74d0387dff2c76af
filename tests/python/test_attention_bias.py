"""Names of attention kernels, and causal masks that know their corner."""

import pytest

import rushlight as rl
from rushlight.nn import functional as F
from rushlight.nn.attention import SDPBackend, bias


def test_backends_are_no_numbers():
    assert not isinstance(SDPBackend.MATH, int)
    assert SDPBackend.MATH != 0
    assert int(SDPBackend.FLASH_ATTENTION) == 1
    assert f"{SDPBackend.MATH} {SDPBackend.MATH!r}" == "SDPBackend.MATH <SDPBackend.MATH: 0>"
    with pytest.raises(TypeError):
        SDPBackend.MATH < SDPBackend.FLASH_ATTENTION  # noqa: B015


@pytest.mark.parametrize("sizes", [(5, 5), (3, 7), (7, 3)])
@pytest.mark.parametrize("corner", ["upper_left", "lower_right"])
@pytest.mark.filterwarnings("ignore:A lower right causal mask")
def test_causal_masks(sizes, corner):
    rows, columns = sizes
    mask = getattr(bias, f"causal_{corner}")(rows, columns)
    offset = columns - rows if corner == "lower_right" else 0
    expected = [[j <= i + offset for j in range(columns)] for i in range(rows)]
    assert mask._materialize().tolist() == expected
    assert mask.shape == sizes
    query, key, value = (rl.randn(2, 2, n, 4, dtype=rl.float64) for n in (rows, columns, columns))
    query.requires_grad_()
    own = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    plain = F.scaled_dot_product_attention(query, key, value, attn_mask=rl.tensor(expected))
    rl.testing.assert_close(own, plain, equal_nan=True)
    by_own, by_plain = (rl.autograd.grad(y.nansum(), query)[0] for y in (own, plain))
    rl.testing.assert_close(by_own, by_plain, equal_nan=True)


def test_what_causal_masks_refuse():
    x = rl.randn(1, 1, 3, 4)
    with pytest.raises(ValueError, match="should not be used with causal=True"):
        F.scaled_dot_product_attention(x, x, x, bias.causal_upper_left(3, 3), is_causal=True)
    with pytest.raises(RuntimeError):
        F.scaled_dot_product_attention(x, x, x, bias.causal_upper_left(3, 5))
    with pytest.raises(AssertionError, match="CausalVariant"):
        bias.CausalBias(1, 2, 3)
    with pytest.warns(UserWarning, match="NaN"):
        bias.causal_lower_right(3, 2)
