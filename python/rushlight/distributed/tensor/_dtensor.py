"""The class of distributed tensors, and what makes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight import Tensor
from rushlight._warnings import warn
from rushlight.autograd import Function
from rushlight.distributed import _collectives
from rushlight.distributed.device_mesh import DeviceMesh, _remade
from rushlight.distributed.tensor import _random
from rushlight.distributed.tensor._handlers import HANDLERS
from rushlight.distributed.tensor._redistribute import Redistribute, shard_local
from rushlight.distributed.tensor._spec import (
    DTensorSpec,
    TensorMeta,
    all_replicate,
    contiguous_strides,
    cut_order,
    local_shape_and_offset,
    mesh_or_current,
    normalize_placements,
    whole_meta,
)
from rushlight.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _NormPartial,
    _StridedShard,
)

if TYPE_CHECKING:
    from rushlight.nn import Module
    from rushlight.types import _dtype, _layout

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]


class _FromLocal(Function):
    """The distributed tensor of local pieces."""

    @staticmethod
    def forward(ctx, local, mesh, placements, meta):
        ctx.about = mesh, placements
        ctx.others = (None,) * 3
        return DTensor(local.view_as(local), DTensorSpec(mesh, placements, meta))

    @staticmethod
    def backward(ctx, grad):
        _, placements = ctx.about
        if grad.placements != placements:
            target = tuple(Replicate() if p.is_partial() else p for p in placements)
            grad = grad.redistribute(placements=target)
        return grad._local_tensor, *ctx.others


class _ToLocal(Function):
    """This process's piece of a distributed tensor."""

    @staticmethod
    def forward(ctx, tensor, placements):
        ctx.spec, ctx.placements = tensor._spec, placements
        return tensor._local_tensor.view_as(tensor._local_tensor)

    @staticmethod
    def backward(ctx, grad):
        spec = ctx.spec
        placements = ctx.placements
        if placements is None:
            placements = tuple(Replicate() if p.is_partial() else p for p in spec.placements)
        return DTensor(grad, DTensorSpec(spec.mesh, placements, spec.tensor_meta)), None


