"""Distances between vectors, and images whose channels and pixels change places."""

from gen.table import composite, custom, op

composite("cosine_similarity(Tensor x1, Tensor x2, Dim dim=1, float eps=1e-08) -> Tensor",
          variants="function", python="functional",
          doc="The cosine of the angle between vectors along a dimension; smaller norms are "
              "replaced by eps.",
          autocast={"accelerator": "float32"})
composite("pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) "
          "-> Tensor",
          variants="function", python="functional",
          doc="The p-norm of x1 - x2 + eps along the last dimension.")
op("_cdist(Tensor x1, Tensor x2, float p) -> Tensor", kernel=custom(), variants="",
   grad={"x1, x2": "cdist_gradients(grad, x1, x2, p, result, mask)"},
   doc="The p-norms of the differences between the rows of two batches of matrices.", own=True,
   jvp="twice: differences of all pairs, which its tangent needs, are never held", batch="fold")
op("_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor",
   kernel=custom(), variants="",
   grad="missing", doc="The gradient of `_cdist` for x1.",
   batch="fold")
composite("cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor",
          variants="function", python="wrapped",
          doc="Distances between all rows of two batches of matrices; with p = 2 and many rows by "
              "a matrix product.",
          autocast="float32")
composite("pdist(Tensor self, float p=2) -> Tensor", variants="function", python="functional",
          doc="Distances between all pairs of rows of a matrix.",
          autocast={"accelerator": "float32"})

composite("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", variants="function",
          python="functional",
          doc="Turns channels into pixels: (*, C r², H, W) to (*, C, H r, W r).", out="cpp")
composite("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", variants="function",
          python="functional",
          doc="Turns pixels into channels: (*, C, H r, W r) to (*, C r², H, W).", out="cpp")
for _name in ("channel_shuffle", "native_channel_shuffle"):
    composite(f"{_name}(Tensor self, int groups) -> Tensor", variants="function",
              out="cpp" if _name == "channel_shuffle" else "none", python="functional",
              doc="Deals the channels of (N, C, *) out to groups in turn.")
