"""The stateless modules of nn: a name, constructor arguments, the functional that a call is.

An entry is plain data and expands to a class in Python (gen/modules.py); one in C++ can follow.

    module("LeakyReLU(float negative_slope=0.01, bool inplace=False)", "activation",
           "leaky_relu(input, negative_slope, inplace)", show="negative_slope={negative_slope}{?inplace}",
           doc="x where it is positive, negative_slope * x elsewhere.")

The signature is in the op table's schema language. Every argument becomes an attribute, a `Tensor?`
a buffer; `int[2]? stride=kernel_size` takes another argument's value where it is None. In the call,
names of attributes (and `training`) mean those of the module, other names are arguments of
`forward`, listed in `inputs`. `show` is the text between the parentheses of `repr`; `{?flag}` gives
`flag=True` where it is true and nothing elsewhere. A base without a call is abstract.

Other keys: `base` (a class of this table or "Module"), `spread` (arguments that a single int is
repeated for, to the size in their type), `sets` (attributes computed by an expression), `transient`
(arguments that become no attribute), `fixed` (arguments of the base with a fixed value).
"""

MODULES: list[dict] = []


def module(signature: str, family: str, call: str = "", **keys) -> None:
    MODULES.append({"signature": signature, "family": family, "call": call, **keys})


# ---- activations ----

_SLOPE = "float alpha=1.0, bool inplace=False"

module("ReLU(bool inplace=False)", "activation", "relu(input, inplace)",
       show="{?inplace}", doc="max(x, 0).")
module("LeakyReLU(float negative_slope=0.01, bool inplace=False)", "activation",
       "leaky_relu(input, negative_slope, inplace)",
       show="negative_slope={negative_slope}{?inplace}",
       doc="x where it is positive, `negative_slope * x` elsewhere.")
module(f"ELU({_SLOPE})", "activation", "elu(input, alpha, inplace)",
       show="alpha={alpha}{?inplace}",
       doc="x where it is positive, `alpha * (exp(x) - 1)` elsewhere.")
module(f"CELU({_SLOPE})", "activation", "celu(input, alpha, inplace)",
       show="alpha={alpha}{?inplace}",
       doc="max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)).")
module("SELU(bool inplace=False)", "activation", "selu(input, inplace)",
       show="{?inplace}", doc="ELU with the alpha and scale that keep mean 0 and variance 1.")
module("SiLU(bool inplace=False)", "activation", "silu(input, inplace)",
       show="{?inplace}", doc="x * sigmoid(x).")
module("Mish(bool inplace=False)", "activation", "mish(input, inplace)",
       show="{?inplace}", doc="x * tanh(softplus(x)).")
module("GELU(str approximate='none')", "activation", "gelu(input, approximate=approximate)",
       show="approximate={approximate!r}",
       doc='x times the normal distribution function of x, or its "tanh" approximation.')
module("Hardswish(bool inplace=False)", "activation", "hardswish(input, inplace)",
       doc="x * relu6(x + 3) / 6.")
module("Hardsigmoid(bool inplace=False)", "activation", "hardsigmoid(input, inplace)",
       doc="relu6(x + 3) / 6.")
module("Sigmoid()", "activation", "sigmoid(input)", doc="1 / (1 + exp(-x)).")
module("Tanh()", "activation", "tanh(input)", doc="The hyperbolic tangent.")
module("LogSigmoid()", "activation", "logsigmoid(input)", doc="log(sigmoid(x)).")
module("Softsign()", "activation", "softsign(input)", doc="x / (1 + |x|).")
module("Tanhshrink()", "activation", "tanhshrink(input)", doc="x - tanh(x).")
module("Softplus(float beta=1.0, float threshold=20.0)", "activation",
       "softplus(input, beta, threshold)", show="beta={beta}, threshold={threshold}",
       doc="log(1 + exp(beta * x)) / beta; x itself where beta * x is above `threshold`.")
module("Softshrink(float lambd=0.5)", "activation", "softshrink(input, lambd)", show="{lambd}",
       doc="x moved towards zero by `lambd`, zero where that crosses it.")
module("Hardshrink(float lambd=0.5)", "activation", "hardshrink(input, lambd)", show="{lambd}",
       doc="x where |x| is above `lambd`, zero elsewhere.")
module("Threshold(float threshold, float value, bool inplace=False)", "activation",
       "threshold(input, threshold, value, inplace)",
       show="threshold={threshold}, value={value}{?inplace}",
       doc="x where it is above `threshold`, `value` elsewhere.")
module("RReLU(float lower=0.125, float upper=0.3333333333333333, bool inplace=False)", "activation",
       "rrelu(input, lower, upper, training, inplace)",
       show="lower={lower}, upper={upper}{?inplace}",
       doc="LeakyReLU with a random slope in training and the mean slope in evaluation.")
