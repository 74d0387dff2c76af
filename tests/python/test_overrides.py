"""Operators of tensors, subclasses, `__torch_function__` and function modes."""

import contextlib
import operator
from typing import ClassVar

import numpy as np
import pytest

import rushlight as torch
from rushlight import Tensor

# ---- subclasses and __torch_function__ ----


class Tagged(Tensor):
    pass


def test_results_keep_the_subclass():
    t = torch.ones(2, 3).as_subclass(Tagged)
    for result in (
        t + 1,
        1 - t,
        t.sum(),
        t[0],
        torch.exp(t),
        t.T,
        t.mT,
        torch.stack([t, t]),
        t @ t.T,
    ):
        assert type(result) is Tagged
    assert all(type(part) is Tagged for part in t.unbind(0))
    assert type(t.shape) is torch.Size
    assert isinstance(t.tolist(), list)
    assert type(Tagged([1.0, 2.0])) is Tagged
    assert Tagged(2, 3).shape == (2, 3)


class Logging(Tensor):
    calls: ClassVar[list] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(getattr(func, "__name__", str(func)))
        return super().__torch_function__(func, types, args, kwargs)


def test_overrides_see_functions_methods_operators_and_attributes():
    t = torch.ones(2).as_subclass(Logging)
    Logging.calls.clear()
    _ = t + 1
    _ = 1 + t
    _ = torch.exp(t)
    _ = t.sum()
    _ = torch.stack([torch.ones(2), t])
    _ = t.shape
    _ = t[0]
    t[0] = 5
    assert Logging.calls == [
        "add",
        "add",
        "exp",
        "sum",
        "stack",
        "__get__",
        "__getitem__",
        "__setitem__",
    ]


class Duck:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func.__name__, len(args)


def test_constructors_read_data_of_a_subclass():
    class Mine(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})

    seen = []
    mine = torch.ones(3).as_subclass(Mine)
    assert type(torch.tensor(mine)) is torch.Tensor
    assert torch.as_tensor(mine) is mine and torch.asarray(mine) is mine
    assert type(torch.asarray(mine, copy=True)) is torch.Tensor
    assert type(torch.ones(2).new_tensor(mine)) is torch.Tensor
    assert seen == []
    assert type(mine.new_tensor([1.0])) is Mine and seen == ["new_tensor"]

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            told.append((function.__name__, types))
            return function(*args, **(kwargs or {}))

    told = []
    with Watch():
        torch.tensor(mine)
        torch.as_tensor([1])
        torch.asarray(mine)
    assert told == [("tensor", ()), ("as_tensor", ()), ("asarray", ())]


def test_duck_types():
    assert torch.add(Duck(), 1) == ("add", 2)
    assert torch.cat([torch.ones(1), Duck()]) == ("cat", 1)
    assert torch.ones(2) + Duck() == ("add", 2)


def test_unimplemented_override():
    class Shy:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match=r"no implementation found for 'torch\.add'"):
        torch.add(Shy(), 1)


def test_function_modes():
    from rushlight.overrides import BaseTorchFunctionMode

    seen = []

    class Mode(BaseTorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    with Mode():
        torch.exp(torch.zeros(1))
    assert seen == ["zeros", "exp"]
    torch.exp(torch.zeros(1))
    assert len(seen) == 2


@pytest.mark.parametrize("own", [False, True])
def test_ops_by_their_overloads_ask_too(own):
    if own:
        with torch.library._scoped_library("asked", "DEF") as library:
            library.define("twice(Tensor a, int n=2) -> Tensor")
            library.impl("twice", lambda a, n=2: a * n, "CompositeExplicitAutograd")
            ops_ask(torch.ops.asked.twice, torch.ops.asked.twice.default)
    else:
        ops_ask(torch.ops.aten.mul, torch.ops.aten.mul.Tensor)


def ops_ask(*ops):
    seen = []

    class Asked:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func, types, len(args), kwargs))
            return "asked"

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((func, types, len(args), kwargs))
            return func(*args, **(kwargs or {}))

    one = torch.ones(1)
    for op in ops:
        assert op(Asked(), one) == "asked"
        with Mode():
            result = op(one, 3)
        assert result.item() == 3
    assert [call[0] for call in seen] == [ops[0]] * 2 + [ops[1]] * 2
    assert seen[0][1:] == ((Asked,), 2, {})
    assert torch.ops.aten.cat([torch.ones(1), Asked()]) == "asked"


# ---- operators ----


