"""Networks for images: classifiers of several families, a U-Net, a diffusion step, a detector."""

from __future__ import annotations

from functools import partial
from itertools import pairwise


def conv_norm(torch, inputs, outputs, kernel=1, stride=1, groups=1, activation=None):
    """A convolution without a bias, batch normalisation, and an activation."""
    nn = torch.nn
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    if activation is not None:
        layers.append(activation())
    return nn.Sequential(*layers)


def classifier(torch, channels, classes=1000):
    """The mean over all pixels and a linear layer."""
    nn = torch.nn
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def residual_class(torch):
    """`Residual(body, shortcut, activation)`: their sum, through the activation."""
    nn = torch.nn

    class Residual(nn.Module):
        def __init__(self, body, shortcut=None, activation=None):
            super().__init__()
            self.body = body
            self.shortcut = shortcut or nn.Identity()
            self.activation = activation or nn.Identity()

        def forward(self, x):
            return self.activation(self.body(x) + self.shortcut(x))

    return Residual


def squeeze_class(torch):
    """`Squeeze(channels, inner, inner activation, gate)`: scales channels by what they hold."""
    nn = torch.nn

    class Squeeze(nn.Module):
        def __init__(self, channels, inner, activation, gate):
            super().__init__()
            self.reduce = nn.Conv2d(channels, inner, 1)
            self.expand = nn.Conv2d(inner, channels, 1)
            self.activation = activation()
            self.gate = gate()

        def forward(self, x):
            scale = x.mean((2, 3), keepdim=True)
            return x * self.gate(self.expand(self.activation(self.reduce(scale))))

    return Squeeze


def bottlenecks(torch, stages, stem, expansion, group_width=None):
    """A ResNet or RegNet: stages of (blocks, width) with a bottleneck in each block."""
    nn = torch.nn
    block = partial(conv_norm, torch)
    residual = residual_class(torch)
    relu = partial(nn.ReLU, inplace=True)
    layers = [stem]
    channels = stem[0][0].out_channels
    for stage, (blocks, width) in enumerate(stages):
        for i in range(blocks):
            stride = 2 if i == 0 and (stage > 0 or group_width) else 1
            outputs = width * expansion
            groups = width // group_width if group_width else 1
            body = nn.Sequential(
                block(channels, width, activation=relu),
                block(width, width, 3, stride, groups, relu),
                block(width, outputs),
            )
            changed = stride > 1 or channels != outputs
            shortcut = block(channels, outputs, 1, stride) if changed else None
            layers.append(residual(body, shortcut, relu()))
            channels = outputs
    return nn.Sequential(*layers, classifier(torch, channels))


def resnet50(torch):
    nn = torch.nn
    relu = partial(nn.ReLU, inplace=True)
    stem = nn.Sequential(conv_norm(torch, 3, 64, 7, 2, activation=relu), nn.MaxPool2d(3, 2, 1))
    return bottlenecks(torch, [(3, 64), (4, 128), (6, 256), (3, 512)], stem, 4)


def regnet(torch):
    """RegNetX of 0.4 GFLOP: grouped convolutions of 16 channels."""
    stem = torch.nn.Sequential(conv_norm(torch, 3, 32, 3, 2, activation=torch.nn.ReLU))
    return bottlenecks(torch, [(1, 32), (2, 64), (7, 160), (12, 384)], stem, 1, 16)


def inverted(torch, channels, outputs, expanded, kernel, stride, activation, squeeze=None):
    """Expand, filter each channel, squeeze, project; with a shortcut where shapes allow."""
    nn = torch.nn
    block = partial(conv_norm, torch)
    layers = [block(channels, expanded, activation=activation)] if expanded != channels else []
    layers.append(block(expanded, expanded, kernel, stride, expanded, activation))
    if squeeze is not None:
        layers.append(squeeze)
    layers.append(block(expanded, outputs))
    body = nn.Sequential(*layers)
    return residual_class(torch)(body) if stride == 1 and channels == outputs else body


