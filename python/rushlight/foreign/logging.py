"""`set_logs`: how much PyTorch's loggers tell, which programs set and read by their names."""

from __future__ import annotations

import importlib.util
import logging
from typing import Any

__all__ = ["set_logs"]

_FX = " torch.fx.experimental.symbolic_shapes torch.fx.experimental.sym_node"
# The loggers that a name stands for.
_LOGGERS = {
    "dynamo": "torch._dynamo" + _FX,
    "aot": "torch._functorch.aot_autograd torch._functorch._aot_autograd",
    "autograd": "torch.autograd",
    "dynamic": _FX,
    "inductor": "torch._inductor torch._inductor.cudagraph_trees",
    "distributed": "torch.distributed torch.nn.parallel.distributed",
    "c10d": "torch.distributed.distributed_c10d torch.distributed.rendezvous",
    "ddp": "torch.nn.parallel.distributed",
    "fsdp": "torch.distributed.fsdp torch.distributed._composable.fsdp",
    "dtensor": "torch.distributed._tensor torch.distributed.tensor",
    "onnx": "torch.onnx",
    "export": "torch._dynamo torch.export",
}
# What a compiler would print; nothing is compiled, so these print nothing.
_ARTIFACTS = """aot_graphs aot_joint_graph autotuning benchmarking bytecode caching
compiled_autograd compiled_autograd_verbose compute_dependencies cudagraph_static_inputs cudagraphs
ddp_graphs fusion graph graph_breaks graph_code graph_code_verbose graph_region_expansion
graph_sizes guards hierarchical_compile incremental inductor_metrics ir_post_fusion ir_pre_fusion
kernel_code onnx_diagnostics output_code overlap perf_hints post_grad_graphs pre_grad_graphs
recompiles recompiles_verbose schedule side_effects sym_node trace_bytecode trace_call
trace_source"""
_LEVELS = (50, 40, 30, 20, 10, 0)
_set: set[str] = set()


def set_logs(
    *, all: int | None = None, modules: dict[str, int | bool] | None = None, **logs: Any
) -> None:
    """Sets the levels of loggers; those that an earlier call has set begin anew.

    Args:
        all: the level of all loggers that have a name here.
        modules: levels by the names of modules.
        logs: levels by name (`dynamo=logging.DEBUG`), and what compilers would print
            (`graph_breaks=True`): nothing is compiled, so they print nothing.

    Raises:
        TypeError: a name is unknown.
        ValueError: a level is none, or a switch is no bool.
        ModuleNotFoundError: a module is not there.
    """
    levels: dict[str, int] = {}

    def put(loggers: str, level: Any, name: str) -> None:
        if level not in _LEVELS:
            raise ValueError(f"set_logs(): {level!r} is no level of {name}; these are {_LEVELS}")
        levels.update(dict.fromkeys(loggers.split(), level))

    if all is not None:
        for name, loggers in _LOGGERS.items():
            put(loggers, all, name)
    for name, value in logs.items():
        if name in _ARTIFACTS.split():
            if not isinstance(value, bool):
                raise ValueError(f"set_logs(): {name} is switched by a bool, not {value!r}")
        elif name in _LOGGERS:
            put(_LOGGERS[name], value, name)
        else:
            raise TypeError(f"set_logs() got an unexpected keyword argument '{name}'")
    for name, level in (modules or {}).items():
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"set_logs(): there is no module {name}")
        put(name, level, name)
    for name in _set:
        logging.getLogger(name).setLevel(logging.NOTSET)
    _set.clear()
    _set.update(levels)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
