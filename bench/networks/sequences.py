"""Networks for sequences: BERT, decoders that generate, speech, a tagger."""

from __future__ import annotations


def bert(torch, words=8000, width=256, depth=4, heads=4):
    """BERT with a padding mask, and a prediction for every word."""
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
            self.expand, self.project = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)

        def forward(self, x, mask):
            n, t, c = x.shape
            q, k, v = (
                f(x).view(n, t, heads, c // heads).transpose(1, 2) for f in (self.q, self.k, self.v)
            )
            y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            x = self.norm1(x + self.out(y.transpose(1, 2).reshape(n, t, c)))
            return self.norm2(x + self.project(nn.functional.gelu(self.expand(x))))

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.positions = nn.Embedding(512, width)
            self.norm = nn.LayerNorm(width, 1e-12)
            self.layers = nn.ModuleList(Layer() for _ in range(depth))
            self.transform = nn.Linear(width, width)
            self.last = nn.LayerNorm(width, 1e-12)
            self.head = nn.Linear(width, words)

        def forward(self, tokens, lengths):
            at = torch.arange(tokens.shape[1])
            mask = (at < lengths[:, None])[:, None, None, :]
            x = self.norm(self.words(tokens) + self.positions(at))
            for layer in self.layers:
                x = layer(x, mask)
            return self.head(self.last(nn.functional.gelu(self.transform(x))))

    return Bert()


def llama(torch, words=4000, width=256, depth=4, heads=8, shared=2, steps=16):
    """A decoder with RMS norms, rotary positions, gated layers and shared keys and values."""
    nn = torch.nn
    F = nn.functional
    size = width // heads

    def rotated(x, cosine, sine):
        a, b = x.chunk(2, -1)
        return x * cosine + torch.cat([-b, a], -1) * sine

    class RmsNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            few = heads // shared * size
            self.norm1, self.norm2 = RmsNorm(), RmsNorm()
            self.q, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
            self.k, self.v = (nn.Linear(width, few, bias=False) for _ in range(2))
            self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
            self.down = nn.Linear(3 * width, width, bias=False)

        def forward(self, x, cosine, sine, past):
            n, t, c = x.shape
            y = self.norm1(x)
            q, k, v = (f(y).view(n, t, -1, size).transpose(1, 2) for f in (self.q, self.k, self.v))
            q, k = rotated(q, cosine, sine), rotated(k, cosine, sine)
            if past is not None:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            keys, values = (z.repeat_interleave(shared, 1) for z in (k, v))
            y = F.scaled_dot_product_attention(q, keys, values, is_causal=past is None)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
            y = self.norm2(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y)), (k, v)

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.layers = nn.ModuleList(Layer() for _ in range(depth))
            self.norm = RmsNorm()
            self.head = nn.Linear(width, words, bias=False)

        def forward(self, tokens, past=None, start=0):
            at = torch.arange(start, start + tokens.shape[1]).float()[:, None]
            angle = at * torch.exp(torch.arange(0, size, 2) * (-9.21 / size))
            cosine, sine = (torch.cat([f(angle)] * 2, -1) for f in (torch.cos, torch.sin))
            x = self.words(tokens)
            kept = []
            for i, layer in enumerate(self.layers):
                x, pair = layer(x, cosine, sine, past[i] if past else None)
                kept.append(pair)
            if not self.training:
                x = x[:, -1:]
                self.past = kept
            return self.head(self.norm(x))

        def answer(self, tokens):
            """Words one at a time, each the likeliest; the last one's logits."""
            logits = self(tokens)
            for i in range(steps):
                word = logits[:, -1].argmax(-1, keepdim=True)
                logits = self(word, self.past, tokens.shape[1] + i)
            return logits

    return Llama()


