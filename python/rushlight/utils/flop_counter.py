"""`FlopCounterMode`: counts the floating-point operations of a program.

>>> with FlopCounterMode(display=False) as counter:
...     model(x).sum().backward()
>>> counter.get_total_flops()

Products of matrices and convolutions are counted, forward and backward, by the module that they
belong to. To count another op: `register_flop_formula`.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rushlight.utils._flops import (  # noqa: F401
    addmm_flop,
    addmv_flop,
    baddbmm_flop,
    bmm_flop,
    conv_flop,
    conv_flop_count,
    conv_weight_flop,
    flop_registry,
    linear_flop,
    mm_flop,
    mv_flop,
    register_flop_formula,
)
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]


class FlopCounterMode(TorchDispatchMode):
    """Counts floating-point operations inside its `with` block.

    Args:
        depth: the number of levels of modules in the table.
        display: print the table at the end.
        custom_mapping: {op: formula} beside those that are registered.
        mods: means nothing: modules are found by themselves.

    Example:
        >>> from rushlight.utils.flop_counter import FlopCounterMode
        >>> with FlopCounterMode(display=False) as counter:
        ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
        >>> counter.get_total_flops()
        48
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.registry = {**flop_registry, **(custom_mapping or {})}
        self.mod_tracker = ModuleTracker()

    def __enter__(self):
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        return super().__enter__()

    def __exit__(self, kind, value, trace):
        super().__exit__(kind, value, trace)
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        packet = func.overloadpacket
        if packet in self.registry:
            flops = self.registry[packet](*args, **kwargs, out_val=result)
            for name in self.mod_tracker.parents:
                self.flop_counts[name][packet] += flops
        return result

    def get_total_flops(self):
        """The sum of all counts."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """The counts as {module, or "Global": {op: flops}}."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth=None):
        """The counts as a table of text."""
        depth = self.depth if depth is None else depth
        total = max(1, self.get_total_flops())
        rows = [("Module", "FLOP", "% Total")]
        names = sorted(n for n in self.flop_counts if n != "Global")
        for name in ["Global", *names]:
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[name]
            indent = " " * level
            flops = sum(counts.values())
            rows.append((indent + name, _with_unit(flops), f"{100 * flops / total:.2f}%"))
            for op, n in counts.items():
                rows.append((f"{indent} - {op}", _with_unit(n), f"{100 * n / total:.2f}%"))
        widths = [max(len(r[i]) for r in rows) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        lines.insert(1, "  ".join("-" * w for w in widths))
        return "\n".join(lines)


def _with_unit(n: int) -> str:
    for size, unit in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K")):
        if n >= size:
            return f"{n / size:.3f}{unit}"
    return str(n)
