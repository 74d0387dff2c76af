"""Programs of pointwise ops, views, writes and readers at random, run as they are written and compiled: every value
that a program looks at, and all that it leaves, has the same bits.

The sign of a NaN is nobody's promise, so nothing here looks at signs alone (copysign).

`python -m tests.fuzz.chains [--seconds S] [--seed K]`; a program is a function of its seed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import numpy as np

import rushlight as torch

# Enough to be noted; rows of all but the first are folded.
SIZES = ((97, 91), (70, 128), (64, 640), (9, 4160), (144, 64))
DTYPES = ["float32"] * 6 + ["float64", "bfloat16", "float16", "int64", "int32", "bool", "complex64"]
ONE = [
    "abs",
    "neg",
    "relu",
    "exp",
    "tanh",
    "sigmoid",
    "sqrt",
    "square",
    "rsqrt",
    "reciprocal",
    "sin",
    "floor",
    "round",
    "sign",
    "logical_not",
    "isnan",
    "erf",
    "log1p",
    "expm1",
    "positive",
    "nn.functional.gelu",
    "nn.functional.silu",
    "nn.functional.hardswish",
    "nn.functional.softplus",
]
TWO = [
    "add",
    "sub",
    "mul",
    "div",
    "true_divide",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "pow",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "atan2",
    "remainder",
    "fmod",
    "logical_and",
    "bitwise_xor",
    "hypot",
]
INPLACE = ["add_", "sub_", "mul_", "div_", "clamp_min_", "clamp_max_", "pow_"]
ALONE_INPLACE = ["relu_", "exp_", "neg_", "abs_", "sqrt_", "sigmoid_", "zero_", "square_", "tanh_"]
VIEWS = [
    "{a}.t()",
    "{a}[1:]",
    "{a}[..., ::2]",
    "{a}.view(-1)",
    "{a}.reshape(-1)[3:]",
    "{a}[..., :1]",
    "{a}.detach()",
]
MAKE = [
    "{a}.clone()",
    "{a}.contiguous()",
    "{a}.to(torch.{dtype})",
    "{a} + 0",
    "torch.empty_like({a}).copy_({a})",
    "{a}.clone().mul_(2)",
    "torch.empty({a}.shape, dtype=torch.{dtype}).copy_({a}[..., :1])",
    "torch.empty({a}.shape, dtype=torch.{dtype}).copy_({a}.reshape(-1)[:1])",
]
FOLD = [
    "{a}.sum(-1, keepdim=True)",
    "{a}.mean(-1, keepdim=True)",
    "{a}.float().mean(-1).unsqueeze(-1)",
    "{a}.amax(-1, keepdim=True)",
    "{a}.amin(-1, keepdim=True)",
    "{a}.sum((-2, -1), keepdim=True)",
    "{a}.prod(-1, keepdim=True)",
    "{a}.float().logsumexp(-1, keepdim=True)",
    "{a}.float().norm(dim=-1, keepdim=True)",
    "{a} - {a}.mean(-1, keepdim=True)",
    "{a} * ({a}.square().mean(-1, keepdim=True) + 0.25).rsqrt()",
    "{a}.argmax(-1, keepdim=True)",
]
JOIN = [
    "torch.cat([-{a}[..., 64:], {a}[..., :64]], -1)",
    "torch.cat([{a}[..., 64:] * {a}[..., 64:], ({a}[..., :64] + 1).relu()], -1)",
    "torch.cat([{a}[..., -64:].exp(), {b}[..., 64:]], -1)",
    "torch.cat([{b}[..., :64] * {a}[..., :64] - 1, {a}[..., 64:], {b}[..., :1] * {a}[..., :64]], -1)[..., 64:]",
    "torch.cat([({a}[..., 64:] - {b}[..., :1]).to(torch.{dtype}), {a}[..., :64]], -1) * {a} + {b}",
    "torch.cat([{a} + 1, {a}], 0)[:{a}.size(0)]",
]
READ = [
    "look({a})",
    "look({a}.sum())",
    "look({a}.float() @ {b}.float().t())",
    "look(torch.cat([{a}.reshape(-1), {b}.reshape(-1)]))",
    "look({a}.numpy())",
    "look({a}.reshape(-1)[0].item())",
    "look({a}.softmax(-1))",
    "look({a}.float().mean(-1, keepdim=True))",
    "look(torch.sort({a}.reshape(-1))[0])",
]
WRITE = [
    "{a}.copy_({b})",
    "{a}.fill_({number})",
    "{a}[1] = {number}",
    "{a}[..., 1:3] += {number}",
    "{a}.numpy().reshape(-1)[2] = 3",
    "{a}.data = {b}.detach()",
    "{a}.set_({b})",
    "{a}.resize_({a}.shape)",
    "torch.add({a}, {b}, out={c})",
    "torch.mul({a}, {number}, out={a})",
    "torch._foreach_add_([{a}, {b}], 1)",
]
NUMBERS = ["2", "0.5", "-1.5", "1", "3", "0", "float('nan')", "float('inf')"]
LINES = 30


def program(seed):
    """Lines of Python over the variables a to h, of which the first make them."""
    draw = random.Random(seed)
    rows, columns = draw.choice(SIZES)
    dtypes = DTYPES + 12 * [draw.choice(["float32", "float32", "bfloat16", "float16"])]
    shapes = [(rows, columns)] * 4 + [
        (columns,),
        (rows, 1),
        (),
        (3, rows, columns),
        (rows * columns,),
    ]
    names = list("abcdefgh")
    lines = [
        f"{name} = make({draw.choice(shapes)}, '{draw.choice(dtypes)}', {draw.randrange(1000)})"
        for name in names
    ]
    for _ in range(LINES):
        a, b, c, d = (draw.choice(names) for _ in range(4))
        number, dtype = draw.choice(NUMBERS), draw.choice(dtypes)
        operand = draw.choice([b, b, b, number])
        kind = draw.random()
        if kind < 0.3:
            text = f"{d} = torch.{draw.choice(TWO)}({a}, {operand})"
        elif kind < 0.45:
            text = f"{d} = torch.{draw.choice(ONE)}({a})"
        elif kind < 0.49:
            text = f"{d} = " + draw.choice(FOLD).format(a=a)
        elif kind < 0.53:
            text = f"{d} = torch.where({a} > 0, {b}, {c})"
        elif kind < 0.57:
            text = draw.choice(
                [
                    f"{d} = torch.add({a}, {b}, alpha=2)",
                    f"{d} = torch.addcmul({a}, {b}, {c}, value=0.5)",
                    f"{d} = torch.lerp({a}, {b}, 0.25)",
                    f"{d} = torch.clamp({a}, -0.5, 0.75)",
                    f"{d} = torch.addcdiv({a}, {b}, {c})",
                    f"{d} = torch.nn.functional.leaky_relu({a}, 0.125)",
                ]
            )
        elif kind < 0.68:
            text = f"{a}.{draw.choice(INPLACE)}({operand})"
        elif kind < 0.74:
            text = f"{a}.{draw.choice(ALONE_INPLACE)}()"
        elif kind < 0.81:
            text = f"{d} = " + draw.choice(VIEWS).format(a=a)
        elif kind < 0.86:
            text = f"{d} = " + draw.choice(MAKE).format(a=a, dtype=dtype)
        elif kind < 0.89:
            text = f"{d} = " + draw.choice(JOIN).format(a=a, b=b, dtype=dtype)
        elif kind < 0.93:
            text = draw.choice(READ).format(a=a, b=b)
        elif kind < 0.98:
            text = draw.choice(WRITE).format(a=a, b=b, c=c, number=number)
        else:
            text = f"del {a}; {a} = make({draw.choice(shapes)}, '{dtype}', 3)"
        lines.append(text)
    return lines


def make(shape, dtype, seed):
    """A tensor in memory of its own; some values are special."""
    values = np.array(2 * np.random.default_rng(seed).normal(size=shape), np.float32)
    flat = values.reshape(-1)
    if flat.size > 100:
        flat[seed % flat.size] = np.nan
        flat[(seed * 7) % flat.size] = np.inf
        flat[(seed * 13) % flat.size] = -0.0
    if dtype in ("int64", "int32", "bool"):
        np.nan_to_num(values, copy=False, nan=1, posinf=4)
    return torch.from_numpy(values).to(getattr(torch, dtype), copy=True)


def bits(value):
    """What there is to compare: a NaN is one, whatever its sign and payload."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        wider = {
            torch.bfloat16: torch.float32,
            torch.float16: torch.float32,
            torch.complex32: torch.complex64,
        }
        if value.dtype in wider:
            return str(value.dtype), tuple(value.shape), bits(value.to(wider[value.dtype]))
        return str(value.dtype), tuple(value.shape), bits(value.resolve_conj().numpy())
    array = np.array(value)
    if array.dtype.kind == "c":
        return bits(array.real), bits(array.imag)
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
    return array.tobytes()


