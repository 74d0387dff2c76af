"""torch.onnx.export of networks: onnxruntime, and OpenVINO where it is installed, compute what they compute."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.vision import models, ops
from tests.python.onnx_judges import agreed, kinds, openvino, tensors

BOTH = ("onnxruntime", "openvino")
F = nn.functional


def awake(model):
    """A network of which no layer is the identity: weights and statistics drawn anew."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.8, 1.2)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1 and not parameter.any():
                parameter.normal_(0, 0.02)
    return model.eval()


def image(size=64, n=1):
    return torch.randn(n, 3, size, size)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


CLASSIFIERS = {
    "resnet18": {},
    "mobilenet_v3_small": {},
    "efficientnet_b0": {},
    "shufflenet_v2_x0_5": {},
    "squeezenet1_1": {},
    "regnet_y_400mf": {},
    "googlenet": {"init_weights": False},
}
SLOW = {
    "convnext_tiny": {},
    "densenet121": {},
    "swin_t": {},
    "swin_v2_t": {},
    "maxvit_t": {},
    "vit_b_16": {},
    "resnet50": {},
    "mobilenet_v2": {},
    "efficientnet_v2_s": {},
    "mnasnet0_5": {},
    "vgg11_bn": {},
    "alexnet": {},
    "inception_v3": {"init_weights": False},
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name):
    agreed(awake(getattr(models, name)(**CLASSIFIERS[name])), image(), runtimes=BOTH)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_more_classifiers(name):
    size = {"vit_b_16": 224, "maxvit_t": 224, "inception_v3": 96}.get(name, 64)
    agreed(awake(getattr(models, name)(**SLOW[name])), image(size), runtimes=BOTH)


def test_vision_transformer():
    model = models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)
    agreed(awake(model), image(32), runtimes=BOTH)


def test_convnext():
    setting = models.convnext.CNBlockConfig
    model = models.ConvNeXt([setting(8, 16, 1), setting(16, None, 2)], num_classes=5)
    agreed(awake(model), image(32), runtimes=BOTH)


def test_densenet():
    agreed(awake(models.DenseNet(4, (2, 2), 8, num_classes=5)), image(32), runtimes=BOTH)


def test_swin():
    model = models.SwinTransformer([2, 2], 16, [2, 2], [2, 4], [3, 3], num_classes=5)
    agreed(awake(model), image(24), runtimes=BOTH)


def test_segmentation():
    model = models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None)
    agreed(awake(model), image(), runtimes=BOTH)


def large(*names):
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize(
    "name", ["ssdlite320_mobilenet_v3_large", *large("retinanet_resnet50_fpn", "fcos_resnet50_fpn")]
)
def test_bodies_of_detectors(name):
    class Body(nn.Module):
        """A detector without what comes before and after its network."""

        def __init__(self, detector):
            super().__init__()
            self.backbone, self.head = detector.backbone, detector.head

        def forward(self, x):
            return self.head(list(self.backbone(x).values()))

    detector = getattr(models.detection, name)(weights=None, weights_backbone=None)
    agreed(Body(awake(detector)), image(), runtimes=BOTH)


def test_pyramid_of_faster_rcnn():
    detector = models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None
    )

    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone, self.head = detector.backbone, detector.rpn.head

        def forward(self, x):
            return self.head(list(self.backbone(x).values()))

    agreed(awake(Body()), image(), runtimes=BOTH)


def test_perceptron():
    model = nn.Sequential(
        nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3), nn.Softmax(-1)
    )
    program = agreed(model, torch.randn(4, 6), runtimes=BOTH)
    assert kinds(program) == ["Gemm", "Gelu", "LayerNormalization", "Gemm", "Softmax"]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = F.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = torch.relu(self.fc2(torch.relu(self.fc1(x.flatten(1)))))
        return F.log_softmax(self.fc3(x), dim=1)


def test_lenet():
    program = agreed(LeNet(), torch.randn(3, 1, 28, 28), runtimes=BOTH)
    assert kinds(program).count("Conv") == 2


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()

        def block(a, b):
            return nn.Sequential(
                nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(2, b), nn.SiLU(inplace=True)
            )

        self.down1, self.down2 = block(3, width), block(width, 2 * width)
        self.middle = block(2 * width, 2 * width)
        self.up2 = nn.ConvTranspose2d(2 * width, 2 * width, 2, stride=2)
        self.join2, self.join1 = block(4 * width, width), block(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.avg_pool2d(b, 2, ceil_mode=True))
        b = self.join2(torch.cat([b, self.up2(c)], 1))
        up = F.interpolate(b, size=a.shape[-2:], mode="bilinear", align_corners=False)
        return torch.sigmoid(self.out(self.join1(torch.cat([a, up], 1))))


@pytest.mark.parametrize("opset", [18, 21])
def test_unet(opset):
    agreed(UNet(), image(32), runtimes=BOTH, opset_version=opset)


# ---- sequences ----


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
def test_transformer_encoder(activation, norm_first):
    layer = nn.TransformerEncoderLayer(
        16, 4, 32, activation=activation, batch_first=True, norm_first=norm_first
    )
    model = nn.TransformerEncoder(layer, 2).eval()
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    agreed(
        lambda x, p: model(x, src_key_padding_mask=p), torch.randn(2, 5, 16), padding, runtimes=BOTH
    )
    agreed(model, torch.randn(2, 5, 16), runtimes=BOTH)


