"""The stateless modules of nn: a name, constructor arguments, the function that a call is.

An entry is plain data, from which gen/modules.py writes classes in Python and C++:

    module("LeakyReLU(float negative_slope=0.01, bool inplace=False)", "activation", "leaky_relu",
           "negative_slope, inplace", show="negative_slope={negative_slope}{?inplace}",
           doc="x where it is positive, negative_slope * x elsewhere.")

The signature is in the op table's schema language. Every argument becomes an attribute, a `Tensor?`
a buffer. A call gives the inputs (`input`, or those listed in `inputs`) to a function of
nn.functional, and then what `passes` lists: attributes in the order of the function's parameters,
behind `*` those whose parameters have their names; `'word'` is the word itself. A class without a
function is abstract.

Other keys:
    sets: attributes that are not their arguments' values. None is no attribute, a name is another
        argument's value, a tuple a rule of nn/_arguments.py with what it is given.
    show: the text between the parentheses of `repr`, with attributes in braces; `{?flag}` gives
        `flag=True` where it is true and nothing elsewhere.
    prints: the same in C++ where that differs; None is no parentheses either.
    base: a class of this table instead of Module; fixed: arguments of the base with a fixed value.
    method: the function is a method of the input.
    python: what Python passes besides, by name.
    trains: whether the function's own default is to train.
    functional_only: options that the functional form alone has in C++.
"""

from gen.modules import formulas, module, shapes

# What goes in and comes out: by family, or by name where a module differs from its family.
_WINDOWS = "(N, C, *spatial) or (C, *spatial); a spatial size L becomes floor("
_SAMPLES = "with reduction='none' one loss for each sample, else a number"
_PAIRS = "input and target of the same sizes (*); a number, or (*) with reduction='none'"
_CLASSES = f"input (N, C) or (C); target, class indices (N) or (); {_SAMPLES}"
_ROWS = f"input and target (N, C) or (C); {_SAMPLES}"
_VECTORS = f"vectors (N, D) or (D), and a target (N) or () of 1 and -1; {_SAMPLES}"

shapes(
    activation="the input has any number of dimensions; the result has the same sizes",
    dropout="the result has the sizes of the input",
    pooling=_WINDOWS + "(L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1, rounded up"
    " with `ceil_mode`",
    padding="(N, C, *spatial) or (C, *spatial); every spatial size grows on both sides",
    flatten="the dimensions from start_dim to end_dim become one",
    fold="images (N, C, H, W), and matrices (N, C * window elements, windows)",
    pixelshuffle="(*, C, H, W)",
    channelshuffle="(N, C, *spatial); the result has the same sizes",
    distance="two inputs of sizes that broadcast; the result lacks the dimension that is reduced",
    loss=_PAIRS,
    GLU="(*, 2 n, *), with 2 n the size of `dim`, to (*, n, *)",
    **{f"AvgPool{n}d": _WINDOWS + "(L + 2 padding - kernel_size) / stride) + 1, rounded up with"
       " `ceil_mode`" for n in (1, 2, 3)},
    **{f"LPPool{n}d": _WINDOWS + "(L - kernel_size) / stride) + 1, rounded up with `ceil_mode`"
       for n in (1, 2, 3)},
    **{f"Adaptive{kind}Pool{n}d": "(N, C, *spatial) or (C, *spatial); the spatial sizes become"
       " `output_size`, and stay where that is None" for n in (1, 2, 3) for kind in ("Avg", "Max")},
    NLLLoss="input (C), (N, C) or (N, C, d1, …); target, class indices, the same without C; with"
    " reduction='none' the sizes of the target, else a number",
    CrossEntropyLoss="input (C), (N, C) or (N, C, d1, …); target of class indices without C, or of"
    " probabilities with the sizes of the input; with reduction='none' the sizes of the input"
    " without C, else a number",
    PoissonNLLLoss=_PAIRS,
    GaussianNLLLoss="input, target and var (*), of which var may lack the last dimension or have 1"
    " there; a number, or (*) with reduction='none'",
    MarginRankingLoss="two inputs and a target of 1 and -1, of sizes that broadcast; a number, or"
    " these sizes with reduction='none'",
    CosineEmbeddingLoss=_VECTORS,
    TripletMarginLoss=f"anchor, positive and negative (N, D) or (D); {_SAMPLES}",
    MultiMarginLoss=_CLASSES,
    MultiLabelMarginLoss=f"input (N, C) or (C); target of the same sizes: class indices, then -1;"
    f" {_SAMPLES}",
    MultiLabelSoftMarginLoss=_ROWS,
)  # fmt: skip

