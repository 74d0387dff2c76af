"""PowerSGD: gradients are sent as products of two thin matrices (Vogels, Karimireddy, Jaggi, 2019).

A gradient of n rows and m columns is approximated by P Q' with r columns each. One step of the
power method from last iteration's Q finds them: P is the mean over processes of M Q, its columns
made orthonormal; Q the mean of M' P. What a process's own gradient lost is added to its next one.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import rushlight
from rushlight._warnings import warn
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import _group, _mean

if TYPE_CHECKING:
    from rushlight.distributed import GradBucket, ProcessGroup
    from rushlight.futures import Future


__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """The state of the hooks between iterations, and their settings.

    Args:
        process_group: who takes part; None means all processes.
        matrix_approximation_rank: the columns of P and Q: more are more exact and more bytes.
        start_powerSGD_iter: the first iteration that compresses; plain means before.
        min_compression_rate: a gradient is compressed where P and Q together are at least so many
            times smaller than it is.
        use_error_feedback: whether what a process's gradient lost is added to the next one.
        warm_start: whether Q begins as the last one, not as random numbers.
        orthogonalization_epsilon: 0 takes the QR decomposition; above 0, columns are made
            orthogonal one after the other, and divided by their norm and this number.
        random_seed: the random seed of the first Q, the same on all processes.
        compression_stats_logging_frequency: iterations between two lines of the log.
        batch_tensors_with_same_shape: whether gradients of one shape are multiplied as a batch.

    Raises:
        ValueError: error feedback or a warm start before the third iteration: buckets are arranged
            anew after the first one.

    For an example see `distributed.algorithms.ddp_comm_hooks.powerSGD_hook.powerSGD_hook`.
    """

    def __init__(
        self,
        process_group: ProcessGroup | None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ):
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is "
                f"enabled, but got {start_powerSGD_iter}: buckets may change after the first "
                "iteration"
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = rushlight.Generator().manual_seed(random_seed)
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.error_dict: dict = {}  # bucket's number -> what its gradients lost
        self.p_memory_dict: dict = {}
        self.q_memory_dict: dict = {}
        self.iter = 0
        self.total_numel_before_compression = 0
        self.total_numel_after_compression = 0
        self.next_stats_report = 0

    def __getstate__(self):
        warn("The process group of a PowerSGDState is not saved")
        state = {k: v for k, v in vars(self).items() if k not in ("process_group", "rng")}
        return state | {"rng": self.rng.get_state()}

    def __setstate__(self, state):
        rng = rushlight.Generator()
        rng.set_state(state["rng"])
        vars(self).update(state | {"rng": rng, "process_group": None})

    def maybe_increase_iter(self, bucket):
        """Count an iteration if this bucket is its last."""
        self.iter += bucket.is_last()

    def compression_stats(self):
        """The compression rate, the numbers before compression, and the numbers that were sent."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0, before, after)

    def _count(self, before, after):
        self.total_numel_before_compression += before
        self.total_numel_after_compression += after


def _orthonormal(matrices, epsilon):
    """Columns that span the same space."""
    if epsilon == 0:
        wide = matrices.float() if matrices.element_size() < 4 else matrices
        return rushlight.linalg.qr(wide)[0].to(matrices.dtype)
    out = matrices.clone()
    for i in range(out.shape[-1]):
        column = out[..., i : i + 1]
        column /= column.norm(dim=-2, keepdim=True) + epsilon
        rest = out[..., i + 1 :]
        rest -= column @ (column.mT @ rest)
    return out


def _layout(state, groups):
    """The rank of each group, and sizes of its P and Q."""
    sizes = []
    for matrices in groups:
        k, n, m = matrices.shape
        rank = min(n, m, state.matrix_approximation_rank)
        sizes.append(((k, n, rank), (k, m, rank)))
    return sizes


def _parts(flat, shapes):
    pieces = flat.split([math.prod(shape) for shape in shapes])
    return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]


def _compress(state, index, like, groups):
    """Begins the exchange of groups of matrices; their means, approximated, are the result."""
    group = _group(state.process_group)
    shapes = _layout(state, groups)
    numel = sum(math.prod(q) for _, q in shapes)
    q_flat = state.q_memory_dict.get(index) if state.warm_start else None
    fresh = q_flat is None or q_flat.numel() != numel
    if fresh:
        q_flat = rushlight.randn(numel, generator=state.rng).to(like)
        state.q_memory_dict[index] = q_flat
    p_flat = like.new_empty(sum(math.prod(p) for p, _ in shapes))
    state.p_memory_dict[index] = p_flat
    ps, qs = _parts(p_flat, [p for p, _ in shapes]), _parts(q_flat, [q for _, q in shapes])
    for matrices, p, q in zip(groups, ps, qs, strict=True):
        p.copy_(matrices @ (_orthonormal(q, state.orthogonalization_epsilon) if fresh else q))
    group.allreduce([p_flat]).wait()  # in order with other buckets, on every process
    for matrices, p, q in zip(groups, ps, qs, strict=True):
        p.copy_(_orthonormal(p, state.orthogonalization_epsilon))
        q.copy_(matrices.mT @ p)
    return _mean(state.process_group, q_flat).then(
        lambda future: [p @ q.mT for p, q in zip(ps, qs, strict=True)]
    )


