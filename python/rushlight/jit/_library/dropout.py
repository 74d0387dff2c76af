"""Dropout as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if inplace:
        return torch.dropout_(input, p, training)
    return torch.dropout(input, p, training)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    _check_probability(p)
    if inplace:
        return torch.alpha_dropout_(input, p, training)
    return torch.alpha_dropout(input, p, training)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    _check_probability(p)
    if inplace:
        return torch.feature_alpha_dropout_(input, p, training)
    return torch.feature_alpha_dropout(input, p, training)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    _check_probability(p)
    if inplace:
        return torch.feature_dropout_(input, p, training)
    return torch.feature_dropout(input, p, training)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    _check_probability(p)
    batched = input.dim() != 2
    whole = input if batched else input.unsqueeze(0)
    dropped = (
        torch.feature_dropout_(whole, p, training)
        if inplace
        else torch.feature_dropout(whole, p, training)
    )
    return dropped if batched else dropped.squeeze(0)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    _check_probability(p)
    batched = input.dim() != 4
    whole = input if batched else input.unsqueeze(0)
    dropped = (
        torch.feature_dropout_(whole, p, training)
        if inplace
        else torch.feature_dropout(whole, p, training)
    )
    return dropped if batched else dropped.squeeze(0)
