"""Bits of all ops, to be compared between builds: what every op gives for its samples, as a hash.

    python -m tests.ops.digests FILE

Writes FILE where it does not exist: a line for each op and dtype. Where it does, compares with it:
prints the families with how many of their ops have the same bits, and the names of those that do
not. All NaNs count as one: their bits differ between processors.
"""

import hashlib
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import rushlight
from tests.ops import harness
from tests.ops.harness import Makers, array, function_of, tensors_of


def bits_of(tensor):
    values = np.ascontiguousarray(array(tensor))
    if values.dtype.kind in "fc":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return values.tobytes()


def digest(case, dtype):
    """The hash of results and gradients, or the exception's type, of the first samples."""
    made = hashlib.sha256()
    for text in case.samples[:4]:
        rushlight.manual_seed(5)
        makers = Makers(rushlight, dtype, case.key + text, requires_grad=not case.writes)
        args, kwargs = makers.arguments(text)
        try:
            result = function_of(rushlight, case.op)(*args, **kwargs)
            found = [*tensors_of(result), *tensors_of([*args, *kwargs.values()])]
            outputs = [t for t in tensors_of(result) if t.requires_grad]
            inputs = [
                t for t in tensors_of([*args, *kwargs.values()]) if t.requires_grad and t.is_leaf
            ]
            if outputs and inputs and "backward" not in case.skips and not case.refuses:
                ones = [rushlight.ones_like(t) for t in outputs]
                gradients = rushlight.autograd.grad(outputs, inputs, ones, allow_unused=True)
                found += [g for g in gradients if g is not None]
            for tensor in found:
                made.update(bits_of(tensor))
        except Exception as error:
            made.update(type(error).__name__.encode())
    return made.hexdigest()[:16]


def digests():
    """`family op dtype` → hash, for every op of the table that draws no random numbers."""
    for case in harness.repeatable():
        for dtype in case.dtypes:
            yield f"{case.op.family} {case.key} {dtype}", digest(case, dtype)


def compare(known, found):
    """Prints how many ops of each family have the same bits, and which have others."""
    same, all_ops, others = Counter(), Counter(), {}
    for name, value in found.items():
        family, op, dtype = name.split(" ")
        if (family, op) not in others:
            others[family, op] = []
            all_ops[family] += 1
        if known.get(name) != value:
            others[family, op].append(dtype)
    for family, op in others:
        same[family] += not others[family, op]
    for family in sorted(all_ops):
        print(f"{family}: {same[family]} of {all_ops[family]} ops have the same bits")
    for (family, op), dtypes in sorted(others.items()):
        if dtypes:
            print(f"  {family} {op}: {', '.join(dtypes)}")
    print(f"{same.total()} of {all_ops.total()} ops have the same bits")


def main(path):
    found = dict(digests())
    if path.exists():
        compare(dict(line.rsplit(" ", 1) for line in path.read_text().splitlines()), found)
    else:
        path.write_text("".join(f"{name} {value}\n" for name, value in found.items()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
