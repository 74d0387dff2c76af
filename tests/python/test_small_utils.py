"""Small modules of `utils` that packages import."""

import pytest

import rushlight as torch


def test_swap_tensors():
    a = torch.ones(2, requires_grad=True)
    b = torch.nn.Parameter(torch.zeros(3))
    a.tag = 1
    torch.utils.swap_tensors(a, b)
    assert a.tolist() == [0, 0, 0] and b.tolist() == [1, 1] and b.tag == 1
    assert isinstance(a, torch.nn.Parameter) and type(b) is torch.Tensor
    (b * 2).sum().backward()
    assert b.grad.tolist() == [2, 2] and a.grad is None


def test_an_ordered_set_keeps_the_order():
    from rushlight.utils._ordered_set import OrderedSet

    s = OrderedSet([3, 1, 2, 1])
    assert list(s) == [3, 1, 2] and s == {1, 2, 3} and s[1] == 1
    assert (
        list(s | [5, 3]) == [3, 1, 2, 5] and list(s - {1}) == [3, 2] and list(s & [2, 3]) == [3, 2]
    )
    assert list(s ^ [1, 7]) == [3, 2, 7] and s.issuperset([1]) and not s.issubset({1})
    s.difference_update([3])
    assert s.pop() == 2 and list(s) == [1]


def test_a_baton_is_held_by_one(tmp_path):
    from rushlight.utils.file_baton import FileBaton

    one, other = (FileBaton(tmp_path / "lock") for _ in range(2))
    assert one.try_acquire() and not other.try_acquire()
    one.release()
    other.wait()
    assert other.try_acquire()
    other.release()


def test_stacks_as_text():
    from rushlight.utils import _traceback

    taken = _traceback.CapturedTraceback.extract()
    assert "test_stacks_as_text" in taken.format()[-1]
    assert taken.summary()[-1].name == "test_stacks_as_text"
    try:
        raise ValueError
    except ValueError as error:
        assert "in test_stacks_as_text" in _traceback.format_traceback_short(error.__traceback__)


def test_devices_of_pieces_of_programs():
    from rushlight.utils._device import DeviceContext, set_device

    with DeviceContext("meta"):
        assert torch.ones(2).is_meta
    assert set_device("meta")(torch.zeros)(2).is_meta and not torch.ones(2).is_meta


def test_fake_modes_are_found():
    from rushlight import _guards
    from rushlight._subclasses import FakeTensorMode

    assert _guards.detect_fake_mode([torch.ones(1)]) is None
    assert _guards.TracingContext.try_get() is None
    with FakeTensorMode() as mode:
        fake = torch.ones(2)
        assert _guards.active_fake_mode() is mode
    assert _guards.detect_fake_mode({"a": [fake]}) is mode and _guards.active_fake_mode() is None
    with FakeTensorMode() as other:
        second = other.from_tensor(torch.ones(1))
    with pytest.raises(AssertionError, match="fake mode"):
        _guards.detect_fake_mode([fake, second])
