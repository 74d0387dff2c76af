"""Functions of tensors that are no single op with the same arguments, as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def torch__assert(condition: bool, message: str) -> None:
    assert condition, message


def torch_tensordot(a: Tensor, b: Tensor, dims: int = 2) -> Tensor:
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    return torch.tensordot(a, b, [i for i in range(-dims, 0)], [i for i in range(dims)])


def torch_tensordot__1(a: Tensor, b: Tensor, dims: List[List[int]]) -> Tensor:
    return torch.tensordot(a, b, dims[0], dims[1])


def torch_tensordot__2(a: Tensor, b: Tensor, dims: Tuple[List[int], List[int]]) -> Tensor:
    return torch.tensordot(a, b, dims[0], dims[1])


def torch_tensordot__3(a: Tensor, b: Tensor, dims: Tensor) -> Tensor:
    if dims.numel() == 1:
        n = int(dims.item())
        return torch.tensordot(a, b, [i for i in range(-n, 0)], [i for i in range(n)])
    first: List[int] = dims[0].tolist()
    second: List[int] = dims[1].tolist()
    return torch.tensordot(a, b, first, second)


def math_log2(x: float) -> float:  # no function of numbers in PyTorch's programs
    return float(torch.log2(torch.tensor(x, dtype=7)))


def math_log2__1(x: int) -> float:
    return float(torch.log2(torch.tensor(x, dtype=7)))


def math_prod(iterable: List[int], start: int = 1) -> int:
    for item in iterable:
        start *= item
    return start


def math_prod__1(iterable: List[float], start: float = 1.0) -> float:
    for item in iterable:
        start *= item
    return start


def torch_unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Optional[int] = None,
) -> Tensor:
    if return_inverse or return_counts:
        raise RuntimeError("return_inverse, return_counts: call torch._unique2 or torch.unique_dim")
    if dim is None:
        return torch._unique2(input, sorted)[0]
    return torch.unique_dim(input, dim, sorted)[0]
