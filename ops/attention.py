"""Attention: softmax(query @ key.T * scale + mask) @ value without ever holding all scores.

The kernels stand in src/cpu/isa/nn/attention.cpp. What they refuse (dropout, a mask that wants a
gradient) is written over ordinary ops in src/ops/attention.cpp.
"""

from gen.table import composite, custom, op

_ATTENTION = "Tensor? attn_mask, bool is_causal, float scale"

op(f"_attention(Tensor query, Tensor key, Tensor value, {_ATTENTION}) -> (Tensor output, Tensor "
   f"logsumexp)",
   kernel=custom(), variants="", nondiff=("logsumexp",),
   grad={"query, key, value": "attention_backward(grad_output, query, key, value, attn_mask, "
                              "output, logsumexp, "
                              "is_causal, scale, mask)"},
   doc="Attention over (batch, heads, rows, width). Equal groups of heads of query share a head "
       "of key and value.", own=True,
   jvp="twice: the scores, which its tangent needs, are never held",
   batch="split_batch(_attention(merge_batch(query, 0, batch), merge_batch(key, 0, batch), "
         "merge_batch(value, 0, batch), merge_batch(attn_mask, 0, batch), is_causal, scale), 0, "
         "batch)",
   autocast="lower")
op(f"_attention_backward(Tensor grad_output, Tensor query, Tensor key, Tensor value, {_ATTENTION}, "
   f"Tensor output, "
   "Tensor logsumexp) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)", kernel=custom(),
   variants="",
   grad="missing", doc="The gradients of `_attention`, fused.", own=True,
   batch="split_batch(_attention_backward(merge_batch(grad_output, 0, batch), "
         "merge_batch(query, 0, batch), merge_batch(key, 0, batch), merge_batch(value, 0, batch), "
         "merge_batch(attn_mask, 0, batch), is_causal, scale, merge_batch(output, 0, batch), "
         "merge_batch(logsumexp, 0, batch)), 0, batch)")
composite("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
          "attn_mask=None, "
          "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) "
          "-> Tensor", python="nn functional",
          variants="function",
          doc="softmax(query @ key.T * scale) @ value over the last two dimensions; attn_mask says "
              "which keys count "
              "(bool) or is added to the scores.",
          autocast="lower", tags=("nondeterministic_seeded",))
