"""Fresh modules and initial values against PyTorch's: texts, states, attributes, numbers."""

import inspect

import pytest

import rushlight
from tests.parity.compare import assert_alike, assert_outcomes_alike, outcome, plain

torch = pytest.importorskip("torch")

# Constructors whose text, state, attributes and random numbers must be PyTorch's.
MODULES = [
    "Linear(2,3,False)",
    "Linear(3,4)",
    "Bilinear(1,2,3)",
    "Identity(3,a=2)",
    "Conv1d(1,2,3,padding='same',padding_mode='circular')",
    "Conv2d(2,4,3,groups=2,padding=(1,0),bias=False)",
    "Conv2d(1,2,(3,5),2,1,2)",
    "Conv3d(1,2,3)",
    "ConvTranspose1d(2,4,3,2,1,1,2)",
    "ConvTranspose2d(1,2,3,2,output_padding=1)",
    "ConvTranspose3d(1,2,3,output_padding=0)",
    "BatchNorm1d(2,momentum=None)",
    "BatchNorm2d(3,affine=False)",
    "BatchNorm2d(3,bias=False)",
    "BatchNorm3d(2,track_running_stats=False)",
    "InstanceNorm1d(2)",
    "InstanceNorm2d(2,affine=True,track_running_stats=True)",
    "LayerNorm(3)",
    "LayerNorm((2,3),bias=False)",
    "LayerNorm(3,elementwise_affine=False)",
    "GroupNorm(1,2)",
    "GroupNorm(2,4,affine=False)",
    "RMSNorm(3)",
    "Embedding(5,3)",
    "Embedding(5,3,-1)",
    "Embedding(3,4,padding_idx=1,max_norm=2.,norm_type=1.,scale_grad_by_freq=True,sparse=True)",
    "Dropout()",
    "Dropout1d(.3)",
    "Dropout2d()",
    "Dropout3d()",
    "AlphaDropout()",
    "FeatureAlphaDropout()",
    "ReLU()",
    "ReLU(inplace=True)",
    "ReLU6(True)",
    "LeakyReLU(.2,True)",
    "ELU()",
    "CELU(2,True)",
    "SELU(True)",
    "SiLU(True)",
    "Mish()",
    "GELU()",
    "GELU('tanh')",
    "GLU()",
    "RReLU()",
    "PReLU(3)",
    "Hardtanh()",
    "Hardsigmoid(True)",
    "Hardswish()",
    "Hardshrink(.3)",
    "Softshrink()",
    "Softplus()",
    "Softsign()",
    "Tanhshrink()",
    "Threshold(1,2,True)",
    "Sigmoid()",
    "Tanh()",
    "LogSigmoid()",
    "Softmax()",
    "Softmax2d()",
    "Softmin(1)",
    "LogSoftmax(1)",
    "MaxPool1d(2)",
    "MaxPool2d(2,padding=1)",
    "MaxPool3d((2,2,3))",
    "AvgPool1d(2)",
    "AvgPool1d(2,stride=1)",
    "AvgPool2d(2)",
    "AvgPool3d(2)",
    "AdaptiveAvgPool1d(2)",
    "AdaptiveAvgPool2d((1,None))",
    "AdaptiveMaxPool1d(2)",
    "AdaptiveMaxPool2d(3)",
    "LPPool1d(2,3)",
    "LPPool2d(2,3)",
    "ZeroPad1d(2)",
    "ZeroPad2d(2)",
    "ConstantPad1d(2,3.5)",
    "ConstantPad3d(1,0.5)",
    "ReflectionPad2d((1,2,0,1))",
    "ReplicationPad3d(1)",
    "CircularPad2d(1)",
    "Flatten()",
    "Flatten(0,1)",
    "Unflatten(1,(2,3))",
    "Fold(3,2)",
    "Unfold(3)",
    "PixelShuffle(2)",
    "PixelUnshuffle(2)",
    "ChannelShuffle(2)",
    "CosineSimilarity()",
    "PairwiseDistance(1.0,keepdim=True)",
    "L1Loss()",
    "MSELoss(reduction='sum')",
    "SmoothL1Loss(beta=2.)",
    "HuberLoss()",
    "NLLLoss()",
    "CrossEntropyLoss(weight=torch.ones(3),label_smoothing=.1)",
    "BCELoss()",
    "BCEWithLogitsLoss(pos_weight=torch.ones(3))",
    "KLDivLoss()",
    "PoissonNLLLoss()",
    "GaussianNLLLoss()",
    "HingeEmbeddingLoss()",
    "SoftMarginLoss()",
    "MarginRankingLoss()",
    "CosineEmbeddingLoss()",
    "TripletMarginLoss()",
    "MultiMarginLoss()",
    "MultiLabelMarginLoss()",
    "MultiLabelSoftMarginLoss()",
]