class DTensor(Tensor):
    """A tensor with pieces in several processes, with the shape of the full tensor.

    Each process of `device_mesh` has a local piece; `placements` say for each dimension of the mesh
    whether it is cut (`Shard`), whole everywhere (`Replicate`), or yet to be reduced (`Partial`).
    Ops give what they would give for the whole: pieces are computed where they lie, and moved where
    that needs others. Made by `distribute_tensor`, `DTensor.from_local` and the factories.

    Its constructor is for `from_local`.

    Args:
        local_tensor: the piece of this process.
        spec: the mesh, the placements, and the shape of the whole.
        requires_grad: whether gradients are recorded.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> place = torch.distributed.tensor.Shard(0)
        >>> x = torch.distributed.tensor.distribute_tensor(torch.ones(4, 2), mesh, [place])
        >>> (x * 2).full_tensor().sum()
        tensor(16.)
        >>> torch.distributed.destroy_process_group()
    """

    _sees_whole_ops = True  # rules are of linear, not of what it is composed of
    _local_tensor: Tensor
    _spec: DTensorSpec
    _moved: bool  # a view that lies elsewhere than what it is a view of

    @staticmethod
    def __new__(cls, local_tensor, spec, *, requires_grad=False):
        meta = spec.tensor_meta
        made = Tensor._make_wrapper_subclass(
            cls,
            meta.shape,
            strides=meta.stride,
            dtype=local_tensor.dtype,
            device=local_tensor.device,
            requires_grad=requires_grad,
        )
        made._local_tensor = local_tensor.detach()
        made._spec = spec
        return made

    def __init__(self, *args, **kwargs: Any):
        super().__init__()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return HANDLERS["dispatch"](func, args, kwargs or {})

    def _with_local(self, local, placements):
        """The same tensor in other pieces."""
        spec = DTensorSpec(self._spec.mesh, placements, self._spec.tensor_meta)
        return DTensor(local, spec)

    def __repr__(self, *, tensor_contents=None) -> str:
        return (
            f"DTensor(local_tensor={self._local_tensor}, device_mesh={self._spec.mesh}, "
            f"placements={self._spec.placements})"
        )

    def __tensor_flatten__(self):
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner_tensors, flatten_spec, outer_size, outer_stride):
        spec, requires_grad = flatten_spec
        meta = TensorMeta(outer_size, tuple(outer_stride), spec.tensor_meta.dtype)
        spec = DTensorSpec(spec.mesh, spec.placements, meta)
        return DTensor(inner_tensors["_local_tensor"], spec, requires_grad=requires_grad)

    def __reduce_ex__(self, protocol):
        whole = self._spec.tensor_meta
        about = (
            self._spec.mesh._description(),
            [_description(p) for p in self._spec.placements],
            tuple(whole.shape),
            tuple(whole.stride),
        )
        is_parameter = isinstance(self, rushlight.nn.Parameter)
        return _rebuilt, (self._local_tensor, *about, self.requires_grad, is_parameter)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            local = self._local_tensor.clone()
            copy: Any = DTensor(local, self._spec, requires_grad=self.requires_grad)
            if self.is_leaf and isinstance(self, rushlight.nn.Parameter):
                copy = rushlight.nn.Parameter(copy.detach(), self.requires_grad)
            memo[id(self)] = copy
        return memo[id(self)]

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh of the tensor."""
        return self._spec.mesh

    @property
    def placements(self) -> tuple[Placement, ...]:
        """The placement along each dimension of the mesh."""
        return self._spec.placements

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements=None,
        *,
        run_check: bool = False,
        shape=None,
        stride=None,
        grad_placements=None,
    ) -> DTensor:
        """Make the distributed tensor whose piece here is `local_tensor`; differentiable.

        Args:
            local_tensor: this process's piece.
            device_mesh: the mesh, by default the one of `with mesh:`.
            placements: one for each dimension of the mesh; by default `Replicate()`.
            run_check: checks that shapes agree on all processes and takes the first one's values
                where it is replicated.
            shape: of the whole; needed where pieces differ in size.
            stride: of the whole, to be given with `shape`.
            grad_placements: those that the gradient is brought to, by default `placements`.
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError("the local_tensor argument only accepts torch.Tensor, not a DTensor")
        mesh = mesh_or_current(device_mesh)
        placed = normalize_placements(placements, mesh, local_tensor.ndim, all_replicate(mesh))
        if (shape is None) != (stride is None):
            raise RuntimeError("Please pass both shape and stride at the same time.")
        local_tensor = on_mesh(local_tensor, mesh)
        meta = whole_meta(local_tensor, mesh, placed)
        if shape is not None and stride is not None:
            meta = TensorMeta(rushlight.Size(shape), tuple(stride), local_tensor.dtype)
        if mesh.get_coordinate() is None:
            local_tensor = local_tensor.new_empty(0, requires_grad=local_tensor.requires_grad)
        elif run_check:
            _check_alike(local_tensor, mesh, placed)
            with rushlight.no_grad():
                for i, p in enumerate(placed):
                    if p.is_replicate() and mesh.size(i) > 1:
                        first = rushlight.distributed.get_global_rank(mesh.get_group(i), 0)
                        _collectives.broadcast(local_tensor, first, group=mesh.get_group(i))
        made = _FromLocal.apply(local_tensor, mesh, placed, meta)
        if grad_placements is not None:
            made = _GradPlaced.apply(
                made, normalize_placements(grad_placements, mesh, local_tensor.ndim, ())
            )
        return made

    def to_local(self, *, grad_placements=None) -> Tensor:
        """The piece of this process; differentiable.

        Args:
            grad_placements: the placements of the pieces' gradients; by default those of this
                tensor, with `Replicate` for `Partial`.
        """
        if grad_placements is not None:
            grad_placements = normalize_placements(grad_placements, self.device_mesh, self.ndim, ())
        if not rushlight.is_grad_enabled() or not self.requires_grad:
            return self._local_tensor
        return _ToLocal.apply(self, grad_placements)

    def redistribute(
        self,
        device_mesh: DeviceMesh | None = None,
        placements=None,
        *,
        async_op: bool = False,
        forward_dtype=None,
        backward_dtype=None,
    ) -> DTensor:
        """Convert the tensor to other placements; differentiable.

        Args:
            device_mesh: must be the mesh of the tensor.
            placements: one for each dimension of the mesh; `Partial` only where it is that already.
            async_op: may be asked for; the result is there when the function returns.
            forward_dtype: of the result, cast before anything is moved.
            backward_dtype: of the gradient while it is moved.
        """
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        placed = normalize_placements(placements, self.device_mesh, self.ndim, ())
        for old, new in zip(self.placements, placed, strict=True):
            if new.is_partial() and old != new:
                raise RuntimeError(f"Can not redistribute from {old} to {new}!")
        source = self if forward_dtype is None else self.to(forward_dtype)
        moved = Redistribute.apply(source, placed, async_op)
        return moved if backward_dtype is None else moved.to(backward_dtype).to(moved.dtype)

    def full_tensor(self, *, grad_placements=None) -> Tensor:
        """The full tensor in every process; differentiable."""
        whole = self.redistribute(placements=all_replicate(self.device_mesh))
        return whole.to_local(grad_placements=grad_placements)


