"""Device meshes: processes in a grid, with a group along each of its dimensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import rushlight
from rushlight.distributed import _making, _world
from rushlight.distributed._process_group import ProcessGroup

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DeviceMesh",
    "init_device_mesh",
]


_OF_THE_WORLD = None, None  # the backend and the options of the group of all


class DeviceMesh:
    """A grid of ranks: `mesh` is a tensor of them, and every process has a group for each
    dimension.

    Args:
        device_type: "cpu" or another.
        mesh: the ranks, a tensor or nested lists.
        mesh_dim_names: names of its dimensions.
        backend_override: backends by dimension.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> torch.distributed.device_mesh.DeviceMesh("cpu", [0]).size()
        1
        >>> torch.distributed.destroy_process_group()
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None,
        _init_backend: bool = True,
        _rank: int | None = None,
    ) -> None:
        if isinstance(mesh, rushlight.Tensor) and mesh.device.type != "cpu":
            raise ValueError(f"`mesh` must be a CPU tensor, got {mesh}")
        self.device_type = device_type
        self.mesh = rushlight.as_tensor(mesh, dtype=rushlight.int64, device="cpu").detach().clone()
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        self._root: DeviceMesh | None = None
        self._groups: list[Any] | None = None
        self._slices: dict[tuple[str, ...], DeviceMesh] = {}
        self._flattened: dict[str, tuple[tuple[int, ...], DeviceMesh]] = {}
        if _init_backend:
            if not _world.is_initialized():
                _making.init_process_group()
            size = _world.get_world_size()
            if self.mesh.numel() > size:
                raise RuntimeError(
                    "a mesh has at most as many ranks as there are processes, but found "
                    f"{self.mesh.numel()} ranks of {size}"
                )
        ranks = self.mesh.reshape(-1).tolist()
        if len(set(ranks)) != len(ranks):
            raise RuntimeError(f"Each rank must appear once in a mesh: {self.mesh.tolist()}")
        rank = _rank
        if rank is None:
            rank = _world.get_rank() if _world.is_initialized() else 0
        here = (self.mesh == rank).nonzero()
        self._coordinate_on_dim = here[0].tolist() if here.shape[0] == 1 else None
        backends = backend_override or (_OF_THE_WORLD,) * self.mesh.ndim
        if len(backends) != self.mesh.ndim:
            raise ValueError(
                "backend_override should have the same length as the mesh has dimensions, but got "
                f"{len(backends)} for {self.mesh.ndim}"
            )
        if _init_backend:
            self._make_groups(backends)

    def _make_groups(self, backends):
        """A group of each line of the grid; all processes make all."""
        self._groups = []
        for dim, backend in enumerate(backends):
            name = dim if self.mesh_dim_names is None else self.mesh_dim_names[dim]
            self._groups.append(self._groups_along(self.mesh, dim, name, backend))

    @staticmethod
    def _groups_along(grid, dim: int, name, backend) -> Any:
        lines = grid.movedim(dim, -1).reshape(-1, grid.shape[dim])
        return _groups_of(lines.tolist(), name, backend)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the mesh."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, in all or along a dimension."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[mesh_dim]

    _entered: ClassVar[list[DeviceMesh]] = []  # by `with mesh:`

    def __enter__(self):
        """Within it, it is the mesh of what is given none."""
        DeviceMesh._entered.append(self)
        return self

    def __exit__(self, *_):
        DeviceMesh._entered.pop()

    @staticmethod
    def _current() -> DeviceMesh | None:
        return DeviceMesh._entered[-1] if DeviceMesh._entered else None

    def __repr__(self):
        sizes = self.shape
        if self.mesh_dim_names is not None:
            named = zip(self.mesh_dim_names, sizes, strict=True)
            shape = f"({', '.join(f'{name}={size}' for name, size in named)})"
        else:
            shape = str(sizes)
        steps = tuple(self._step(dim) for dim in range(self.mesh.ndim))
        return f"DeviceMesh({shape}, {self.device_type!r}, stride={steps})"

    def _step(self, dim):
        """From one rank to the next along a dimension; an empty tuple where there is none."""
        line = self.mesh.movedim(dim, 0).reshape(self.mesh.shape[dim], -1)[:, 0]
        return int(line[1] - line[0]) if len(line) > 1 else ()

    def _key(self):
        root = None if self._root is None else self._root._key()
        return (
            tuple(self.mesh.reshape(-1).tolist()),
            self.shape,
            self.device_type,
            self.mesh_dim_names,
            root,
        )

    def __eq__(self, other):
        return isinstance(other, DeviceMesh) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _description(self):
        """Plain data of which `_remade` makes an equal mesh."""
        root = None if self._root is None else self._root._description()
        return self.device_type, self.mesh.tolist(), self.mesh_dim_names, root

    def __reduce__(self):
        return _remade, self._description()

    def _known_groups(self):
        """The groups that there are of this process's lines; None if one is missing."""
        if self._coordinate_on_dim is None:
            return None
        found: list[Any] = []
        for dim in range(self.mesh.ndim):
            index: Any = tuple(
                slice(None) if d == dim else c for d, c in enumerate(self._coordinate_on_dim)
            )
            line = self.mesh[index].tolist()
            known = (g for g, ranks in _world._pg_group_ranks.items() if list(ranks) == line)
            found.append(next(known, None))
        return None if None in found else found

    def _dim_index(self, mesh_dim) -> int:
        if isinstance(mesh_dim, str):
            if self.mesh_dim_names is None or mesh_dim not in self.mesh_dim_names:
                raise KeyError(
                    f"Mesh dimension {mesh_dim!r} does not exist in mesh dim names: "
                    f"{self.mesh_dim_names}"
                )
            return self.mesh_dim_names.index(mesh_dim)
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None):
        """This process's group along a dimension."""
        if self._groups is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if mesh_dim is None:
            if self.mesh.ndim > 1:
                raise RuntimeError(
                    f"a DeviceMesh of {self.mesh.ndim} dimensions has a group for each: `mesh_dim` "
                    "needs to be specified, or `get_all_groups()` gives all of them"
                )
            mesh_dim = 0
        return self._groups[self._dim_index(mesh_dim)]

    def get_all_groups(self) -> list:
        """This process's groups along all dimensions."""
        return [self.get_group(dim) for dim in range(self.mesh.ndim)]

    def get_rank(self) -> int:
        """The rank of this process."""
        return _world.get_rank()

    def get_coordinate(self) -> list[int] | None:
        """The coordinates of this process in the mesh; None if it is not part of it."""
        return self._coordinate_on_dim or None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The index of this process along a dimension."""
        if self.mesh.ndim > 1 and mesh_dim is None:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.mesh.ndim} dimensions. Optional kwarg "
                "`mesh_dim` needs to be specified when device_mesh.ndim > 1."
            )
        return _world.get_rank(self.get_group(0 if mesh_dim is None else mesh_dim))

    def __getitem__(self, mesh_dim_names) -> DeviceMesh:
        """The part of the grid that this process is in, along named dimensions."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        valid = [*self.mesh_dim_names, *self._flattened]
        if not names or any(name not in valid for name in names):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {valid}."
            )
        spans = [self._span(name) for name in names]
        dims = [d for span in spans for d in span]
        if dims != sorted(set(dims)):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified: they must stand in the order of "
                f"{self.mesh_dim_names}."
            )
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and names[0] in self._flattened:
            return self._flattened[names[0]][1]
        if names not in self._slices:
            where = self.get_coordinate() or [0] * self.mesh.ndim
            index = tuple(slice(None) if d in dims else where[d] for d in range(self.mesh.ndim))
            sizes = [math.prod(self.mesh.shape[d] for d in span) for span in spans]
            part = DeviceMesh(
                self.device_type,
                self.mesh[index].reshape(sizes),
                mesh_dim_names=names,
                _init_backend=False,
            )
            part._root = self if self._root is None else self._root
            if self._groups is not None:
                part._groups = (
                    [self[name].get_group() for name in names]
                    if len(names) > 1
                    else [self._groups[dims[0]]]
                )
            self._slices[names] = part
        return self._slices[names]

    def _span(self, name: str) -> tuple[int, ...]:
        """The dimensions that a name stands for."""
        if name in self._flattened:
            return self._flattened[name][0]
        return (self._dim_index(name),)

    def _flatten(self, mesh_dim_name: str | None = None, backend_override=None) -> DeviceMesh:
        """All ranks of this mesh as a mesh of one dimension, which the root has by that name.

        Args:
            mesh_dim_name: the name; by default those of the dimensions, joined by "_".
            backend_override: the backend of its groups, `ProcessGroup.Options`, or both.
        """
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        (backend,) = _backends_of_dims(backend_override and {0: backend_override}, 1, None)
        root = self._get_root_mesh()
        name = mesh_dim_name or "_".join(self.mesh_dim_names)
        if self.mesh.ndim == 1 and name == self.mesh_dim_names[0]:
            return self
        dims = tuple(d for each in self.mesh_dim_names for d in root._span(each))
        if name in (root.mesh_dim_names or ()) or root._flattened.get(name, (dims,))[0] != dims:
            raise ValueError(
                f"{name} already exists for submesh of the {root}. The mesh_dim_names of submesh "
                f"and flattened mesh are {root.mesh_dim_names} and {[*root._flattened]}."
            )
        if name not in root._flattened:
            lines = root.mesh.movedim(dims, tuple(range(-len(dims), 0)))
            lines = lines.reshape(-1, self.mesh.numel())
            groups = _groups_of(lines.tolist(), name, backend) if root._groups is not None else None
            ranks = self.mesh.reshape(-1)
            flat = DeviceMesh(self.device_type, ranks, mesh_dim_names=(name,), _init_backend=False)
            flat._root, flat._groups = root, groups and [groups]
            root._flattened[name] = dims, flat
        return root._flattened[name][1]

    def _unflatten(
        self, dim: int | str, mesh_sizes, mesh_dim_names, backend_override=None
    ) -> DeviceMesh:
        """This mesh with one of its dimensions as several, not a part of another mesh.

        Args:
            dim: the dimension, by number or name.
            mesh_sizes: the sizes of those that it becomes.
            mesh_dim_names: their names.
            backend_override: backends of theirs, as `init_device_mesh` takes them.
        """
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot unflatten a DeviceMesh without mesh_dim_names!")
        if isinstance(dim, str) and dim not in self.mesh_dim_names:
            raise ValueError(f"dim {dim} specified in `_unflatten` is not in {self.mesh_dim_names}")
        dim = self._dim_index(dim)
        if not 0 <= dim < self.ndim:
            raise ValueError(f"dim {dim} specified in `_unflatten` is out of range {self.ndim}")
        sizes, names = tuple(mesh_sizes), tuple(mesh_dim_names)
        if len(sizes) != len(names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        if math.prod(sizes) != self.mesh.shape[dim]:
            raise ValueError(
                f"unflatten: mesh_sizes={sizes} make {math.prod(sizes)} ranks and dim={dim} has "
                f"{self.mesh.shape[dim]}, which must be equal"
            )
        backends = _backends_of_dims(backend_override, len(sizes), names)
        after = len(sizes) + self.ndim - dim - 1
        root = self._get_root_mesh()
        made = DeviceMesh(
            self.device_type,
            self.mesh.unflatten(dim, sizes),
            mesh_dim_names=(*self.mesh_dim_names[:dim], *names, *self.mesh_dim_names[dim + 1 :]),
            _init_backend=False,
        )
        if self._groups is not None:
            # All processes make the groups of all meshes like this one.
            axes = [d for name in self.mesh_dim_names for d in root._span(name)]
            rest = [d for d in range(root.ndim) if d not in axes]
            every = root.mesh.permute(*rest, *axes).reshape(-1, *self.shape)
            grid = every.unflatten(1 + dim, sizes)
            made._groups = list(self._groups)
            made._groups[dim : dim + 1] = [
                self._groups_along(grid, i - after, name, backend)
                for i, (name, backend) in enumerate(zip(names, backends, strict=True))
            ]
        return made

    def _get_root_mesh(self) -> DeviceMesh:
        return self if self._root is None else self._root

    @staticmethod
    def from_group(group, device_type: str, mesh=None, *, mesh_dim_names=None) -> DeviceMesh:
        """Make a mesh from existing groups."""
        if isinstance(group, (list, tuple)):
            groups = list(group)
            if not groups:
                raise ValueError("Expects at least one ProcessGroup to be passed")
            if mesh is None:
                raise ValueError("Must pass mesh if passing multiple ProcessGroups")
            grid = rushlight.as_tensor(mesh, dtype=rushlight.int64, device="cpu")
            if grid.ndim != len(groups):
                raise ValueError(
                    "a mesh with ndim equal to the number of groups is expected, but got "
                    f"{grid.tolist()} and {len(groups)} groups"
                )
        else:
            groups = [group]
            ranks = _world.get_process_group_ranks(group)
            grid = rushlight.as_tensor(
                ranks if mesh is None else mesh, dtype=rushlight.int64, device="cpu"
            )
            if grid.tolist() != ranks:
                raise ValueError(
                    f"Invalid mesh {grid.tolist()} for ProcessGroup with ranks {ranks}"
                )
        made = DeviceMesh(device_type, grid, mesh_dim_names=mesh_dim_names, _init_backend=False)
        made._groups = groups
        return made


def _groups_of(lines: list[list[int]], name, backend) -> Any:
    """A group of each of these lists of ranks; this process's."""
    kind, options = backend
    if lines == [list(range(_world.get_world_size()))] and backend == _OF_THE_WORLD:
        return _world._get_default_group()
    mine: Any = None
    for ranks in lines:
        made = _making.new_group(
            ranks,
            timeout=None if options is None else options._timeout,
            backend=kind,
            pg_options=options,
            group_desc=f"mesh_{name}",
            sort_ranks=False,
        )
        if made is not _world.GroupMember.NON_GROUP_MEMBER:
            mine = made
    return mine


def _backends_of_dims(override, ndim: int, names) -> tuple:
    """The backend and its options of each dimension, by its number or its name."""
    if override is None:
        return (_OF_THE_WORLD,) * ndim
    left, found = dict(override), []
    for dim in range(ndim):
        name = names[dim] if names else None
        if dim in left and name in left:
            raise RuntimeError(
                f"Found redundant dim index {dim} and name {name} in backend_override"
            )
        value = left.pop(dim if dim in left else name, None)
        if isinstance(value, str):
            value = value, None
        elif isinstance(value, ProcessGroup.Options):
            value = None, value
        found.append(_OF_THE_WORLD if value is None else tuple(value))
    if left:
        raise RuntimeError(
            f"Found invalid keys in backend_override: {list(left)} are neither dimensions below "
            f"{ndim} nor among the names {names or ()}"
        )
    return tuple(found)


def _remade(device_type: str, ranks, names, root) -> DeviceMesh:
    """A mesh of which a file or a copy has the description, on the groups that there are."""
    mesh = DeviceMesh(device_type, ranks, mesh_dim_names=names, _init_backend=False)
    mesh._root = None if root is None else _remade(*root)
    mesh._groups = mesh._known_groups()
    return mesh


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Make a mesh of the processes 0, 1, 2 and so on; the default group is made if there is
    none.

    Args:
        device_type: "cpu" or another.
        mesh_shape: the sizes of the mesh.
        mesh_dim_names: names of its dimensions.
        backend_override: backends by dimension.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        >>> mesh.size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. Found repeated mesh_dim_name in "
                f"mesh_dim_names {mesh_dim_names}"
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                f"mesh_shape and mesh_dim_names should have same length, but are {mesh_shape} and "
                f"{mesh_dim_names}"
            )
    if not device_type.isalpha():
        raise RuntimeError(
            "Device type with index is not supported: expected a name such as 'cuda', but got "
            f"{device_type!r}. Of a device, pass its type"
        )
    mesh = rushlight.arange(math.prod(mesh_shape), device="cpu").reshape(tuple(mesh_shape))
    return DeviceMesh(
        device_type,
        mesh,
        mesh_dim_names=mesh_dim_names,
        backend_override=_backends_of_dims(backend_override, mesh.ndim, mesh_dim_names),
    )