def test_operators_with_numbers_on_both_sides():
    t = torch.tensor([4.0, 9.0])
    assert (1 + t).tolist() == [5, 10]
    assert (1 - t).tolist() == [-3, -8]
    assert (36 / t).tolist() == [9, 4]
    assert (10 // t).tolist() == [2, 1]
    assert (10 % t).tolist() == [2, 1]
    assert (2**t).tolist() == [16, 512]
    assert (t**2).tolist() == [16, 81]
    assert (-t).tolist() == [-4, -9]
    assert abs(-t).tolist() == [4, 9]
    i = torch.tensor([6, 3])
    assert (i & 2).tolist() == [2, 2]
    assert (1 | i).tolist() == [7, 3]
    assert (i ^ 1).tolist() == [7, 2]
    assert (~i).tolist() == [-7, -4]
    assert (i << 1).tolist() == [12, 6]
    assert (i >> 1).tolist() == [3, 1]


def test_in_place_operators_keep_the_object():
    t = torch.ones(2)
    same = t
    t += 1
    t *= 3
    t -= 2
    t /= 2
    assert t is same
    assert t.tolist() == [2, 2]


@pytest.mark.parametrize("other", ["x", None, [1, 2], object()])
def test_operators_refuse_other_types(other):
    t = torch.ones(2)
    with pytest.raises(TypeError, match="unsupported operand"):
        t + other
    with pytest.raises(TypeError, match="unsupported operand"):
        other - t
    assert (t == other) is False
    assert (t != other) is True
    with pytest.raises(TypeError, match="not supported between"):
        t < other  # noqa: B015


def test_matmul_takes_no_number():
    with pytest.raises(TypeError, match="unsupported operand"):
        torch.ones(2, 2) @ 2


def test_numpy_operands():
    t = torch.ones(3)
    assert (t * np.float64(2)).dtype is torch.float32
    assert (np.float32(2) * t).tolist() == [2, 2, 2]
    assert (t + np.int64(1)).dtype is torch.float32


def test_hash_is_identity():
    a, b = torch.ones(1), torch.ones(1)
    assert len({a, b, a}) == 2


def test_truth_and_numbers():
    assert bool(torch.tensor(1.5)) and not bool(torch.zeros(1))
    with pytest.raises(RuntimeError, match="without elements is ambiguous"):
        bool(torch.ones(0))
    with pytest.raises(RuntimeError, match=r"Boolean value of Tensor of shape \[2\] is ambiguous"):
        bool(torch.ones(2))
    assert int(torch.tensor(2.9)) == 2
    assert complex(torch.tensor(1 + 2j)) == 1 + 2j
    with pytest.raises(OverflowError):
        int(torch.tensor(float("inf")))
    with pytest.raises(ValueError, match="only one element"):
        float(torch.ones(2))
    with pytest.raises(TypeError, match="only integer tensors"):
        range(torch.tensor(1.0))
    assert list(range(torch.tensor(3))) == [0, 1, 2]


def test_contains_and_iteration():
    t = torch.tensor([1.0, 2.0])
    assert 2 in t and 3 not in t and torch.tensor(1.0) in t
    with pytest.raises(RuntimeError, match="__contains__ only supports"):
        "a" in t  # noqa: B015
    assert [x.item() for x in t] == [1, 2]
    assert len(t) == 2
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(torch.tensor(1))


def test_quantised_tensors_and_numbers_of_sizes_are_offered():
    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return torch.overrides.resolve_name(func) or func.__name__

    x = torch.ones(2).as_subclass(Seen)
    for name in ("int_repr", "q_scale", "q_zero_point", "q_per_channel_axis", "dequantize"):
        assert name in getattr(x, name)() and name in getattr(torch, name)(x)
    for name in ("sym_int", "sym_float", "sym_not", "sym_sqrt"):
        assert name in getattr(torch, name)(x)
    assert "sym_max" in torch.sym_max(x, 1) and torch.sym_max(1, 2) == 2


class Knows:
    """Has operators for all that it meets."""

    def __radd__(self, other):
        return "radd"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __gt__(self, other):
        return "gt"

    def __eq__(self, other):
        return "eq"

    __hash__ = None


class Passing(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("how", ["subclass", "mode"])
def test_whom_operators_do_not_know_gets_its_turn(how):
    x = torch.ones(2, dtype=torch.int64)
    s = x.as_subclass(Tagged) if how == "subclass" else x
    with Passing() if how == "mode" else contextlib.nullcontext():
        assert (s == None) is False and (s != None) is True  # noqa: E711
        assert s not in [None, "text"] and None not in [s]
        assert [s + Knows(), s @ Knows(), s < Knows(), s == Knows()] == [
            "radd",
            "rmatmul",
            "gt",
            "eq",
        ]
        held = s.clone()
        held += Knows()
        assert held == "radd"
        for name in ("add", "sub", "truediv", "pow", "and_", "lt", "iadd", "isub", "matmul"):
            for other in (None, "text", [1, 2]):
                with pytest.raises(TypeError, match="supported"):
                    getattr(operator, name)(s, other)
        with pytest.raises(TypeError, match="unsupported operand"):
            None - s


def test_only_a_type_error_of_an_override_leaves_an_operator_to_others():
    class Refuses(Tensor):
        error: ClassVar[type] = TypeError

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise cls.error("mine")

    x = torch.ones(2).as_subclass(Refuses)
    assert x + Knows() == "radd" and (x == 1) is False
    with pytest.raises(TypeError, match="mine"):
        _ = -x
    Refuses.error = ValueError
    for call in (lambda: x + 1, lambda: x == 1, lambda: 1 - x):
        with pytest.raises(ValueError, match="mine"):
            call()