module("GLU(int dim=-1)", "activation", "glu(input, dim)", show="dim={dim}",
       doc="The first half along `dim` times the sigmoid of the second.")
module("Softmax(int? dim=None)", "activation", "softmax(input, dim, _stacklevel=5)",
       show="dim={dim}", doc="exp(x) over its sum along `dim`.")
module("Softmin(int? dim=None)", "activation", "softmin(input, dim, _stacklevel=5)",
       show="dim={dim}", doc="Softmax of -x along `dim`.")
module("LogSoftmax(int? dim=None)", "activation", "log_softmax(input, dim, _stacklevel=5)",
       show="dim={dim}", doc="The logarithm of softmax along `dim`.")

# ---- dropout ----

module("_DropoutNd(float p=0.5, bool inplace=False)", "dropout", show="p={p}, inplace={inplace}",
       sets={"p": "_probability(p)"}, doc="The settings that all kinds of dropout share.")
for _name, _doc in {
    "Dropout": "Sets elements to zero with probability p in training and scales the others.",
    "Dropout1d": "Sets whole channels of (N, C, L) to zero with probability p in training.",
    "Dropout2d": "Sets whole channels of (N, C, H, W) to zero with probability p in training.",
    "Dropout3d": "Sets whole channels of (N, C, D, H, W) to zero with probability p in training.",
}.items():
    module(f"{_name}()", "dropout", f"{_name.lower()}(input, p, training, inplace)",
           base="_DropoutNd", doc=_doc)
module("AlphaDropout()", "dropout", "alpha_dropout(input, p, training, inplace)",
       base="_DropoutNd", doc="Dropout that keeps mean and variance of SELU's results.")
module("FeatureAlphaDropout()", "dropout", "feature_alpha_dropout(input, p, training, inplace)",
       base="_DropoutNd", doc="AlphaDropout of whole channels.")

# ---- pooling ----

module("_MaxPoolNd(int[] kernel_size, int[]? stride=kernel_size, int[] padding=0, int[] dilation=1, "
       "bool return_indices=False, bool ceil_mode=False)", "pooling",
       show="kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, "
            "ceil_mode={ceil_mode}",
       doc="The settings of max pooling.")
for _n, _axes in ((1, "L"), (2, "H, W"), (3, "D, H, W")):
    module(f"MaxPool{_n}d()", "pooling",
           f"max_pool{_n}d(input, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode, "
           "return_indices=return_indices)",
           base="_MaxPoolNd", doc=f"The largest value of each window of (N, C, {_axes}).")
module("_AvgPoolNd()", "pooling",
       show="kernel_size={kernel_size}, stride={stride}, padding={padding}",
       doc="What average pooling shows.")
module("AvgPool1d(int[1] kernel_size, int[1]? stride=kernel_size, int[1] padding=0, "
       "bool ceil_mode=False, bool count_include_pad=True)", "pooling",
       "avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)",
       base="_AvgPoolNd", spread=("kernel_size", "stride", "padding"),
       doc="The mean of each window of (N, C, L).")
for _n, _axes in ((2, "H, W"), (3, "D, H, W")):
    module(f"AvgPool{_n}d(int[] kernel_size, int[]? stride=kernel_size, int[] padding=0, "
           "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None)",
           "pooling",
           f"avg_pool{_n}d(input, kernel_size, stride, padding, ceil_mode, count_include_pad, "
           "divisor_override)",
           base="_AvgPoolNd", doc=f"The mean of each window of (N, C, {_axes}).")
module("_AdaptiveAvgPoolNd(int?[] output_size)", "pooling", show="output_size={output_size}",
       doc="The setting of adaptive average pooling.")
module("_AdaptiveMaxPoolNd(int?[] output_size, bool return_indices=False)", "pooling",
       show="output_size={output_size}", doc="The settings of adaptive max pooling.")
for _n in (1, 2, 3):
    module(f"AdaptiveAvgPool{_n}d()", "pooling", f"adaptive_avg_pool{_n}d(input, output_size)",
           base="_AdaptiveAvgPoolNd", doc="The means of as many windows as `output_size` says.")
    module(f"AdaptiveMaxPool{_n}d()", "pooling",
           f"adaptive_max_pool{_n}d(input, output_size, return_indices)",
           base="_AdaptiveMaxPoolNd",
           doc="The largest values of as many windows as `output_size` says.")
module("_LPPoolNd(float norm_type, int[] kernel_size, int[]? stride=None, bool ceil_mode=False)",
       "pooling",
       show="norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, "
            "ceil_mode={ceil_mode}",
       doc="The settings of power-average pooling.")
for _n in (1, 2):
    module(f"LPPool{_n}d()", "pooling",
           f"lp_pool{_n}d(input, norm_type, kernel_size, stride, ceil_mode)",
           base="_LPPoolNd", doc="The p-norm of each window.")