def t5(torch, words=4000, width=256, depth=3, heads=4, steps=16):
    """An encoder and a decoder with positions that are relative, in buckets."""
    nn = torch.nn
    F = nn.functional
    size = width // heads

    class RmsNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def bucket(distance, both):
        """Distances up to 8 (16) each, then ever wider ranges."""
        count = 16 if both else 32
        base = (distance > 0).long() * count if both else 0
        distance = distance.abs() if both else (-distance).clamp(min=0)
        exact = count // 2
        far = exact + (torch.log(distance.float() / exact + 1e-6) * (exact / 2.08)).long()
        return base + torch.where(distance < exact, distance, far.clamp(max=count - 1))

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v, self.out = (
                nn.Linear(width, width, bias=False) for _ in range(4)
            )

        def split(self, f, x):
            return f(x).view(x.shape[0], -1, heads, size).transpose(1, 2)

        def forward(self, x, keys, values, bias):
            scores = self.split(self.q, x) @ keys.transpose(-2, -1)
            y = (scores if bias is None else scores + bias).softmax(-1) @ values
            return self.out(y.transpose(1, 2).reshape(x.shape))

    class Layer(nn.Module):
        def __init__(self, crossed):
            super().__init__()
            self.own, self.norm1 = Attention(), RmsNorm()
            if crossed:
                self.cross, self.norm2 = Attention(), RmsNorm()
            self.norm3 = RmsNorm()
            self.expand = nn.Linear(width, 4 * width, bias=False)
            self.project = nn.Linear(4 * width, width, bias=False)

        def forward(self, x, bias, past=None, memory=None):
            y = self.norm1(x)
            pair = self.own.split(self.own.k, y), self.own.split(self.own.v, y)
            if past is not None:
                pair = tuple(torch.cat(two, 2) for two in zip(past, pair, strict=True))
            x = x + self.own(y, *pair, bias)
            if memory is not None:
                x = x + self.cross(self.norm2(x), *memory, None)
            return x + self.project(F.relu(self.expand(self.norm3(x)))), pair

    class T5(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.near, self.before = nn.Embedding(32, heads), nn.Embedding(32, heads)
            self.encoder = nn.ModuleList(Layer(False) for _ in range(depth))
            self.decoder = nn.ModuleList(Layer(True) for _ in range(depth))
            self.norm1, self.norm2 = RmsNorm(), RmsNorm()
            self.head = nn.Linear(width, words, bias=False)

        def encode(self, tokens):
            at = torch.arange(tokens.shape[1])
            bias = self.near(bucket(at - at[:, None], True)).permute(2, 0, 1)
            x = self.words(tokens)
            for layer in self.encoder:
                x, _ = layer(x, bias)
            x = self.norm1(x)
            return [
                (layer.cross.split(layer.cross.k, x), layer.cross.split(layer.cross.v, x))
                for layer in self.decoder
            ]

        def decode(self, tokens, memory, past, start):
            total = start + tokens.shape[1]
            distance = torch.arange(total) - torch.arange(start, total)[:, None]
            bias = self.before(bucket(distance, False)).permute(2, 0, 1)
            bias = bias.masked_fill(distance > 0, float("-inf"))
            x = self.words(tokens)
            kept = []
            for i, layer in enumerate(self.decoder):
                x, pair = layer(x, bias, past[i] if past else None, memory[i])
                kept.append(pair)
            return self.head(self.norm2(x) * width**-0.5), kept

        def forward(self, tokens, answer):
            return self.decode(answer, self.encode(tokens), None, 0)[0]

        def answer(self, tokens, answer):
            """Words one at a time, each the likeliest; the last one's logits."""
            memory = self.encode(tokens)
            word, past = answer[:, :1], None
            for i in range(steps):
                logits, past = self.decode(word, memory, past, i)
                word = logits[:, -1].argmax(-1, keepdim=True)
            return logits

    return T5()


def speech(torch, width=128, letters=32):
    """Strided convolutions over a waveform, then convolution modules of a Conformer."""
    nn = torch.nn
    F = nn.functional

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(width)
            self.gate = nn.Conv1d(width, 2 * width, 1)
            self.filter = nn.Conv1d(width, width, 15, padding=7, groups=width)
            self.batch_norm = nn.BatchNorm1d(width)
            self.out = nn.Conv1d(width, width, 1)
            self.mlp = nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 4 * width),
                nn.SiLU(),
                nn.Linear(4 * width, width),
            )

        def forward(self, x):
            y = F.glu(self.gate(self.norm(x).transpose(1, 2)), dim=1)
            y = self.out(F.silu(self.batch_norm(self.filter(y))))
            x = x + y.transpose(1, 2)
            return x + 0.5 * self.mlp(x)

    class Speech(nn.Module):
        def __init__(self):
            super().__init__()
            layers = [nn.Conv1d(1, width, 10, 5, bias=False), nn.GroupNorm(width, width)]
            for kernel in (3, 3, 3, 3, 2, 2):
                layers += [nn.GELU(), nn.Conv1d(width, width, kernel, 2, bias=False)]
            self.encoder = nn.Sequential(*layers, nn.GELU())
            self.blocks = nn.Sequential(*(Module() for _ in range(3)))
            self.head = nn.Linear(width, letters)

        def forward(self, wave):
            x = self.encoder(wave[:, None]).transpose(1, 2)
            return self.head(self.blocks(x)).log_softmax(-1)

    return Speech()


def tagger(torch, words=8000, width=128, tags=20):
    """A bidirectional LSTM over sentences of different lengths."""
    nn = torch.nn
    utils = nn.utils.rnn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(words, width)
            self.lstm = nn.LSTM(width, width, 2, batch_first=True, bidirectional=True)
            self.head = nn.Linear(2 * width, tags)

        def forward(self, tokens, lengths):
            x = utils.pack_padded_sequence(
                self.words(tokens), lengths, batch_first=True, enforce_sorted=False
            )
            y, _ = utils.pad_packed_sequence(self.lstm(x)[0], batch_first=True)
            return self.head(y)

    return Tagger()