def _begin(state, bucket):
    """The flat gradients with what they lost last time, and a copy; None before the start."""
    buffer = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        return None
    if state.use_error_feedback:
        lost = state.error_dict.get(bucket.index())
        if lost is not None and lost.numel() == buffer.numel():
            buffer.add_(lost)
    return buffer


def _report(state):
    if state.iter >= state.next_stats_report:
        rate, before, after = state.compression_stats()
        logging.getLogger(__name__).info(
            "PowerSGD, iteration %s: %s numbers became %s, a rate of %.4g",
            state.iter,
            before,
            after,
            rate,
        )
        state.next_stats_report = state.iter + state.compression_stats_logging_frequency


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """Average gradients; those of two and more dimensions are sent as products of thin matrices.

    A gradient is the matrix of its first dimension and the rest. Vectors, and matrices that would
    not become smaller (`min_compression_rate`), travel as they are.

    Args:
        state: the settings, and what is kept between iterations.
        bucket: the gradients, a `GradBucket`.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        >>> from rushlight.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model.register_comm_hook(power.PowerSGDState(None), power.powerSGD_hook)
        >>> torch.distributed.destroy_process_group()
    """
    buffer = _begin(state, bucket)
    if buffer is None:
        state.maybe_increase_iter(bucket)
        return _mean(state.process_group, bucket.buffer())
    plain, matrices = [], []
    after = 0
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1) if gradient.dim() > 1 else None
        n, m = matrix.shape if matrix is not None else (0, 0)
        rank = min(n, m, state.matrix_approximation_rank)
        if matrix is not None and (n + m) * rank * state.min_compression_rate < n * m:
            matrices.append(matrix)
            after += (n + m) * rank
        else:
            plain.append(gradient)
            after += gradient.numel()
    state._count(buffer.numel(), after)
    _report(state)
    by_shape: dict = {}
    for i, matrix in enumerate(matrices):
        key = matrix.shape if state.batch_tensors_with_same_shape else i
        by_shape.setdefault(key, []).append(matrix)
    groups = list(by_shape.values())
    rest = rushlight.cat([g.flatten() for g in plain]) if plain else buffer.new_empty(0)
    of_rest = _mean(state.process_group, rest)
    made = _compress(state, bucket.index(), buffer, [rushlight.stack(g) for g in groups])
    lost = rushlight.zeros_like(buffer)

    def finish(future):
        at = 0
        values = of_rest.wait()
        for gradient in plain:
            gradient.copy_(values[at : at + gradient.numel()].view_as(gradient))
            at += gradient.numel()
        for group, approximated in zip(groups, future.value(), strict=True):
            for matrix, mean in zip(group, approximated, strict=True):
                if state.use_error_feedback:
                    start = matrix.storage_offset() - buffer.storage_offset()
                    lost[start : start + matrix.numel()] = (matrix - mean).flatten()
                matrix.copy_(mean)
        if state.use_error_feedback:
            state.error_dict[bucket.index()] = lost
        return buffer

    state.maybe_increase_iter(bucket)
    return made.then(finish)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """`powerSGD_hook` for the whole bucket as one square matrix: faster, and less exact.

    Args:
        state: the settings, and what is kept between iterations.
        bucket: the gradients, a `GradBucket`.

    For an example see `distributed.algorithms.ddp_comm_hooks.powerSGD_hook.powerSGD_hook`.
    """
    buffer = _begin(state, bucket)
    if buffer is None:
        state.maybe_increase_iter(bucket)
        return _mean(state.process_group, bucket.buffer())
    side = math.isqrt(max(buffer.numel() - 1, 0)) + 1
    square = rushlight.nn.functional.pad(buffer, (0, side * side - buffer.numel()))
    square = square.view(1, side, side)
    rank = min(side, state.matrix_approximation_rank)
    state._count(buffer.numel(), 2 * side * rank)
    _report(state)

    def finish(future):
        mean = future.value()[0].flatten()[: buffer.numel()]
        if state.use_error_feedback:
            state.error_dict[bucket.index()] = buffer - mean
        return buffer.copy_(mean)

    state.maybe_increase_iter(bucket)
    return _compress(state, bucket.index(), buffer, [square]).then(finish)