# Formulas where `doc` is in words: of one element or sample, before losses are reduced.
formulas(
    Tanh="sinh(x) / cosh(x)",
    GELU="x * (1 + erf(x / sqrt(2))) / 2 (Hendrycks, Gimpel 2016)",
    SELU="1.0507 * x where x is positive, 1.0507 * 1.6733 * (exp(x) - 1) elsewhere (Klambauer et"
    " al. 2017)",
    Softmax="exp(x_i) / sum_j exp(x_j)",
    Softmin="exp(-x_i) / sum_j exp(-x_j)",
    LogSoftmax="x_i - log(sum_j exp(x_j))",
    GLU="a * sigmoid(b), with a and b the two halves (Dauphin et al. 2017)",
    Dropout="x * m / (1 - p), with m 0 with probability p, else 1; x in evaluation (Srivastava et"
    " al. 2014)",
    CosineSimilarity="sum(a * b) / (max(norm(a), eps) * max(norm(b), eps))",
    PairwiseDistance="sum(abs(a - b + eps)^p)^(1 / p)",
    L1Loss="abs(x - y)",
    MSELoss="(x - y)^2",
    SmoothL1Loss="(x - y)^2 / (2 beta) where abs(x - y) < beta, else abs(x - y) - beta / 2"
    " (Girshick 2015)",
    HuberLoss="(x - y)^2 / 2 where abs(x - y) <= delta, else delta (abs(x - y) - delta / 2) (Huber"
    " 1964)",
    NLLLoss="-weight_y * x_y, with y the class; the mean divides by the sum of the weights",
    CrossEntropyLoss="-weight_y * log(exp(x_y) / sum_j exp(x_j)), with y the class; the mean"
    " divides by the sum of the weights",
    BCELoss="-weight * (y * log(x) + (1 - y) * log(1 - x))",
    BCEWithLogitsLoss="-weight * (pos_weight * y * log(s) + (1 - y) * log(1 - s)), with s ="
    " sigmoid(x)",
    KLDivLoss="y * (log(y) - x), with x the logarithm of a probability",
    PoissonNLLLoss="exp(x) - y * x, or x - y * log(x + eps) without `log_input`; `full` adds"
    " y * log(y) - y + log(2 pi y) / 2 for y above 1",
    GaussianNLLLoss="(log(v) + (x - y)^2 / v) / 2, with v = max(var, eps); `full` adds"
    " log(2 pi) / 2",
    HingeEmbeddingLoss="x where y is 1, max(0, margin - x) where y is -1",
    TripletMarginLoss="max(0, d(a, p) - d(a, n) + margin), with d the p-norm of the difference"
    " (Balntas et al. 2016)",
    MultiMarginLoss="sum over j != y of weight_y * max(0, margin - x_y + x_j)^p / C",
    MultiLabelMarginLoss="sum over classes y of the target, and j that are none, of"
    " max(0, 1 - x_y + x_j) / C",
    MultiLabelSoftMarginLoss="the mean over classes of -weight * (y * log(s) + (1 - y) *"
    " log(1 - s)), with s = sigmoid(x)",
)

# ---- activations ----

_SLOPE = "float alpha=1.0, bool inplace=False"

module("ReLU(bool inplace=False)", "activation", "relu", "inplace",
       show="{?inplace}", doc="max(x, 0).")
module("LeakyReLU(float negative_slope=0.01, bool inplace=False)", "activation",
       "leaky_relu", "negative_slope, inplace",
       show="negative_slope={negative_slope}{?inplace}",
       doc="x where it is positive, `negative_slope * x` elsewhere.")
module(f"ELU({_SLOPE})", "activation", "elu", "alpha, inplace",
       show="alpha={alpha}{?inplace}",
       doc="x where it is positive, `alpha * (exp(x) - 1)` elsewhere.")
module(f"CELU({_SLOPE})", "activation", "celu", "alpha, inplace",
       show="alpha={alpha}{?inplace}",
       doc="max(x, 0) + min(0, alpha * (exp(x / alpha) - 1)).")