# ---- padding ----

module("_ConstantPadNd()", "padding", show="padding={padding}, value={value}",
       doc="What constant padding shows.")
for _mode in ("Reflection", "Replication", "Circular"):
    module(f"_{_mode}PadNd()", "padding", show="{padding}", doc="What padding shows.")
for _n in (1, 2, 3):
    _padding = f"int[{2 * _n}] padding"
    module(f"ConstantPad{_n}d({_padding}, float value)", "padding",
           "pad(input, padding, 'constant', value)", base="_ConstantPadNd", spread=("padding",),
           doc="Pads the spatial dimensions with a value.")
    module(f"ZeroPad{_n}d({_padding})", "padding", base=f"ConstantPad{_n}d", fixed={"value": "0.0"},
           show="{padding}", doc="Pads the spatial dimensions with zeros.")
    for _mode, _with in (("reflection", "their mirror image"), ("replication", "their edge values"),
                         ("circular", "the values of their other end")):
        _key = {"reflection": "reflect", "replication": "replicate"}.get(_mode, _mode)
        module(f"{_mode.title()}Pad{_n}d({_padding})", "padding", f"pad(input, padding, '{_key}')",
               base=f"_{_mode.title()}PadNd", spread=("padding",),
               doc=f"Pads the spatial dimensions with {_with}.")
# ---- shapes ----

module("Flatten(int start_dim=1, int end_dim=-1)", "flatten", "input.flatten(start_dim, end_dim)",
       show="start_dim={start_dim}, end_dim={end_dim}",
       doc="Makes one dimension of those from `start_dim` to `end_dim`.")
module("Fold(int[] output_size, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1)",
       "fold", "fold(input, output_size, kernel_size, dilation, padding, stride)",
       show="output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, "
            "padding={padding}, stride={stride}",
       doc="Adds up overlapping windows, the columns of a matrix, into an image.")
module("Unfold(int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1)", "fold",
       "unfold(input, kernel_size, dilation, padding, stride)",
       show="kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}",
       doc="The windows of an image as the columns of a matrix.")
module("PixelShuffle(int upscale_factor)", "pixelshuffle", "pixel_shuffle(input, upscale_factor)",
       show="upscale_factor={upscale_factor}", doc="Turns channels into pixels: (C r², H, W) to (C, H r, W r).")
module("PixelUnshuffle(int downscale_factor)", "pixelshuffle",
       "pixel_unshuffle(input, downscale_factor)", show="downscale_factor={downscale_factor}",
       doc="Turns pixels into channels: (C, H r, W r) to (C r², H, W).")
module("ChannelShuffle(int groups)", "channelshuffle", "channel_shuffle(input, groups)",
       show="groups={groups}", doc="Deals the channels of (N, C, …) out to `groups` in turn.")

# ---- distances ----

module("CosineSimilarity(int dim=1, float eps=1e-8)", "distance",
       "cosine_similarity(x1, x2, dim, eps)", inputs="x1, x2",
       doc="The cosine of the angle between vectors along `dim`.")
module("PairwiseDistance(float p=2.0, float eps=1e-6, bool keepdim=False)", "distance",
       "pairwise_distance(x1, x2, norm, eps, keepdim)", inputs="x1, x2", sets={"norm": "p"},
       transient=("p",), doc="The p-norm of the difference of vectors along the last dimension.")

# ---- losses ----

_OLD = "bool? size_average=None, bool? reduce=None, str reduction='mean'"

module(f"_Loss({_OLD})", "loss", transient=("size_average", "reduce"),
       sets={"reduction": "_reduction(reduction, size_average, reduce)"},
       doc='How a loss is reduced: "mean", "sum" or "none".')
module(f"_WeightedLoss(Tensor? weight=None, {_OLD})", "loss", base="_Loss",
       doc="A loss with a weight for each class or element.")
module(f"L1Loss({_OLD})", "loss", "l1_loss(input, target, reduction=reduction)", base="_Loss",
       inputs="input, target", doc="The absolute difference.")
module(f"MSELoss({_OLD})", "loss", "mse_loss(input, target, reduction=reduction)", base="_Loss",
       inputs="input, target", doc="The squared difference.")
module("SmoothL1Loss(bool? size_average=None, bool? reduce=None, str reduction='mean', "
       "float beta=1.0)", "loss",
       "smooth_l1_loss(input, target, reduction=reduction, beta=beta)", base="_Loss",
       inputs="input, target",
       doc="The squared difference over 2 beta where it is below beta, the absolute one beyond.")
module("HuberLoss(str reduction='mean', float delta=1.0)", "loss",
       "huber_loss(input, target, reduction=reduction, delta=delta)", base="_Loss",
       inputs="input, target", doc="Half the squared difference below delta, linear beyond.")