def mobilenet_v3(torch):
    """MobileNetV3 large."""
    nn = torch.nn
    squeeze = squeeze_class(torch)
    relu, swish = nn.ReLU, nn.Hardswish
    table = [  # kernel, expanded, outputs, squeeze, activation, stride
        *((3, 16, 16, False, relu, 1), (3, 64, 24, False, relu, 2), (3, 72, 24, False, relu, 1)),
        *((5, 72, 40, True, relu, 2), (5, 120, 40, True, relu, 1), (5, 120, 40, True, relu, 1)),
        *((3, 240, 80, False, swish, 2), (3, 200, 80, False, swish, 1)),
        *((3, 184, 80, False, swish, 1), (3, 184, 80, False, swish, 1)),
        *((3, 480, 112, True, swish, 1), (3, 672, 112, True, swish, 1)),
        *((5, 672, 160, True, swish, 2), (5, 960, 160, True, swish, 1)),
        (5, 960, 160, True, swish, 1),
    ]
    layers = [conv_norm(torch, 3, 16, 3, 2, activation=swish)]
    channels = 16
    for kernel, expanded, outputs, squeezed, activation, stride in table:
        inner = (expanded // 4 + 4) // 8 * 8
        gate = squeeze(expanded, inner, nn.ReLU, nn.Hardsigmoid) if squeezed else None
        layers.append(
            inverted(torch, channels, outputs, expanded, kernel, stride, activation, gate)
        )
        channels = outputs
    return nn.Sequential(
        *layers,
        conv_norm(torch, channels, 960, activation=swish),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(960, 1280),
        nn.Hardswish(),
        nn.Linear(1280, 1000),
    )


def efficientnet(torch):
    """EfficientNet-B0."""
    nn = torch.nn
    squeeze = squeeze_class(torch)
    table = [  # blocks, kernel, expansion, outputs, stride
        *((1, 3, 1, 16, 1), (2, 3, 6, 24, 2), (2, 5, 6, 40, 2), (3, 3, 6, 80, 2)),
        *((3, 5, 6, 112, 1), (4, 5, 6, 192, 2), (1, 3, 6, 320, 1)),
    ]
    layers = [conv_norm(torch, 3, 32, 3, 2, activation=nn.SiLU)]
    channels = 32
    for blocks, kernel, expansion, outputs, first_stride in table:
        for i in range(blocks):
            expanded = channels * expansion
            gate = squeeze(expanded, max(1, channels // 4), nn.SiLU, nn.Sigmoid)
            stride = first_stride if i == 0 else 1
            layers.append(
                inverted(torch, channels, outputs, expanded, kernel, stride, nn.SiLU, gate)
            )
            channels = outputs
    head = conv_norm(torch, channels, 1280, activation=nn.SiLU)
    return nn.Sequential(*layers, head, classifier(torch, 1280))


def convnext(torch):
    """ConvNeXt with the widths of its femto size."""
    nn = torch.nn

    class ChannelNorm(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.filter = nn.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm = nn.LayerNorm(width, 1e-6)
            self.expand = nn.Linear(width, 4 * width)
            self.project = nn.Linear(4 * width, width)
            self.scale = nn.Parameter(torch.ones(width))

        def forward(self, x):
            y = self.norm(self.filter(x).permute(0, 2, 3, 1))
            y = self.scale * self.project(nn.functional.gelu(self.expand(y)))
            return x + y.permute(0, 3, 1, 2)

    layers = []
    channels = 3
    for stage, (blocks, width) in enumerate([(2, 48), (2, 96), (6, 192), (2, 384)]):
        if stage == 0:
            layers += [nn.Conv2d(3, width, 4, 4), ChannelNorm(width, 1e-6)]
        else:
            layers += [ChannelNorm(channels, 1e-6), nn.Conv2d(channels, width, 2, 2)]
        layers += [Block(width) for _ in range(blocks)]
        channels = width
    pooled = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(channels, 1e-6)]
    return nn.Sequential(*layers, *pooled, nn.Linear(channels, 1000))


def vit(torch, width=192, depth=12, heads=3, image=160, patch=16):
    """A vision transformer, tiny."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1 = nn.LayerNorm(width, 1e-6)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.norm2 = nn.LayerNorm(width, 1e-6)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            n, t, c = x.shape
            qkv = self.qkv(self.norm1(x)).reshape(n, t, 3, heads, c // heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            y = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
            return x + self.mlp(self.norm2(x))

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.token = nn.Parameter(torch.zeros(1, 1, width))
            self.positions = nn.Parameter(torch.zeros(1, (image // patch) ** 2 + 1, width))
            self.blocks = nn.Sequential(*(Block() for _ in range(depth)))
            self.norm = nn.LayerNorm(width, 1e-6)
            self.head = nn.Linear(width, 1000)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
            return self.head(self.norm(self.blocks(x))[:, 0])

    return ViT()


def swin(torch, width=48, depths=(2, 2, 2, 2), heads=(3, 6, 12, 24), window=7, image=224):
    """A Swin transformer: attention in windows that shift by half in every second block."""
    nn = torch.nn

    def windows(x):
        n, h, w, c = x.shape
        x = x.view(n, h // window, window, w // window, window, c)
        return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window * window, c)

    class Block(nn.Module):
        def __init__(self, width, heads, size, shift):
            super().__init__()
            self.heads, self.shift = heads, shift if size > window else 0
            self.norm1 = nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.norm2 = nn.LayerNorm(width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )
            self.bias = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
            at = torch.arange(window)
            rows, columns = (at[:, None] - at + window - 1 for _ in range(2))
            index = rows[:, None, :, None] * (2 * window - 1) + columns[None, :, None, :]
            self.register_buffer("index", index.reshape(-1))
            mask = None
            if self.shift:
                strip = torch.zeros(size, dtype=torch.int64)
                strip[-window:] = 1
                strip[-self.shift :] = 2
                part = windows((strip[:, None] * 3 + strip)[None, :, :, None])[:, :, 0]
                mask = (part[:, None] != part[:, :, None]).float() * -100.0
            self.register_buffer("mask", mask)

        def attend(self, x):
            count, area, c = x.shape
            qkv = self.qkv(x).reshape(count, area, 3, self.heads, c // self.heads)
            q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
            scores = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
            scores = scores + self.bias[self.index].view(area, area, -1).permute(2, 0, 1)
            if self.mask is not None:
                many = self.mask.shape[0]
                scores = scores.view(-1, many, self.heads, area, area) + self.mask[:, None]
                scores = scores.view(count, self.heads, area, area)
            y = scores.softmax(-1) @ v
            return self.out(y.transpose(1, 2).reshape(count, area, c))

        def forward(self, x):
            n, h, w, c = x.shape
            y = self.norm1(x)
            if self.shift:
                y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
            y = self.attend(windows(y)).view(n, h // window, w // window, window, window, c)
            y = y.permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
            if self.shift:
                y = torch.roll(y, (self.shift, self.shift), (1, 2))
            x = x + y
            return x + self.mlp(self.norm2(x))

    class Merge(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = nn.LayerNorm(4 * width)
            self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

        def forward(self, x):
            corners = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
            return self.reduce(self.norm(torch.cat(corners, -1)))

    class Swin(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 4, 4)
            self.norm = nn.LayerNorm(width)
            layers = []
            channels, size = width, image // 4
            for stage, (depth, count) in enumerate(zip(depths, heads, strict=True)):
                if stage > 0:
                    layers.append(Merge(channels))
                    channels, size = 2 * channels, size // 2
                for i in range(depth):
                    layers.append(Block(channels, count, size, i % 2 * (window // 2)))
            self.blocks = nn.Sequential(*layers)
            self.last = nn.LayerNorm(channels)
            self.head = nn.Linear(channels, 1000)

        def forward(self, x):
            x = self.norm(self.patches(x).permute(0, 2, 3, 1))
            return self.head(self.last(self.blocks(x)).mean((1, 2)))

    return Swin()


def densenet121(torch, growth=32):
    nn = torch.nn

    def normed(channels, conv):
        return nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(inplace=True), conv)

    class Dense(nn.Module):
        def __init__(self, channels):
            super().__init__()
            inner = nn.Conv2d(channels, 4 * growth, 1, bias=False)
            outer = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
            self.body = nn.Sequential(normed(channels, inner), normed(4 * growth, outer))

        def forward(self, x):
            return torch.cat([x, self.body(x)], 1)

    layers = [conv_norm(torch, 3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, blocks in enumerate((6, 12, 24, 16)):
        if stage > 0:
            reduce = nn.Conv2d(channels, channels // 2, 1, bias=False)
            layers += [normed(channels, reduce), nn.AvgPool2d(2)]
            channels //= 2
        for _ in range(blocks):
            layers.append(Dense(channels))
            channels += growth
    last = [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, *last, classifier(torch, channels))


def unet(torch, width=32, levels=4, classes=4):
    """A U-Net for segmentation, upwards by transposed convolutions."""
    nn = torch.nn

    def double(inputs, outputs):
        relu = partial(nn.ReLU, inplace=True)
        return nn.Sequential(
            conv_norm(torch, inputs, outputs, 3, activation=relu),
            conv_norm(torch, outputs, outputs, 3, activation=relu),
        )

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            widths = [width << i for i in range(levels)]
            self.down = nn.ModuleList(
                double(i, o) for i, o in zip([3, *widths], widths, strict=False)
            )
            self.pool = nn.MaxPool2d(2)
            back = widths[::-1]
            pairs = list(pairwise(back))
            self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in pairs)
            self.join = nn.ModuleList(double(2 * o, o) for _, o in pairs)
            self.head = nn.Conv2d(width, classes, 1)

        def forward(self, x):
            kept = []
            for i, block in enumerate(self.down):
                x = block(x if i == 0 else self.pool(x))
                kept.append(x)
            kept.pop()
            for up, join in zip(self.up, self.join, strict=True):
                x = join(torch.cat([kept.pop(), up(x)], 1))
            return self.head(x)

    return UNet()


def diffusion(torch, width=64):
    """One denoising step: residual blocks with group normalisation, attention, upsampling."""
    nn = torch.nn
    F = nn.functional

    class Block(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.norm1 = nn.GroupNorm(8, inputs)
            self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
            self.time = nn.Linear(4 * width, outputs)
            self.norm2 = nn.GroupNorm(8, outputs)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
            self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

        def forward(self, x, time):
            y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
            return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))

    class Attention(nn.Module):
        def __init__(self, channels, heads=4):
            super().__init__()
            self.heads = heads
            self.norm = nn.GroupNorm(8, channels)
            self.qkv = nn.Conv2d(channels, 3 * channels, 1)
            self.out = nn.Conv2d(channels, channels, 1)

        def forward(self, x):
            n, c, h, w = x.shape
            qkv = self.qkv(self.norm(x)).view(n, 3, self.heads, c // self.heads, h * w)
            q, k, v = (t.transpose(-2, -1) for t in qkv.unbind(1))
            y = F.scaled_dot_product_attention(q, k, v).transpose(-2, -1)
            return x + self.out(y.reshape(n, c, h, w))

    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            wide = 2 * width
            self.embed = nn.Sequential(
                nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width)
            )
            self.first = nn.Conv2d(4, width, 3, padding=1)
            self.down1, self.reduce = Block(width, width), nn.Conv2d(width, width, 3, 2, 1)
            self.down2, self.attend1 = Block(width, wide), Attention(wide)
            self.middle, self.attend2 = Block(wide, wide), Attention(wide)
            self.up2, self.attend3 = Block(2 * wide, wide), Attention(wide)
            self.enlarge = nn.Conv2d(wide, wide, 3, padding=1)
            self.up1 = Block(wide + width, width)
            self.norm, self.last = nn.GroupNorm(8, width), nn.Conv2d(width, 4, 3, padding=1)

        def forward(self, x, time):
            half = width // 2
            waves = torch.exp(torch.arange(half) * (-9.21 / half))
            phase = time[:, None] * waves
            time = self.embed(torch.cat([phase.sin(), phase.cos()], -1))
            x1 = self.down1(self.first(x), time)
            x2 = self.attend1(self.down2(self.reduce(x1), time))
            y = self.attend2(self.middle(x2, time))
            y = self.attend3(self.up2(torch.cat([y, x2], 1), time))
            y = self.enlarge(F.interpolate(y, scale_factor=2.0, mode="nearest"))
            y = self.up1(torch.cat([y, x1], 1), time)
            return self.last(F.silu(self.norm(y)))

    return Denoiser()


def detector(torch, classes=20, width=64, kept=50):
    """A small backbone, a feature pyramid, and a head for classes and boxes of every pixel."""
    nn = torch.nn
    F = nn.functional
    residual = residual_class(torch)

    def stage(inputs, outputs):
        relu = partial(nn.ReLU, inplace=True)
        body = nn.Sequential(
            conv_norm(torch, inputs, outputs, 3, 2, activation=relu),
            conv_norm(torch, outputs, outputs, 3),
        )
        return residual(body, conv_norm(torch, inputs, outputs, 1, 2), relu())

    def tower():
        layers = []
        for _ in range(2):
            layers += [
                nn.Conv2d(width, width, 3, padding=1),
                nn.GroupNorm(8, width),
                nn.ReLU(inplace=True),
            ]
        return nn.Sequential(*layers)

    class Detector(nn.Module):
        def __init__(self):
            super().__init__()
            widths = (64, 128, 256)
            self.stem = conv_norm(torch, 3, 32, 3, 2, activation=nn.ReLU)
            self.stages = nn.ModuleList(
                stage(i, o) for i, o in zip((32, *widths), widths, strict=False)
            )
            self.lateral = nn.ModuleList(nn.Conv2d(c, width, 1) for c in widths)
            self.smooth = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in widths)
            self.class_tower, self.box_tower = tower(), tower()
            self.class_head = nn.Conv2d(width, classes, 3, padding=1)
            self.box_head = nn.Conv2d(width, 4, 3, padding=1)

        def forward(self, x):
            """Logits of classes and distances to the sides, [images, places, …]."""
            levels = []
            x = self.stem(x)
            for block in self.stages:
                x = block(x)
                levels.append(x)
            above = None
            scores, sides = [], []
            for i in (2, 1, 0):
                y = self.lateral[i](levels[i])
                if above is not None:
                    y = y + F.interpolate(above, size=y.shape[-2:], mode="nearest")
                above = y
                y = self.smooth[i](y)
                scores.append(self.class_head(self.class_tower(y)).flatten(2).transpose(1, 2))
                sides.append(F.softplus(self.box_head(self.box_tower(y))).flatten(2).mT)
            return torch.cat(scores, 1), torch.cat(sides, 1)

        def answer(self, x):
            """The best boxes of each image and what part of each pair is common."""
            scores, sides = self(x)
            best, place = scores.sigmoid().amax(-1).topk(kept, dim=1)
            sides = sides.gather(1, place[:, :, None].expand(-1, -1, 4))
            centre = (place.remainder(16)[:, :, None] * 8.0).expand(-1, -1, 2)
            boxes = torch.cat([centre - sides[..., :2], centre + sides[..., 2:]], -1)
            area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
            low = torch.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
            high = torch.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
            common = (high - low).clamp(min=0).prod(-1)
            return best, common / (area[:, :, None] + area[:, None] - common)

    return Detector()
