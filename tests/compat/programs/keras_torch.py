"""Keras over torch: layers, fit, evaluate, a loop of one's own, saving."""
# packages: keras

import os
import tempfile

os.environ["KERAS_BACKEND"] = "torch"
import keras  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from keras import layers  # noqa: E402
from shown import show  # noqa: E402

keras.utils.set_random_seed(0)
rng = numpy.random.default_rng(0)
x = rng.normal(size=(64, 12, 12, 3)).astype("float32")
y = rng.integers(0, 4, 64)
model = keras.Sequential(
    [
        layers.Input((12, 12, 3)),
        layers.Conv2D(8, 3, activation="relu", padding="same"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(2),
        layers.SeparableConv2D(8, 3),
        layers.Conv2DTranspose(4, 3, strides=2),
        layers.GlobalAveragePooling2D(),
        layers.Dropout(0.0),
        layers.Dense(4),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.set_weights(
    [
        rng.normal(size=w.shape).astype("float32") * 0.2 + (i == 5)
        for i, w in enumerate(model.get_weights())
    ]
)
history = model.fit(x, y, batch_size=16, epochs=2, verbose=0, shuffle=False, validation_split=0.25)
for name, values in history.history.items():
    print(name, *(f"{v:.4g}" for v in values))
print("evaluated", *(f"{v:.4g}" for v in model.evaluate(x, y, verbose=0)))
show("predicted", torch.from_numpy(model.predict(x, verbose=0)))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.keras")
    model.save(path)
    again = keras.saving.load_model(path)
    print("loaded", numpy.allclose(again.predict(x, verbose=0), model.predict(x, verbose=0)))
    model.save_weights(os.path.join(folder, "m.weights.h5"))
    model.load_weights(os.path.join(folder, "m.weights.h5"))

words = keras.Input((10,), dtype="int32")
h = layers.Embedding(20, 16, mask_zero=True)(words)
h = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(h)
h = layers.GRU(8, return_sequences=True)(h)
h = layers.MultiHeadAttention(2, 8)(h, h)
h = layers.LayerNormalization()(h)
h = layers.Conv1D(8, 3, padding="causal")(h)
h = layers.GlobalMaxPooling1D()(h)
out = layers.Dense(1, activation="sigmoid")(h)
text = keras.Model(words, out)
text.set_weights([rng.normal(size=w.shape).astype("float32") * 0.2 for w in text.get_weights()])
tokens, label = rng.integers(1, 20, (32, 10)), rng.integers(0, 2, 32)
text.compile(optimizer="rmsprop", loss="binary_crossentropy", metrics=["AUC"])
history = text.fit(tokens, label, epochs=2, batch_size=8, verbose=0, shuffle=False)
for name, values in history.history.items():
    print(name, *(f"{v:.4g}" for v in values))
show("text", torch.from_numpy(text.predict(tokens, verbose=0)))

# a loop of torch over a Keras model, and the reverse
optimizer = torch.optim.SGD(text.parameters(), lr=0.1)
for _ in range(3):
    loss = torch.nn.functional.binary_cross_entropy(
        text(torch.from_numpy(tokens), training=True)[:, 0], torch.from_numpy(label).float()
    )
    text.zero_grad()
    loss.backward()
    optimizer.step()
    show("loop", loss)


class Wrapped(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = layers.TorchModuleWrapper(torch.nn.Linear(5, 1))

    def call(self, inputs):
        return self.inner(inputs)


torch.manual_seed(0)
wrapped = Wrapped()
wrapped.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
print(
    "wrapped",
    *(
        f"{v:.4g}"
        for v in wrapped.fit(
            x[:, 0, 0:5, 0], x[:, 0, 5, 0], epochs=3, verbose=0, shuffle=False
        ).history["loss"]
    ),
)

ops = keras.ops
a = rng.normal(size=(4, 6)).astype("float32")
names = """
abs exp tanh sort argsort cumsum
softmax logsumexp relu gelu silu flip median var std
any all max argmax square sign sigmoid
erf floor round sin log1p expm1 isnan
nan_to_num tril triu transpose mean prod
l2_normalize diff count_nonzero top_k
"""
for name in names.split():
    if name == "top_k":
        got = ops.top_k(a, 2)[0]
    elif name == "l2_normalize":
        got = ops.normalize(a)
    else:
        got = getattr(ops, name)(ops.convert_to_tensor(a))
    show(name, torch.as_tensor(got).float())
b = ops.convert_to_tensor(a)
show("einsum", ops.einsum("ij,kj->ik", b, b))
show("matmul", ops.matmul(b, ops.transpose(b)))
show("segment", ops.segment_sum(b, ops.convert_to_tensor([0, 0, 1, 2]), num_segments=3))
show("scan", ops.scan(lambda c, v: (c + v, c * v), ops.zeros(6), b)[1])
show("while", ops.while_loop(lambda i: i < 5, lambda i: i + 1, [ops.convert_to_tensor(0)])[0])
show("vectorized", ops.vectorized_map(lambda v: v * 2, b))
show("map", ops.map(lambda v: v.sum(), b))
show("image", ops.image.resize(ops.convert_to_tensor(x[:1]), (7, 9)))
show("svd", ops.svd(b)[1])
show("qr", ops.abs(ops.qr(b)[1]))
show("solve", ops.solve(ops.matmul(b, ops.transpose(b)), b))
show("fft", ops.fft((b, b))[0])
show("stft", ops.stft(ops.convert_to_tensor(rng.normal(size=64).astype("float32")), 16, 8, 16)[0])
show(
    "ctc",
    ops.ctc_loss(
        ops.convert_to_tensor([[1, 2]]),
        ops.convert_to_tensor(rng.normal(size=(1, 6, 4)).astype("float32")),
        ops.convert_to_tensor([2]),
        ops.convert_to_tensor([6]),
    ),
)
show("random", keras.random.normal((3, 4), seed=1))
show("truncated", keras.random.truncated_normal((3, 4), seed=1))
