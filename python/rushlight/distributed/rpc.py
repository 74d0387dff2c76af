"""Calls in other processes: the names exist and raise."""

from __future__ import annotations

from rushlight.distributed import _refused

__all__ = [
    "RRef",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

RRef = _refused.kind("RRef", __name__)
TensorPipeRpcBackendOptions = _refused.kind("TensorPipeRpcBackendOptions", __name__)
WorkerInfo = _refused.kind("WorkerInfo", __name__)
init_rpc = _refused.function("torch.distributed.rpc.init_rpc")
remote = _refused.function("torch.distributed.rpc.remote")
rpc_async = _refused.function("torch.distributed.rpc.rpc_async")
rpc_sync = _refused.function("torch.distributed.rpc.rpc_sync")
shutdown = _refused.function("torch.distributed.rpc.shutdown")


def is_available() -> bool:
    """Whether other processes can be called: always False."""
    return False