module("SELU(bool inplace=False)", "activation", "selu", "inplace",
       show="{?inplace}", doc="ELU with the alpha and scale that keep mean 0 and variance 1.")
module("SiLU(bool inplace=False)", "activation", "silu", "inplace",
       show="{?inplace}", doc="x * sigmoid(x).")
module("Mish(bool inplace=False)", "activation", "mish", "inplace",
       show="{?inplace}", doc="x * tanh(softplus(x)).")
module("GELU(str approximate='none')", "activation", "gelu", "*, approximate",
       show="approximate={approximate!r}",
       prints="",
       doc='x times the normal distribution function of x, or its "tanh" approximation.')
module("Hardswish(bool inplace=False)", "activation", "hardswish", "inplace",
       doc="x * relu6(x + 3) / 6.")
module("Hardsigmoid(bool inplace=False)", "activation", "hardsigmoid", "inplace",
       doc="relu6(x + 3) / 6.")
module("Sigmoid()", "activation", "sigmoid", doc="1 / (1 + exp(-x)).")
module("Tanh()", "activation", "tanh", doc="The hyperbolic tangent.")
module("LogSigmoid()", "activation", "logsigmoid", doc="log(sigmoid(x)).")
module("Softsign()", "activation", "softsign", doc="x / (1 + |x|).")
module("Tanhshrink()", "activation", "tanhshrink", doc="x - tanh(x).")
module("Softplus(float beta=1.0, float threshold=20.0)", "activation",
       "softplus", "beta, threshold", show="beta={beta}, threshold={threshold}",
       doc="log(1 + exp(beta * x)) / beta; x itself where beta * x is above `threshold`.")
module("Softshrink(float lambd=0.5)", "activation", "softshrink", "lambd", show="{lambd}",
       doc="x moved towards zero by `lambd`, zero where that crosses it.")
module("Hardshrink(float lambd=0.5)", "activation", "hardshrink", "lambd", show="{lambd}",
       doc="x where |x| is above `lambd`, zero elsewhere.")
module("Threshold(float threshold, float value, bool inplace=False)", "activation",
       "threshold", "threshold, value, inplace",
       show="threshold={threshold}, value={value}{?inplace}",
       doc="x where it is above `threshold`, `value` elsewhere.")
module("RReLU(float lower=0.125, float upper=0.3333333333333333, bool inplace=False)", "activation",
       "rrelu", "lower, upper, training, inplace",
       show="lower={lower}, upper={upper}{?inplace}", trains="False",
       doc="LeakyReLU with a random slope in training and the mean slope in evaluation.")
module("GLU(int dim=-1)", "activation", "glu", "dim", show="dim={dim}",
       doc="The first half along `dim` times the sigmoid of the second.")
module("Softmax(int? dim=None)", "activation", "softmax", "dim", python={"_stacklevel": 5},
       functional_only="ScalarType? dtype=None", show="dim={dim}",
       doc="exp(x) over its sum along `dim`.")
module("Softmin(int? dim=None)", "activation", "softmin", "dim", python={"_stacklevel": 5},
       functional_only="ScalarType? dtype=None", show="dim={dim}",
       doc="Softmax of -x along `dim`.")
module("LogSoftmax(int? dim=None)", "activation", "log_softmax", "dim", python={"_stacklevel": 5},
       functional_only="ScalarType? dtype=None", show="dim={dim}",
       doc="The logarithm of softmax along `dim`.")

# ---- dropout ----

module("_DropoutNd(float p=0.5, bool inplace=False)", "dropout", show="p={p}, inplace={inplace}",
       sets={"p": ("probability", "p")}, doc="The settings that all kinds of dropout share.")
for _name, _function, _trains, _doc in (
    ("Dropout", "dropout", "True",
     "Sets elements to zero with probability p in training and scales the others."),
    ("Dropout1d", "dropout1d", "True",
     "Sets whole channels of (N, C, L) to zero with probability p in training."),
    ("Dropout2d", "dropout2d", "True",
     "Sets whole channels of (N, C, H, W) to zero with probability p in training."),
    ("Dropout3d", "dropout3d", "True",
     "Sets whole channels of (N, C, D, H, W) to zero with probability p in training."),
    ("AlphaDropout", "alpha_dropout", "False",
     "Dropout that keeps mean and variance of SELU's results."),
    ("FeatureAlphaDropout", "feature_alpha_dropout", "False", "AlphaDropout of whole channels."),
):
    module(f"{_name}()", "dropout", _function, "p, training, inplace",
           base="_DropoutNd", trains=_trains, doc=_doc)