def outcome(lines):
    """What the program saw and left, and which lines it was refused."""
    seen = []
    names = {"torch": torch, "make": make, "look": lambda value: seen.append(bits(value))}
    for line in lines:
        try:
            exec(line, names)
        except (RuntimeError, TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            seen.append(f"{line}: {type(error).__name__}: {error}")
    return seen + [bits(names[name]) for name in "abcdefgh"]


compiled_outcome = torch.compile(outcome)


def difference(seed, threads=2):
    """None, or the program and the first thing that was not alike."""
    lines = program(seed)
    torch.set_num_threads(1)
    expected = outcome(lines)
    torch.set_num_threads(threads)
    found = compiled_outcome(lines)
    for i, (a, b) in enumerate(zip(expected, found, strict=True)):
        if a != b:
            text = "\n".join(lines)
            return f"seed {seed}, {threads} threads, item {i}: {str(a)[:300]} != {str(b)[:300]}\n{text}"
    return None


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    end, seed, findings = time.monotonic() + options.seconds, options.seed * 10**6, 0
    while time.monotonic() < end:
        if found := difference(seed, 1 + seed % 3):
            findings += 1
            print(found, flush=True)
        seed += 1
    print(f"{seed - options.seed * 10**6} programs, {findings} findings")
    sys.exit(findings != 0)


if __name__ == "__main__":
    main()
