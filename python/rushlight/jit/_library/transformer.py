"""Layers of transformers as programs."""

# pyright: reportUndefinedVariable=false

from __future__ import annotations


def _in_order_of_time(x: Tensor, wanted: bool) -> Tensor:
    return x.transpose(0, 1).contiguous().transpose(0, 1) if wanted and x.dim() == 3 else x


def _is_causal(mask: Optional[Tensor], is_causal: Optional[bool]) -> bool:
    if is_causal is not None:
        return is_causal
    if mask is None or mask.dim() != 2 or mask.size(0) != mask.size(1):
        return False
    size = mask.size(0)
    causal = torch.triu(
        torch.full([size, size], float("-inf"), dtype=mask.dtype, device=mask.device), 1
    )
    return bool((mask == causal).all())


class _Layer:
    def _network(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Optional[Tensor],
        key_padding_mask: Optional[Tensor],
        is_causal: bool = False,
    ) -> Tensor:
        attended = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        drops = self.dropout1.training and self.dropout1.p > 0.0 and self.self_attn.batch_first
        return self.dropout1(_in_order_of_time(attended, drops))

    def _self_step(
        self,
        x: Tensor,
        mask: Optional[Tensor],
        padding: Optional[Tensor],
        is_causal: bool,
    ) -> Tensor:
        if self.norm_first:
            return x + self._sa_block(self.norm1(x), mask, padding, is_causal)
        return self.norm1(x + self._sa_block(x, mask, padding, is_causal))


class TransformerEncoderLayer:
    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._network(x))

    def _network_step(self, x: Tensor) -> Tensor:
        if self.norm_first:
            return x + self._ff_block(self.norm2(x))
        return self.norm2(x + self._ff_block(x))

    def forward(
        self,
        src: Tensor,
        src_mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        is_causal: bool = False,
    ) -> Tensor:
        attended = self._self_step(src, src_mask, src_key_padding_mask, is_causal)
        return self._network_step(attended)


class TransformerDecoderLayer:
    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Optional[Tensor],
        key_padding_mask: Optional[Tensor],
        is_causal: bool = False,
    ) -> Tensor:
        attended = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        drops = self.dropout2.training and self.dropout2.p > 0.0
        return self.dropout2(_in_order_of_time(attended, drops and self.multihead_attn.batch_first))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._network(x))

    def _memory_step(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Optional[Tensor],
        padding: Optional[Tensor],
        is_causal: bool,
    ) -> Tensor:
        if self.norm_first:
            return x + self._mha_block(self.norm2(x), memory, mask, padding, is_causal)
        return self.norm2(x + self._mha_block(x, memory, mask, padding, is_causal))

    def _network_step(self, x: Tensor) -> Tensor:
        if self.norm_first:
            return x + self._ff_block(self.norm3(x))
        return self.norm3(x + self._ff_block(x))

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        tgt_key_padding_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = self._self_step(tgt, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        both = self._memory_step(
            own, memory, memory_mask, memory_key_padding_mask, memory_is_causal
        )
        return self._network_step(both)


class TransformerEncoder:
    def forward(
        self,
        src: Tensor,
        mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        is_causal: Optional[bool] = None,
    ) -> Tensor:
        causal = _is_causal(mask, is_causal)
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder:
    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        tgt_key_padding_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
        tgt_is_causal: Optional[bool] = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own, other = tgt_key_padding_mask, memory_key_padding_mask
        causal = _is_causal(tgt_mask, tgt_is_causal)
        for one in self.layers:
            tgt = one(tgt, memory, tgt_mask, memory_mask, own, other, causal, memory_is_causal)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer:
    def _check(self, src: Tensor, tgt: Tensor) -> None:
        batch_dim = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch_dim) != tgt.size(batch_dim):
            raise RuntimeError("src and tgt are of different batch sizes")
        for x in [src, tgt]:
            if x.size(-1) != self.d_model:
                raise RuntimeError(f"the width is {self.d_model}, and an input has {x.size(-1)}")

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Optional[Tensor] = None,
        tgt_mask: Optional[Tensor] = None,
        memory_mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        tgt_key_padding_mask: Optional[Tensor] = None,
        memory_key_padding_mask: Optional[Tensor] = None,
        src_is_causal: Optional[bool] = None,
        tgt_is_causal: Optional[bool] = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        self._check(src, tgt)
        own, other = tgt_key_padding_mask, memory_key_padding_mask
        encoded = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        return self.decoder(
            tgt, encoded, tgt_mask, memory_mask, own, other, tgt_is_causal, memory_is_causal
        )