# ---- pooling ----

_STRIDE = ("or_else", "stride", "kernel_size")

module("_MaxPoolNd(int[] kernel_size, int[]? stride=None, int[] padding=0, int[] dilation=1, "
       "bool return_indices=False, bool ceil_mode=False)", "pooling",
       show="kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, "
            "ceil_mode={ceil_mode}",
       sets={"stride": _STRIDE}, doc="The settings of max pooling.")
for _n, _axes in ((1, "L"), (2, "H, W"), (3, "D, H, W")):
    module(f"MaxPool{_n}d()", "pooling",
           f"max_pool{_n}d", "kernel_size, stride, padding, dilation, *, ceil_mode, return_indices",
           base="_MaxPoolNd", doc=f"The largest value of each window of (N, C, {_axes}).")
module("_AvgPoolNd()", "pooling",
       show="kernel_size={kernel_size}, stride={stride}, padding={padding}",
       doc="What average pooling shows.")
module("AvgPool1d(int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
       "bool ceil_mode=False, bool count_include_pad=True)", "pooling",
       "avg_pool1d", "kernel_size, stride, padding, ceil_mode, count_include_pad",
       base="_AvgPoolNd", sets={"kernel_size": ("repeat", "kernel_size", 1),
                                "stride": ("repeat", _STRIDE, 1),
                                "padding": ("repeat", "padding", 1)},
       doc="The mean of each window of (N, C, L).")
for _n, _axes in ((2, "H, W"), (3, "D, H, W")):
    module(f"AvgPool{_n}d(int[] kernel_size, int[]? stride=None, int[] padding=0, "
           "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None)",
           "pooling",
           f"avg_pool{_n}d",
           "kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override",
           base="_AvgPoolNd", sets={"stride": _STRIDE},
           doc=f"The mean of each window of (N, C, {_axes}).")
module("_AdaptiveAvgPoolNd(int?[] output_size)", "pooling", show="output_size={output_size}",
       doc="The setting of adaptive average pooling.")
module("_AdaptiveMaxPoolNd(int?[] output_size, bool return_indices=False)", "pooling",
       show="output_size={output_size}", doc="The settings of adaptive max pooling.")
for _n in (1, 2, 3):
    module(f"AdaptiveAvgPool{_n}d()", "pooling", f"adaptive_avg_pool{_n}d", "output_size",
           base="_AdaptiveAvgPoolNd", doc="The means of as many windows as `output_size` says.")
    module(f"AdaptiveMaxPool{_n}d()", "pooling",
           f"adaptive_max_pool{_n}d", "output_size, return_indices",
           base="_AdaptiveMaxPoolNd",
           doc="The largest values of as many windows as `output_size` says.")
module("_LPPoolNd(float norm_type, int[] kernel_size, int[]? stride=None, bool ceil_mode=False)",
       "pooling",
       show="norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, "
            "ceil_mode={ceil_mode}",
       doc="The settings of power-average pooling.")
for _n in (1, 2, 3):
    module(f"LPPool{_n}d()", "pooling",
           f"lp_pool{_n}d", "norm_type, kernel_size, stride, ceil_mode",
           base="_LPPoolNd", doc="The p-norm of each window.")

# ---- padding ----

module("_ConstantPadNd()", "padding", show="padding={padding}, value={value}",
       doc="What constant padding shows.")
for _mode in ("Reflection", "Replication", "Circular"):
    module(f"_{_mode}PadNd()", "padding", show="{padding}", prints="padding={padding}",
           doc="What padding shows.")
for _n in (1, 2, 3):
    _padding = f"int[{2 * _n}] padding"
    module(f"ConstantPad{_n}d({_padding}, float value)", "padding",
           "pad", "padding, 'constant', value", base="_ConstantPadNd",
           sets={"padding": ("repeat", "padding", 2 * _n)},
           doc="Pads the spatial dimensions with a value.")
    module(f"ZeroPad{_n}d({_padding})", "padding", base=f"ConstantPad{_n}d", fixed={"value": 0.0},
           show="{padding}", prints="padding={padding}",
           doc="Pads the spatial dimensions with zeros.")
    for _mode, _with in (("reflection", "their mirror image"), ("replication", "their edge values"),
                         ("circular", "the values of their other end")):
        _key = {"reflection": "reflect", "replication": "replicate"}.get(_mode, _mode)
        module(f"{_mode.title()}Pad{_n}d({_padding})", "padding", "pad", f"padding, '{_key}'",
               base=f"_{_mode.title()}PadNd", sets={"padding": ("repeat", "padding", 2 * _n)},
               doc=f"Pads the spatial dimensions with {_with}.")

