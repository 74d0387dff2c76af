"""How near two results must be: equal bits whatever the number of threads, or within a tolerance."""

import numpy as np

import rushlight as torch


def assert_same_bits(function):
    """Calls function() with 1, 2, 3 and 5 threads; it returns a tensor or several."""
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 3, 5):
            torch.set_num_threads(threads)
            result = function()
            results.append([result] if isinstance(result, torch.Tensor) else list(result))
        for other in results[1:]:
            for a, b in zip(results[0], other, strict=True):
                np.testing.assert_array_equal(bits(a), bits(b))
    finally:
        torch.set_num_threads(before)


def bits(t):
    t = t.detach()
    return (t.float() if t.dtype in (torch.float16, torch.bfloat16) else t).contiguous().numpy()


def assert_near(actual, expected, rtol=2e-5, atol=2e-5):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    np.testing.assert_allclose(bits(actual), bits(expected), rtol=rtol, atol=atol)
