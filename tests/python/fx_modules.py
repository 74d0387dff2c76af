"""Modules and functions that are traced, by those tests and by the comparison with PyTorch.

`make(torch)` gives them over rushlight or PyTorch: name → (module or function, inputs).
"""

import math


def make(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.conv = nn.Conv2d(n, n, 3, padding=1)
            self.norm = nn.BatchNorm2d(n)
            self.act = nn.ReLU()

        def forward(self, x):
            return x + self.act(self.norm(self.conv(x)))

    class Convolutional(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(3, 4, 3)
            self.blocks = nn.Sequential(Block(4), nn.Sequential(Block(4), nn.MaxPool2d(2)))
            self.head = nn.Linear(4, 5)

        def forward(self, x, scale=2.0):
            x = self.blocks(self.stem(x))
            x = torch.flatten(x, 2).mean(-1)
            return self.head(x) * scale

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(8, 24)
            self.out = nn.Linear(8, 8)
            self.norm = nn.LayerNorm(8)
            self.scale = nn.Parameter(torch.ones(8))
            self.register_buffer("bias", torch.zeros(4, 4))

        def forward(self, x):
            b, n, c = x.shape
            q, k, v = self.qkv(self.norm(x)).reshape(b, n, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
            attn = (q @ k.transpose(-2, -1)) * (c // 2) ** -0.5 + self.bias
            y = attn.softmax(dim=-1) @ v
            return self.out(y.transpose(1, 2).reshape(b, n, c)) * self.scale

    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(3, 3)
            self.other = self.one
            self.plain = torch.full((3,), 2.0)
            self.emb = nn.Embedding(5, 3)

        def forward(self, x, index):
            y = self.other(self.one(x)) + self.emb(index) * self.plain
            return {"y": y, "both": [y.sum(), (x, None)], "slice": y[1:, None, ..., -1]}

    def operators(x, y):
        a = (x + 1 - y * 2) / 3 // 2 % 5 ** (2 - x)
        b = -a + abs(x) - (+y)
        c = ~(x > y) & (x <= y) | (x == y) ^ (x != y)
        return b, c, 3 @ y if False else x @ y.T, x.T, x.shape[0]

    def stars(x, *rest, flag=True, **named):
        return x + rest[0] * named["w"], flag

    def functions(x):
        y = torch.cat([x, torch.relu(x)], dim=0)
        z = torch.stack([y, y * 2])[0]
        w = x.new_zeros(x.shape[0], 2) + math.sqrt(4)
        return (
            F.pad(z, (1, 1)).sum() + w.sum(),
            y.view(-1).to(torch.float64),
            torch.add(z, z, alpha=2),
        )

    def augmented(x):
        x += 1
        x *= 2
        x.add_(3)
        return x

    torch.manual_seed(0)
    x = torch.randn(3, 3)
    return {
        "convolutional": (Convolutional().eval(), (torch.randn(2, 3, 8, 8),)),
        "attention": (Attention(), (torch.randn(2, 4, 8),)),
        "shared": (Shared(), (torch.randn(2, 3), torch.tensor([1, 4]))),
        "operators": (operators, (x, torch.randn(3, 3))),
        "stars": (stars, (x, True, [x], {"w": 2.0})),
        "functions": (functions, (x,)),
        "augmented": (augmented, (x,)),
        "encoder": (
            nn.Sequential(nn.Linear(3, 6), nn.GELU(), nn.Dropout(0.5), nn.Linear(6, 2)).eval(),
            (x,),
        ),
    }