class Decoder(nn.Module):
    """A language model: causal, with rotary places and grouped heads."""

    def __init__(self, words=50, size=32, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, self.each = heads, groups, size // heads
        self.words = nn.Embedding(words, size)
        self.query = nn.Linear(size, size, bias=False)
        self.key, self.value = (nn.Linear(size, self.each * groups, bias=False) for _ in range(2))
        self.norm, self.end = nn.RMSNorm(size), nn.RMSNorm(size)
        self.gate, self.up, self.down = (
            nn.Linear(size, 48),
            nn.Linear(size, 48),
            nn.Linear(48, size),
        )

    def turned(self, x):
        n, half = x.shape[-2], x.shape[-1] // 2
        angles = torch.arange(n)[:, None] / 100 ** (torch.arange(half) / half)
        a, b = x[..., :half], x[..., half:]
        return torch.cat(
            [a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1
        )

    def forward(self, ids, mask):
        batch, n = ids.shape
        x = self.words(ids)
        h = self.norm(x)
        q = self.turned(self.query(h).view(batch, n, self.heads, self.each).transpose(1, 2))
        k = self.turned(self.key(h).view(batch, n, self.groups, self.each).transpose(1, 2))
        v = self.value(h).view(batch, n, self.groups, self.each).transpose(1, 2)
        seen = torch.ones(n, n, dtype=torch.bool).tril() & mask[:, None, None]
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
        x = x + h.transpose(1, 2).reshape(batch, n, -1)
        x = x + self.down(F.silu(self.gate(x)) * self.up(x))
        return self.end(x) @ self.words.weight.t()


def test_decoder_with_a_mask():
    mask = torch.tensor([[True] * 6, [False] * 2 + [True] * 4])
    agreed(Decoder(), torch.randint(0, 50, (2, 6)), mask, runtimes=BOTH)


def test_decoder_with_a_cache():
    attention = nn.MultiheadAttention(16, 4, batch_first=True).eval()

    class Step(nn.Module):
        """One step: the new token sees the earlier ones, which come in and go out."""

        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x, past):
            seen = torch.cat([past, x], 1)
            out, _ = self.attention(x, seen, seen, need_weights=False)
            return out, seen

    agreed(Step(), torch.randn(2, 1, 16), torch.randn(2, 4, 16), runtimes=BOTH)


@pytest.mark.parametrize("causal", [False, True])
def test_transformer(causal):
    model = nn.Transformer(16, 2, 1, 1, 32, batch_first=True).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(4) if causal else None
    agreed(
        lambda a, b: model(a, b, tgt_mask=mask, tgt_is_causal=causal),
        torch.randn(2, 5, 16),
        torch.randn(2, 4, 16),
        runtimes=BOTH,
    )


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize(
    ("layers", "both", "batch_first", "bias"),
    [
        (1, False, True, True),
        (2, True, False, True),
        (2, False, True, False),
        (1, True, True, False),
    ],
)
def test_recurrent(kind, layers, both, batch_first, bias):
    model = kind(5, 7, layers, bidirectional=both, batch_first=batch_first, bias=bias)
    x = torch.randn(3, 4, 5)
    agreed(model, x, runtimes=BOTH)
    batch = x.shape[0 if batch_first else 1]
    state = torch.randn(layers * (1 + both), batch, 7)
    agreed(model, x, (state, state * 0.5) if kind is nn.LSTM else state)
    if not both:
        agreed(model, x[0])


def test_recurrent_cells_and_relu():
    agreed(nn.RNN(3, 4, nonlinearity="relu"), torch.randn(2, 1, 3))
    for cell in (nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4)):
        agreed(cell, torch.randn(2, 3))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_text_classifier(mode):
    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag, self.out = nn.EmbeddingBag(20, 8, mode=mode), nn.Linear(8, 3)

        def forward(self, *text):
            return self.out(self.bag(*text))

    agreed(Text(), torch.randint(0, 20, (4, 6)), runtimes=BOTH)
    agreed(Text(), torch.randint(0, 20, (9,)), torch.tensor([0, 2, 2, 5]), runtimes=BOTH)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [-1, 3])
@pytest.mark.parametrize("last", [False, True])
def test_bags_as_exported_programs_have_them(mode, padding, last):
    bags = torch.ops.aten.embedding_bag.padding_idx

    def rows(weight, indices, offsets):
        return bags(weight, indices, offsets, False, mode, False, None, last, padding)[0]

    agreed(
        rows,
        torch.randn(5, 4),
        torch.tensor([1, 3, 0, 3, 4, 2]),
        torch.tensor([0, 2, 2, 6] if last else [0, 2, 3]),
    )


def test_speech():
    class Speech(nn.Module):
        """Convolutions over time, then a bidirectional layer."""

        def __init__(self):
            super().__init__()
            self.conv = nn.Conv1d(8, 16, 3, stride=2, padding="valid")
            self.norm, self.rnn = (
                nn.BatchNorm1d(16),
                nn.GRU(16, 8, bidirectional=True, batch_first=True),
            )
            self.out = nn.Linear(16, 5)

        def forward(self, x):
            x = F.hardtanh(self.norm(self.conv(F.pad(x, (1, 1)))), 0, 20)
            x, _ = self.rnn(x.transpose(1, 2))
            return self.out(x).log_softmax(-1)

    agreed(awake(Speech()), torch.randn(2, 8, 20), runtimes=BOTH)


def test_openvino_is_asked():
    if openvino() is None:
        pytest.skip("no OpenVINO")
    program = torch.onnx.export(nn.Linear(2, 2), (torch.ones(1, 2),))
    assert tensors(program(torch.ones(1, 2)))


@pytest.mark.parametrize("aligned", [False, True])
def test_parts_of_images(aligned):
    def parts(x, boxes):
        return ops.roi_align(x, [boxes], (3, 2), 0.5, sampling_ratio=2, aligned=aligned)

    boxes = torch.tensor([[0.0, 1.0, 7.0, 9.0], [2.0, 2.0, 12.0, 10.0]])
    agreed(parts, torch.randn(1, 2, 8, 8), boxes, runtimes=BOTH)