def described(text, module):
    """Everything that a fresh module shows of itself."""
    module.manual_seed(5)
    made = eval(text, {**vars(module.nn), "torch": module})
    following = module.rand(1)
    attributes = {k: v for k, v in sorted(vars(made).items()) if not k.startswith("_")}
    signature = inspect.signature(type(made)).parameters.values()
    return plain(
        [
            repr(made),
            following,
            made.state_dict(),
            made.state_dict()._metadata,
            [name for name, _ in made.named_parameters()],
            [name for name, _ in made.named_buffers()],
            list(made._parameters),
            list(made._buffers),
            attributes,
            [(p.name, p.kind.name, p.default) for p in signature],
            type(made).__module__.split(".", 1)[1],
        ]
    )


@pytest.mark.parametrize("text", MODULES)
def test_constructors(text):
    assert_alike(described(text, rushlight), described(text, torch))


INIT = [
    "uniform_(m.empty(3, 4))",
    "normal_(m.empty(30, 4), 1, 2)",
    "trunc_normal_(m.empty(30, 3))",
    "trunc_normal_(m.empty(30, 3), 5.0, 1.0, -1, 1)",
    "trunc_normal_(m.empty(30, 3), mean=1, std=0.5, a=0, b=1.2)",
    "eye_(m.empty(3, 4))",
    "eye_(m.empty(3))",
    "dirac_(m.empty(6, 2, 3, 3), 2)",
    "dirac_(m.empty(6, 2, 3, 3), 4)",
    "dirac_(m.empty(6, 2))",
    "xavier_uniform_(m.empty(3, 4, 5))",
    "xavier_normal_(m.empty(30, 4), 0.5)",
    "xavier_normal_(m.empty(3))",
    "kaiming_uniform_(m.empty(3, 4), 5**0.5)",
    'kaiming_normal_(m.empty(3, 4), mode="fan_out", nonlinearity="relu")',
    'kaiming_normal_(m.empty(3, 4), mode="x")',
    'kaiming_normal_(m.empty(3, 4), nonlinearity="x")',
    "kaiming_normal_(m.empty(0, 4))",
    "sparse_(m.empty(10, 3), 0.3)",
    "sparse_(m.empty(10), 0.3)",
    "orthogonal_(m.empty(3))",
    'calculate_gain("leaky_relu", 0.2)',
    'calculate_gain("leaky_relu", True)',
    'calculate_gain("selu")',
    'calculate_gain("x")',
    "xavier_normal(m.empty(3, 4))",
    "constant_(m.empty(3), 0.3)",
    "zeros_(m.nn.Parameter(m.empty(3)))",
    "uniform_(m.empty(3), generator=m.Generator().manual_seed(4))",
]


@pytest.mark.parametrize("line", INIT)
def test_initialisation(line):
    function = eval(f"lambda m: m.nn.init.{line}")
    assert_outcomes_alike(outcome(function, rushlight), outcome(function, torch))