class _GradPlaced(Function):
    """The same tensor; its gradient is brought to other placements."""

    @staticmethod
    def forward(ctx, tensor, placements):
        ctx.placements = placements
        return tensor._with_local(tensor._local_tensor, tensor.placements)

    @staticmethod
    def backward(ctx, grad):
        return grad.redistribute(placements=ctx.placements), None


def _description(placement):
    """Plain data of which `_rebuilt` makes a placement."""
    return type(placement).__name__, *dataclasses.astuple(placement)


_PLACEMENTS: dict[str, Any] = {
    "Shard": Shard,
    "_StridedShard": lambda dim, factor: _StridedShard(dim, split_factor=factor),
    "Replicate": Replicate,
    "Partial": Partial,
    "_NormPartial": _NormPartial,
}


def _rebuilt(local, mesh, placements, shape, stride, requires_grad, is_parameter):
    """A tensor of which a file has the piece and plain data of all else."""
    placed = tuple(_PLACEMENTS[kind](*values) for kind, *values in placements)
    meta = TensorMeta(rushlight.Size(shape), tuple(stride), local.dtype)
    made: Any = DTensor(local, DTensorSpec(_remade(*mesh), placed, meta))
    if is_parameter:
        return rushlight.nn.Parameter(made, requires_grad)
    return made.requires_grad_(requires_grad)


def on_mesh(t, mesh):
    """A tensor where those of a mesh lie."""
    return t if t.is_meta or t.device.type == mesh.device_type else t.to(mesh.device_type)