module("NLLLoss(Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
       "bool? reduce=None, str reduction='mean')", "loss",
       "nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)",
       base="_WeightedLoss", inputs="input, target",
       doc="The negative log likelihood of class indices, given log probabilities.")
module("CrossEntropyLoss(Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
       "bool? reduce=None, str reduction='mean', float label_smoothing=0.0)", "loss",
       "cross_entropy(input, target, weight=weight, ignore_index=ignore_index, "
       "reduction=reduction, label_smoothing=label_smoothing)",
       base="_WeightedLoss", inputs="input, target",
       doc="The cross entropy of logits and class indices or class probabilities.")
module(f"BCELoss(Tensor? weight=None, {_OLD})", "loss",
       "binary_cross_entropy(input, target, weight=weight, reduction=reduction)",
       base="_WeightedLoss", inputs="input, target",
       doc="The cross entropy of probabilities and targets in [0, 1].")
module(f"BCEWithLogitsLoss(Tensor? weight=None, {_OLD}, Tensor? pos_weight=None)", "loss",
       "binary_cross_entropy_with_logits(input, target, weight, pos_weight=pos_weight, "
       "reduction=reduction)",
       base="_Loss", inputs="input, target",
       doc="BCELoss of sigmoid(x), computed without losing digits.")
module(f"KLDivLoss({_OLD}, bool log_target=False)", "loss",
       "kl_div(input, target, reduction=reduction, log_target=log_target)", base="_Loss",
       inputs="input, target", doc="The Kullback-Leibler divergence, given log probabilities.")
module("PoissonNLLLoss(bool log_input=True, bool full=False, bool? size_average=None, "
       "float eps=1e-8, bool? reduce=None, str reduction='mean')", "loss",
       "poisson_nll_loss(log_input, target, log_input=self.log_input, full=full, eps=eps, "
       "reduction=reduction)", base="_Loss", inputs="log_input, target",
       doc="The negative log likelihood of counts under a Poisson distribution.")
module("GaussianNLLLoss(*, bool full=False, float eps=1e-6, str reduction='mean')", "loss",
       "gaussian_nll_loss(input, target, var, full=full, eps=eps, reduction=reduction)",
       base="_Loss", inputs="input, target, var",
       doc="The negative log likelihood under normal distributions of given variance.")
module(f"HingeEmbeddingLoss(float margin=1.0, {_OLD})", "loss",
       "hinge_embedding_loss(input, target, margin=margin, reduction=reduction)", base="_Loss",
       inputs="input, target", doc="x where the target is 1, max(0, margin - x) where it is -1.")
module(f"SoftMarginLoss({_OLD})", "loss", "soft_margin_loss(input, target, reduction=reduction)",
       base="_Loss", inputs="input, target", doc="log(1 + exp(-target * x)).")
module(f"MarginRankingLoss(float margin=0.0, {_OLD})", "loss",
       "margin_ranking_loss(input1, input2, target, margin=margin, reduction=reduction)",
       base="_Loss", inputs="input1, input2, target",
       doc="max(0, -target * (input1 - input2) + margin).")
module(f"CosineEmbeddingLoss(float margin=0.0, {_OLD})", "loss",
       "cosine_embedding_loss(input1, input2, target, margin=margin, reduction=reduction)",
       base="_Loss", inputs="input1, input2, target",
       doc="1 - cos where the target is 1, max(0, cos - margin) where it is -1.")
module(f"TripletMarginLoss(float margin=1.0, float p=2.0, float eps=1e-6, bool swap=False, {_OLD})",
       "loss",
       "triplet_margin_loss(anchor, positive, negative, margin=margin, p=p, eps=eps, swap=swap, "
       "reduction=reduction)", base="_Loss", inputs="anchor, positive, negative",
       sets={"margin": "_positive_margin(margin)"},
       doc="How much nearer the anchor should be to `positive` than to `negative`.")
module(f"MultiMarginLoss(int p=1, float margin=1.0, Tensor? weight=None, {_OLD})", "loss",
       "multi_margin_loss(input, target, p=p, margin=margin, weight=weight, reduction=reduction)",
       base="_WeightedLoss", inputs="input, target", sets={"p": "_one_or_two(p)"},
       doc="The hinge loss of many classes.")
module(f"MultiLabelMarginLoss({_OLD})", "loss",
       "multilabel_margin_loss(input, target, reduction=reduction)", base="_Loss",
       inputs="input, target", doc="The hinge loss of samples with several classes each.")
module(f"MultiLabelSoftMarginLoss(Tensor? weight=None, {_OLD})", "loss",
       "multilabel_soft_margin_loss(input, target, weight=weight, reduction=reduction)",
       base="_WeightedLoss", inputs="input, target",
       doc="The binary cross entropy with logits, averaged over the last dimension.")
