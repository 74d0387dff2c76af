"""`rushlight.testing`: comparison of tensors, random ones, classes of tests."""

import pytest

import rushlight as torch
from rushlight.testing import assert_close, make_tensor


def test_assert_close_says_where():
    a = torch.arange(12.0).reshape(3, 4)
    b = a.clone()
    b[1, 2] += 0.5
    with pytest.raises(AssertionError, match=r"Mismatched elements: 1 / 12 \(8.3%\)") as error:
        assert_close(b, a)
    assert "Greatest absolute difference: 0.5 at index (1, 2)" in str(error.value)
    with pytest.raises(AssertionError, match=r"item \['x'\]\[1\]"):
        assert_close({"x": [a, b]}, {"x": [a, a]})
    assert_close(b, a, rtol=0, atol=0.5)
    assert_close([1, 2.0, None, True], [1, 2.0, None, True])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_assert_close_knows_dtypes(dtype):
    a = torch.ones(4, dtype=dtype)
    step = torch.finfo(dtype).eps
    assert_close(a, a + step)
    with pytest.raises(AssertionError):
        assert_close(a, a * 1.1)


def test_make_tensor():
    for dtype in (torch.bool, torch.uint8, torch.int64, torch.float32, torch.complex64):
        t = make_tensor(5, 4, dtype=dtype, device="cpu")
        assert t.shape == (5, 4) and t.dtype is dtype
    t = make_tensor((4, 6), dtype=torch.float64, low=2, high=3, noncontiguous=True)
    assert not t.is_contiguous() and bool(((t >= 2) & (t < 3)).all())
    with pytest.raises(ValueError, match="low < high"):
        make_tensor(3, dtype=torch.int64, low=3, high=2)


def test_classes_of_tests_with_other_settings():
    from rushlight._dynamo import testing
    from rushlight._subclasses import settings as config

    class Cases:
        kept = 3

        def test_setting(self):
            return config.fake_tensor_propagate_real_tensors

        def test_fails(self):
            return None

    Cases.test_fails._fails_here = True
    patch = (config, "fake_tensor_propagate_real_tensors", "other")
    made = testing.make_test_cls_with_patches(
        Cases, "Other", "_other", patch, xfail_prop="_fails_here"
    )
    assert made.__name__ == "OtherCases" and made.kept == 3 and not hasattr(made, "test_setting")
    assert made().test_setting_other() == "other" and Cases().test_setting() is False
    assert made.test_fails_other.__unittest_expecting_failure__


def test_random_tensors_by_strides():
    from rushlight._dynamo.testing import rand_strided

    x = rand_strided((2, 3), (4, 1), extra_size=2)
    assert x.shape == (2, 3) and x.stride() == (4, 1) and x.std() > 0
    assert x.untyped_storage().nbytes() == 9 * 4
    assert rand_strided((2,), (1,), torch.int64).tolist() == [0, 0]
    assert rand_strided((2,), (1,), torch.float8_e5m2).dtype == torch.float8_e5m2