# ---- shapes ----

module("Flatten(int start_dim=1, int end_dim=-1)", "flatten", "flatten", "start_dim, end_dim",
       method=True,
       show="start_dim={start_dim}, end_dim={end_dim}",
       doc="Makes one dimension of those from `start_dim` to `end_dim`.")
module("Fold(int[] output_size, int[] kernel_size, int[] dilation=1, int[] padding=0, int[] "
       "stride=1)",
       "fold", "fold", "output_size, kernel_size, dilation, padding, stride",
       show="output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, "
            "padding={padding}, stride={stride}",
       doc="Adds up overlapping windows, the columns of a matrix, into an image.")
module("Unfold(int[] kernel_size, int[] dilation=1, int[] padding=0, int[] stride=1)", "fold",
       "unfold", "kernel_size, dilation, padding, stride",
       show="kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}",
       doc="The windows of an image as the columns of a matrix.")
module("PixelShuffle(int upscale_factor)", "pixelshuffle", "pixel_shuffle", "upscale_factor",
       show="upscale_factor={upscale_factor}",
       doc="Turns channels into pixels: (C r², H, W) to (C, H r, W r).")
module("PixelUnshuffle(int downscale_factor)", "pixelshuffle",
       "pixel_unshuffle", "downscale_factor", show="downscale_factor={downscale_factor}",
       doc="Turns pixels into channels: (C, H r, W r) to (C r², H, W).")
module("ChannelShuffle(int groups)", "channelshuffle", "channel_shuffle", "groups",
       show="groups={groups}", doc="Deals the channels of (N, C, …) out to `groups` in turn.")

# ---- distances ----

module("CosineSimilarity(int dim=1, float eps=1e-8)", "distance",
       "cosine_similarity", "dim, eps", inputs="x1, x2", prints="dim={dim}, eps={eps}",
       doc="The cosine of the angle between vectors along `dim`.")
module("PairwiseDistance(float p=2.0, float eps=1e-6, bool keepdim=False)", "distance",
       "pairwise_distance", "norm, eps, keepdim", inputs="x1, x2", sets={"norm": "p", "p": None},
       prints="p={p}, eps={eps}, keepdim={keepdim}",
       doc="The p-norm of the difference of vectors along the last dimension.")

# ---- losses ----

_OLD = "bool? size_average=None, bool? reduce=None, str reduction='mean'"

module(f"_Loss({_OLD})", "loss",
       sets={"reduction": ("reduction", "reduction", "size_average", "reduce"),
             "size_average": None, "reduce": None},
       doc='How a loss is reduced: "mean", "sum" or "none".')
module(f"_WeightedLoss(Tensor? weight=None, {_OLD})", "loss", base="_Loss",
       doc="A loss with a weight for each class or element.")
module(f"L1Loss({_OLD})", "loss", "l1_loss", "*, reduction", base="_Loss",
       inputs="input, target", doc="The absolute difference.")
module(f"MSELoss({_OLD})", "loss", "mse_loss", "*, reduction", base="_Loss",
       inputs="input, target", doc="The squared difference.")
module("SmoothL1Loss(bool? size_average=None, bool? reduce=None, str reduction='mean', "
       "float beta=1.0)", "loss",
       "smooth_l1_loss", "*, reduction, beta", base="_Loss", prints=None,
       inputs="input, target",
       doc="The squared difference over 2 beta where it is below beta, the absolute one beyond.")
module("HuberLoss(str reduction='mean', float delta=1.0)", "loss",
       "huber_loss", "*, reduction, delta", base="_Loss", prints=None,
       inputs="input, target", doc="Half the squared difference below delta, linear beyond.")
module("NLLLoss(Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
       "bool? reduce=None, str reduction='mean')", "loss",
       "nll_loss", "*, weight, ignore_index, reduction",
       base="_WeightedLoss", inputs="input, target",
       doc="The negative log likelihood of class indices, given log probabilities.")
