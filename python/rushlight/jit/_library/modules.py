"""Methods of layers as programs, where the text of the layers themselves cannot be compiled.

A class here has the name of a layer, and methods in the place of the layer's own.
"""

# pyright: reportUndefinedVariable=false

from __future__ import annotations

# ---- containers ----------------------------------------------------------------------------------


class Sequential:
    def forward(self, input):
        for module in self:
            input = module(input)
        return input


# ---- convolutions --------------------------------------------------------------------------------


class Conv1d:
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        if self.padding_mode != "zeros":
            around = self._reversed_padding_repeated_twice
            padded = torch.pad(input, around, self.padding_mode)
            return torch.conv1d(padded, weight, bias, self.stride, [0], self.dilation, self.groups)
        return torch.conv1d(
            input, weight, bias, self.stride, self.padding, self.dilation, self.groups
        )


class Conv2d:
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        if self.padding_mode != "zeros":
            around = self._reversed_padding_repeated_twice
            padded = torch.pad(input, around, self.padding_mode)
            return torch.conv2d(
                padded, weight, bias, self.stride, [0, 0], self.dilation, self.groups
            )
        return torch.conv2d(
            input, weight, bias, self.stride, self.padding, self.dilation, self.groups
        )


class Conv3d:
    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        if self.padding_mode != "zeros":
            around = self._reversed_padding_repeated_twice
            padded = torch.pad(input, around, self.padding_mode)
            return torch.conv3d(
                padded, weight, bias, self.stride, [0, 0, 0], self.dilation, self.groups
            )
        return torch.conv3d(
            input, weight, bias, self.stride, self.padding, self.dilation, self.groups
        )


class _ConvTransposeNd:
    def _output_padding(
        self,
        input: Tensor,
        output_size: Optional[List[int]],
        stride: List[int],
        padding: List[int],
        kernel_size: List[int],
        num_spatial_dims: int,
        dilation: Optional[List[int]] = None,
    ) -> List[int]:
        if output_size is None:
            return list(self.output_padding)
        n = num_spatial_dims
        extra = input.dim() - n
        wanted = output_size
        if len(wanted) == n + extra:
            wanted = wanted[extra:]
        if len(wanted) != n:
            raise ValueError(
                f"output_size must have {n} or {n + extra} elements (got {len(output_size)})"
            )
        out: List[int] = []
        for d in range(n):
            reach = kernel_size[d] - 1
            if dilation is not None:
                reach = reach * dilation[d]
            size = (input.size(d + extra) - 1) * stride[d] - 2 * padding[d] + reach + 1
            if wanted[d] < size or wanted[d] > size + stride[d] - 1:
                raise ValueError(
                    f"requested an output size of {wanted}, which this input cannot become"
                )
            out.append(wanted[d] - size)
        return out

    def forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
        dims = self.weight.dim() - 2
        batched = input.dim() == dims + 2
        more = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, dims, self.dilation
        )
        out = torch.convolution(
            input if batched else input.unsqueeze(0),
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.dilation,
            True,
            more,
            self.groups,
        )
        return out if batched else out.squeeze(0)


# ---- norms ---------------------------------------------------------------------------------------


class _BatchNorm:
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0
        if self.momentum is not None:
            momentum = self.momentum
        if self.training and self.track_running_stats:
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.add_(1)
                if self.momentum is None:
                    momentum = 1.0 / float(self.num_batches_tracked)
        of_batch = self.training
        if self.running_mean is None and self.running_var is None:
            of_batch = True
        used = not self.training or self.track_running_stats
        return torch.batch_norm(
            input,
            self.weight,
            self.bias,
            self.running_mean if used else None,
            self.running_var if used else None,
            of_batch,
            momentum,
            self.eps,
            True,
        )


class BatchNorm1d:
    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d:
    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d:
    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class _InstanceNorm:
    def forward(self, input: Tensor) -> Tensor:
        batched = self._is_batched(input)
        if self.affine and input.size(1 if batched else 0) != self.num_features:
            raise ValueError(
                f"expected {self.num_features} channels, got {input.size(1 if batched else 0)}"
            )
        momentum = 0.0
        if self.momentum is not None:
            momentum = self.momentum
        out = torch.instance_norm(
            input if batched else input.unsqueeze(0),
            self.weight,
            self.bias,
            self.running_mean,
            self.running_var,
            self.training or not self.track_running_stats,
            momentum,
            self.eps,
            True,
        )
        return out if batched else out.squeeze(0)


class InstanceNorm1d:
    def _is_batched(self, input: Tensor) -> bool:
        if input.dim() != 2 and input.dim() != 3:
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")
        return input.dim() == 3


class InstanceNorm2d:
    def _is_batched(self, input: Tensor) -> bool:
        if input.dim() != 3 and input.dim() != 4:
            raise ValueError(f"expected 3D or 4D input (got {input.dim()}D input)")
        return input.dim() == 4


class InstanceNorm3d:
    def _is_batched(self, input: Tensor) -> bool:
        if input.dim() != 4 and input.dim() != 5:
            raise ValueError(f"expected 4D or 5D input (got {input.dim()}D input)")
        return input.dim() == 5


# ---- pooling -------------------------------------------------------------------------------------


class MaxPool1d:
    def forward(self, input: Tensor):
        if self.return_indices:
            return max_pool1d_with_indices(
                input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
            )
        return max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class MaxPool2d:
    def forward(self, input: Tensor):
        if self.return_indices:
            return max_pool2d_with_indices(
                input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
            )
        return max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class MaxPool3d:
    def forward(self, input: Tensor):
        if self.return_indices:
            return max_pool3d_with_indices(
                input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
            )
        return max_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )


class AdaptiveMaxPool1d:
    def forward(self, input: Tensor):
        if self.return_indices:
            return adaptive_max_pool1d_with_indices(input, self.output_size)
        return adaptive_max_pool1d(input, self.output_size)


class AdaptiveMaxPool2d:
    def forward(self, input: Tensor):
        if self.return_indices:
            return adaptive_max_pool2d_with_indices(input, self.output_size)
        return adaptive_max_pool2d(input, self.output_size)


class AdaptiveMaxPool3d:
    def forward(self, input: Tensor):
        if self.return_indices:
            return adaptive_max_pool3d_with_indices(input, self.output_size)
        return adaptive_max_pool3d(input, self.output_size)


class MaxUnpool1d:
    def forward(
        self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None
    ) -> Tensor:
        return max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool2d:
    def forward(
        self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None
    ) -> Tensor:
        return max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool3d:
    def forward(
        self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None
    ) -> Tensor:
        return max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


# ---- tables --------------------------------------------------------------------------------------


class EmbeddingBag:
    def forward(
        self,
        input: Tensor,
        offsets: Optional[Tensor] = None,
        per_sample_weights: Optional[Tensor] = None,
    ) -> Tensor:
        return embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )


# ---- losses --------------------------------------------------------------------------------------


class TripletMarginWithDistanceLoss:
    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        near = self._distance(anchor, positive)
        far = self._distance(anchor, negative)
        if self.swap:
            far = torch.min(far, self._distance(positive, negative))
        losses = (near - far + self.margin).clamp_min(0)
        if self.reduction == "none":
            return losses
        return losses.mean() if self.reduction == "mean" else losses.sum()

    def _distance(self, a: Tensor, b: Tensor) -> Tensor:
        if self.distance_function is None:
            return torch.pairwise_distance(a, b)
        return self.distance_function(a, b)
