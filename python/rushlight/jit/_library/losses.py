"""Losses as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def _old_reduction(size_average: Optional[bool], reduce: Optional[bool], reduction: str) -> str:
    if size_average is None and reduce is None:
        return reduction
    averages = True if size_average is None else size_average
    reduces = True if reduce is None else reduce
    if not reduces:
        return "none"
    return "mean" if averages else "sum"


def _code(reduction: str) -> int:
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    number = _code(reduction)
    if number == 0:
        return losses
    return losses.mean() if number == 1 else losses.sum()


def _reduce_weighted(losses: Tensor, weight: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return losses.sum() / weight.expand_as(losses).sum()
    return _reduced(losses, reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.cross_entropy_loss(input, target, weight, number, ignore_index, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.nll_loss_nd(input, target, weight, number, ignore_index)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    chosen = _old_reduction(size_average, reduce, reduction)
    if weight is not None:
        return _reduce_weighted(torch.mse_loss(input, target, 0) * weight, weight, chosen)
    return torch.mse_loss(input, target, _code(chosen))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    weight: Optional[Tensor] = None,
) -> Tensor:
    chosen = _old_reduction(size_average, reduce, reduction)
    if weight is not None:
        return _reduce_weighted(torch.l1_loss(input, target, 0) * weight, weight, chosen)
    return torch.l1_loss(input, target, _code(chosen))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    if beta == 0.0:
        return torch.l1_loss(input, target, number)
    return torch.smooth_l1_loss(input, target, number, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Optional[Tensor] = None,
) -> Tensor:
    if weight is not None:
        return _reduced(torch.huber_loss(input, target, 0, delta) * weight, reduction)
    return torch.huber_loss(input, target, _code(reduction), delta)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.binary_cross_entropy(input, target, weight, number)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    pos_weight: Optional[Tensor] = None,
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.binary_cross_entropy_with_logits(input, target, weight, pos_weight, number)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    batchmean = reduction == "batchmean"
    number = _code(_old_reduction(size_average, reduce, "sum" if batchmean else reduction))
    out = torch.kl_div(input, target, number, log_target=log_target)
    return out / input.size(0) if batchmean and input.dim() != 0 else out


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: Optional[bool] = None,
    eps: float = 1e-8,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.poisson_nll_loss(input, target, log_input, full, eps, number)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif input.size()[:-1] != var.size()[:-1] or var.size(-1) != 1:
            raise ValueError("var is of incorrect size")
    clamped = var.clone()
    with no_grad():
        clamped.clamp_(min=eps)
    losses = 0.5 * (torch.log(clamped) + (input - target) ** 2 / clamped)
    if full:
        losses = losses + 0.9189385332046727
    return _reduced(losses, reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.hinge_embedding_loss(input, target, margin, number)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.soft_margin_loss(input, target, number)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.margin_ranking_loss(input1, input2, target, margin, number)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.cosine_embedding_loss(input1, input2, target, margin, number)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, number)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.multi_margin_loss(input, target, p, margin, weight, number)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    number = _code(_old_reduction(size_average, reduce, reduction))
    return torch.multilabel_margin_loss(input, target, number)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = "mean",
) -> Tensor:
    losses = torch.binary_cross_entropy_with_logits(input, target, weight, None, 0)
    return _reduced(losses.mean(-1), _old_reduction(size_average, reduce, reduction))


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    return torch.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _code(reduction), zero_infinity
    )