def _check_alike(local, mesh, placements):
    """Refuses pieces that cannot be of one tensor, on all processes alike."""
    like = {"dtype": rushlight.int64, "device": mesh.device_type}
    mine = rushlight.tensor([local.ndim, *local.shape], **like)
    for i, placement in enumerate(placements):
        group = mesh.get_group(i)
        dims = rushlight.tensor([local.ndim], **like)
        all_dims = [rushlight.empty_like(dims) for _ in range(mesh.size(i))]
        _collectives.all_gather(all_dims, dims, group)
        shapes = [mine]
        if len({int(d) for d in all_dims}) == 1:
            shapes = [rushlight.empty_like(mine) for _ in range(mesh.size(i))]
            _collectives.all_gather(shapes, mine, group)
        cut = placement.dim + 1 if isinstance(placement, Shard) else -1
        seen = {tuple(n for d, n in enumerate(s.tolist()) if d != cut) for s in shapes}
        if len(shapes) != mesh.size(i) or len(seen) != 1:
            raise RuntimeError(
                f"from_local: the local tensors have other shapes than {tuple(local.shape)} on "
                f"other processes, which {placement} does not allow"
            )


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Any = None,
    *,
    src_data_rank: int | None = 0,
) -> DTensor:
    """Distribute a full tensor; the result is a leaf.

    Args:
        tensor: the whole; its values are taken from `src_data_rank`.
        device_mesh: the mesh, by default the one of `with mesh:`.
        placements: one for each dimension of the mesh; by default `Replicate()`.
        src_data_rank: the process, by its number along each dimension of the mesh, whose values are
            sent to the others; None if all have the same, so that nothing is sent.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> x = torch.distributed.tensor.distribute_tensor(torch.ones(4, 2), mesh)
        >>> x.placements
        (Replicate(),)
        >>> torch.distributed.destroy_process_group()
    """
    mesh = mesh_or_current(device_mesh)
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` takes leaf tensors, but found non-leaf tensor: detach() it, or "
            "use `DTensor.from_local`"
        )
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh:
            raise ValueError(
                f"Cannot distribute a DTensor on another mesh: it lies on {tensor.device_mesh}, "
                f"not {mesh}"
            )
        placed = normalize_placements(placements, mesh, tensor.ndim, tensor.placements)
        if tensor.placements != placed:
            raise ValueError(
                f"Cannot distribute a DTensor anew: it has the placements {tensor.placements}, and "
                f"`redistribute` gives it {placed}"
            )
        return tensor
    placed = normalize_placements(placements, mesh, tensor.ndim, all_replicate(mesh))
    if any(p.is_partial() for p in placed):
        raise RuntimeError("distribute_tensor: values of a whole tensor are not yet to be reduced")
    coordinate = mesh.get_coordinate()
    local = on_mesh(tensor.detach(), mesh)
    meta = TensorMeta(tensor.shape, contiguous_strides(tensor.shape), tensor.dtype)
    if coordinate is None:
        local = local.new_empty(0)
    else:
        local = local.clone(memory_format=rushlight.contiguous_format)
        if src_data_rank is not None and not local.is_meta:
            for i in range(mesh.ndim):
                group = mesh.get_group(i)
                if mesh.size(i) > 1:
                    first = rushlight.distributed.get_global_rank(group, src_data_rank)
                    _collectives.broadcast(local, first, group=group)
        for i in cut_order(placed):
            if isinstance(placed[i], Shard):
                local = shard_local(local, placed[i].dim, mesh.size(i), coordinate[i])
    made: Any = DTensor(local, DTensorSpec(mesh, placed, meta), requires_grad=tensor.requires_grad)
    if isinstance(tensor, rushlight.nn.Parameter):
        made = rushlight.nn.Parameter(made.detach(), tensor.requires_grad)
    return made


def distribute_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[..., Any] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> Module:
    """Distribute the parameters and buffers of a module, in place; returns the module.

    Args:
        module: whose parameters and buffers become distributed tensors.
        device_mesh: the mesh, by default the one of `with mesh:`.
        partition_fn: `partition_fn(name, submodule, device_mesh)` distributes what it wants to; all
            else is replicated.
        input_fn: `input_fn(module, inputs, device_mesh)` gives the inputs of `forward`.
        output_fn: `output_fn(module, outputs, device_mesh)` gives its results.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> net = torch.distributed.tensor.distribute_module(torch.nn.Linear(2, 1), mesh)
        >>> net.weight.placements
        (Replicate(),)
        >>> torch.distributed.destroy_process_group()
    """
    mesh = mesh_or_current(device_mesh)
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, and this "
            f"{type(module).__name__} was distributed before"
        )
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        for key, parameter in part._parameters.items():
            if parameter is not None and not isinstance(parameter, DTensor):
                whole = distribute_tensor(parameter.detach(), mesh)
                part.register_parameter(key, rushlight.nn.Parameter(whole, parameter.requires_grad))
        for key, buffer in part._buffers.items():
            if buffer is not None and not isinstance(buffer, DTensor):
                part._buffers[key] = distribute_tensor(buffer, mesh)
    if input_fn is not None:
        _register_hook(module, "input_fn", input_fn, mesh)
    if output_fn is not None:
        _register_hook(module, "output_fn", output_fn, mesh)
    module._distribute_module_applied = True
    return module


def _register_hook(module, name, function, mesh):
    """Calls a function before or after `forward`, with the module if it takes three arguments."""
    import inspect

    count = len(inspect.signature(function).parameters)
    if count not in (2, 3):
        raise ValueError(f"{name} should take in 3 arguments, but got {count} arguments!")
    if count == 2:
        warn(
            f"Deprecating {name} that takes two arguments (inputs, device_mesh), please use "
            f"{name} that takes in (module, inputs, device_mesh) instead!",
            FutureWarning,
        )
    front = () if count == 2 else (module,)
    if name == "input_fn":
        module.register_forward_pre_hook(lambda _, inputs: function(*front, inputs, mesh))
    else:
        module.register_forward_hook(lambda _, __, outputs: function(*front, outputs, mesh))


def _make(name, fill, size, dtype, device_mesh, placements, requires_grad, layout):
    """A factory's tensor: each process makes its piece."""
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    if layout not in (None, rushlight.strided):
        raise NotImplementedError(f"{name}: distributed tensors are strided, not {layout}")
    mesh = mesh_or_current(device_mesh)
    placed = normalize_placements(placements, mesh, len(size), all_replicate(mesh))
    if any(p.is_partial() for p in placed):
        raise RuntimeError(f"{name}: values of a new tensor are not yet to be reduced")
    shape, _ = local_shape_and_offset(size, mesh, placed)
    if mesh.get_coordinate() is None:
        shape = (0,)
    draws = _random.drawing(mesh, placed) if name in ("rand", "randn") else _random.nothing()
    with draws, rushlight.device(mesh.device_type):
        local = fill(shape, dtype)
    meta = TensorMeta(rushlight.Size(size), contiguous_strides(size), local.dtype)
    return DTensor(local, DTensorSpec(mesh, placed, meta), requires_grad=requires_grad)


def _factory(name, text) -> Callable[..., DTensor]:
    make = getattr(rushlight, name)

    def factory(
        *size: int | Sequence[int],
        requires_grad: bool = False,
        dtype: rushlight.dtype | None = None,
        layout: rushlight.layout | None = None,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
    ):
        def fill(shape, dtype):
            return make(shape, dtype=dtype)

        return _make(name, fill, size, dtype, device_mesh, placements, requires_grad, layout)

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = f"""A distributed tensor {text}.

    Args:
        size: of the whole.
        requires_grad: whether gradients are recorded.
        dtype: by default the default dtype.
        layout: strided is the only one.
        device_mesh: the mesh, by default the one of `with mesh:`.
        placements: one for each dimension of the mesh; by default `Replicate()`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> shard = torch.distributed.tensor.Shard(0)
        >>> x = torch.distributed.tensor.{name}(4, 2, device_mesh=mesh, placements=[shard])
        >>> x.to_local().shape
        torch.Size([4, 2])
        >>> torch.distributed.destroy_process_group()
    """
    return factory


ones = _factory("ones", "of ones")
zeros = _factory("zeros", "of zeros")
empty = _factory("empty", "of whatever its memory holds")
rand = _factory("rand", "of draws from [0, 1)")
randn = _factory("randn", "of draws from the standard normal distribution")


def full(
    size: int | Sequence[int],
    fill_value: Any,
    *,
    dtype: _dtype | None = None,
    layout: _layout | None = None,
    requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None,
    placements: Any = None,
) -> Tensor:
    """A distributed tensor of one value; the other arguments are those of `zeros`.

    Args:
        size: the shape of the whole.
        fill_value: the value.
        dtype: the dtype; None: by the value.
        layout: `torch.strided`.
        requires_grad: whether gradients are recorded for it.
        device_mesh: the mesh, by default the one of `with mesh:`.
        placements: one for each dimension of the mesh; by default `Replicate()`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.init_device_mesh("cpu", (1,))
        >>> torch.distributed.tensor.full((2,), 7.0, device_mesh=mesh).to_local()
        tensor([7., 7.])
        >>> torch.distributed.destroy_process_group()
    """

    def fill(shape, dtype):
        return rushlight.full(shape, fill_value, dtype=dtype)

    return _make("full", fill, (size,), dtype, device_mesh, placements, requires_grad, layout)