module("CrossEntropyLoss(Tensor? weight=None, bool? size_average=None, int ignore_index=-100, "
       "bool? reduce=None, str reduction='mean', float label_smoothing=0.0)", "loss",
       "cross_entropy", "*, weight, ignore_index, reduction, label_smoothing",
       base="_WeightedLoss", inputs="input, target",
       doc="The cross entropy of logits and class indices or class probabilities.")
module(f"BCELoss(Tensor? weight=None, {_OLD})", "loss",
       "binary_cross_entropy", "*, weight, reduction",
       base="_WeightedLoss", inputs="input, target",
       doc="The cross entropy of probabilities and targets in [0, 1].")
module(f"BCEWithLogitsLoss(Tensor? weight=None, {_OLD}, Tensor? pos_weight=None)", "loss",
       "binary_cross_entropy_with_logits", "weight, *, pos_weight, reduction",
       base="_Loss", inputs="input, target",
       doc="BCELoss of sigmoid(x), computed without losing digits.")
module(f"KLDivLoss({_OLD}, bool log_target=False)", "loss",
       "kl_div", "*, reduction, log_target", base="_Loss",
       inputs="input, target", doc="The Kullback-Leibler divergence, given log probabilities.")
module("PoissonNLLLoss(bool log_input=True, bool full=False, bool? size_average=None, "
       "float eps=1e-8, bool? reduce=None, str reduction='mean')", "loss",
       "poisson_nll_loss", "*, log_input, full, eps, reduction", base="_Loss",
       inputs="log_input, target",
       doc="The negative log likelihood of counts under a Poisson distribution.")
module("GaussianNLLLoss(*, bool full=False, float eps=1e-6, str reduction='mean')", "loss",
       "gaussian_nll_loss", "*, full, eps, reduction",
       base="_Loss", inputs="input, target, var",
       doc="The negative log likelihood under normal distributions of given variance.")
module(f"HingeEmbeddingLoss(float margin=1.0, {_OLD})", "loss",
       "hinge_embedding_loss", "*, margin, reduction", base="_Loss",
       inputs="input, target", prints="margin={margin}",
       doc="x where the target is 1, max(0, margin - x) where it is -1.")
module(f"SoftMarginLoss({_OLD})", "loss", "soft_margin_loss", "*, reduction",
       base="_Loss", inputs="input, target", doc="log(1 + exp(-target * x)).")
module(f"MarginRankingLoss(float margin=0.0, {_OLD})", "loss",
       "margin_ranking_loss", "*, margin, reduction",
       base="_Loss", inputs="input1, input2, target",
       doc="max(0, -target * (input1 - input2) + margin).")
module(f"CosineEmbeddingLoss(float margin=0.0, {_OLD})", "loss",
       "cosine_embedding_loss", "*, margin, reduction",
       base="_Loss", inputs="input1, input2, target",
       prints="margin={margin}",
       doc="1 - cos where the target is 1, max(0, cos - margin) where it is -1.")
module(f"TripletMarginLoss(float margin=1.0, float p=2.0, float eps=1e-6, bool swap=False, {_OLD})",
       "loss",
       "triplet_margin_loss", "*, margin, p, eps, swap, reduction", base="_Loss",
       inputs="anchor, positive, negative",
       sets={"margin": ("positive_margin", "margin")},
       prints="margin={margin}, p={p}, eps={eps}, swap={swap}",
       doc="How much nearer the anchor should be to `positive` than to `negative`.")
module(f"MultiMarginLoss(int p=1, float margin=1.0, Tensor? weight=None, {_OLD})", "loss",
       "multi_margin_loss", "*, p, margin, weight, reduction",
       base="_WeightedLoss", inputs="input, target", sets={"p": ("one_or_two", "p")},
       doc="The hinge loss of many classes.")
module(f"MultiLabelMarginLoss({_OLD})", "loss",
       "multilabel_margin_loss", "*, reduction", base="_Loss",
       inputs="input, target", doc="The hinge loss of samples with several classes each.")
module(f"MultiLabelSoftMarginLoss(Tensor? weight=None, {_OLD})", "loss",
       "multilabel_soft_margin_loss", "*, weight, reduction",
       base="_WeightedLoss", inputs="input, target",
       doc="The binary cross entropy with logits, averaged over the last dimension.")
