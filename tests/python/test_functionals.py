"""Layers and functions of nn against the formulas that define them, and helpers around modules."""

import copy
import math

import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.nn.utils import prune
from rushlight.testing import assert_close

X = torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0])


@pytest.mark.parametrize(
    ("function", "formula"),
    [
        (F.softsign, lambda x: x / (1 + abs(x))),
        (F.tanhshrink, lambda x: x - math.tanh(x)),
        (F.logsigmoid, lambda x: -math.log1p(math.exp(-x))),
        (F.softshrink, lambda x: math.copysign(max(abs(x) - 0.5, 0), x)),
        (lambda x: F.leaky_relu_(x.clone()), lambda x: x if x > 0 else 0.01 * x),
        (lambda x: F.elu_(x.clone()), lambda x: x if x > 0 else math.expm1(x)),
        (lambda x: F.hardtanh_(x.clone()), lambda x: min(max(x, -1), 1)),
    ],
)
def test_activations(function, formula):
    assert_close(function(X), torch.tensor([float(formula(x)) for x in X.tolist()]))


A, B = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([1.0, -1.0, 1.0])


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (lambda: F.soft_margin_loss(A, B), [math.log1p(math.exp(-a)) for a in (0.5, 1.0, 2.0)]),
        (lambda: F.hinge_embedding_loss(A, B), [0.5, 2.0, 2.0]),
        (lambda: F.margin_ranking_loss(A, A.flip(0), B, margin=0.5), [2.0, 0.5, 0.0]),
        (lambda: F.poisson_nll_loss(A, A * A), [math.exp(a) - a**3 for a in (0.5, -1.0, 2.0)]),
        (
            lambda: F.gaussian_nll_loss(A, torch.zeros(3), torch.full((3,), 4.0)),
            [(math.log(4) + a * a / 4) / 2 for a in (0.5, -1.0, 2.0)],
        ),
    ],
)
def test_losses_of_elements(loss, expected):
    assert_close(loss(), torch.tensor(expected).mean())


def test_losses_of_rows():
    x = torch.tensor([[0.1, 0.2, 0.7]])
    hinges = max(0, 1 - 0.7 + 0.1) + max(0, 1 - 0.7 + 0.2)
    assert_close(F.multi_margin_loss(x, torch.tensor([2])), torch.tensor(hinges / 3))
    labels = torch.tensor([[2, 0, -1]])
    hinges = max(0, 1 - (0.7 - 0.2)) + max(0, 1 - (0.1 - 0.2))
    assert_close(F.multilabel_margin_loss(x, labels), torch.tensor(hinges / 3))
    target = torch.tensor([[1.0, 0.0, 1.0]])
    p = x.sigmoid()
    expected = -(target * p.log() + (1 - target) * (1 - p).log()).mean()
    assert_close(F.multilabel_soft_margin_loss(x, target), expected)
    y = torch.tensor([[0.3, -0.2, 0.1]])
    cosine = (x * y).sum() / (x.norm() * y.norm())
    assert_close(F.cosine_embedding_loss(x, y, torch.tensor([1])), 1 - cosine)
    assert_close(F.cosine_embedding_loss(x, y, torch.tensor([-1])), cosine.clamp(min=0))
    near, far = (x - y + 1e-6).norm(), (x - 2 * y + 1e-6).norm()
    assert_close(F.triplet_margin_loss(x, y, 2 * y), (near - far + 1).clamp(min=0))
    loss = nn.TripletMarginWithDistanceLoss(
        distance_function=lambda a, b: (a - b).abs().sum(-1), margin=2.0
    )
    expected = ((x - y).abs().sum() - (x - 2 * y).abs().sum() + 2).clamp(min=0)
    assert_close(loss(x, y, 2 * y), expected)


def test_one_hot():
    rows = F.one_hot(torch.tensor([[2, 0], [1, 1]]), 3)
    assert rows.tolist() == [[[0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 1, 0]]]
    assert F.one_hot(torch.tensor([3, 0])).shape == (2, 4)


def test_pools_with_places():
    x = torch.tensor([[[[1.0, 5.0, 2.0, 0.0], [3.0, 4.0, 9.0, 7.0]]]])
    values, places = F.max_pool2d_with_indices(x, 2)
    assert values.tolist() == [[[[5, 9]]]] and places.tolist() == [[[[1, 6]]]]
    values, places = F.adaptive_max_pool2d_with_indices(x, (1, 2))
    assert values.tolist() == [[[[5, 9]]]] and places.tolist() == [[[[1, 6]]]]
    values, places = F.adaptive_max_pool1d_with_indices(x[0, 0], 2)
    assert values.tolist() == [[5, 2], [4, 9]] and places.tolist() == [[1, 2], [1, 2]]
    volume = x.reshape(1, 1, 2, 2, 2)
    values, places = F.max_pool3d_with_indices(volume, 2)
    assert values.item() == 9 and places.item() == 6
    values, places = F.adaptive_max_pool3d_with_indices(volume, 1)
    assert values.item() == 9 and places.item() == 6
    assert nn.AdaptiveMaxPool3d(1)(volume).item() == 9
    for adaptive in (nn.AdaptiveAvgPool3d(1), lambda v: F.adaptive_avg_pool3d(v, 1)):
        assert adaptive(volume).item() == x.mean().item()
    assert F.adaptive_avg_pool2d(x, (1, 2)).tolist() == [[[[3.25, 4.5]]]]
    assert_close(F.lp_pool2d(x, 2.0, (1, 2))[0, 0, 0], torch.tensor([26.0, 4.0]).sqrt())
    assert_close(F.lp_pool1d(x[0], 1.0, 2)[0, 1], torch.tensor([7.0, 16.0]))
    random = torch.full((1, 1, 2), 0.0)
    values, places = F.fractional_max_pool2d_with_indices(
        x, 1, output_size=2, _random_samples=random
    )
    assert values.shape == places.shape == (1, 1, 2, 2)
    assert torch.equal(x.flatten()[places.flatten()], values.flatten())
    cube = torch.arange(27.0).reshape(1, 1, 3, 3, 3)
    values, places = F.fractional_max_pool3d_with_indices(cube, 2, output_size=2)
    assert torch.equal(cube.flatten()[places.flatten()], values.flatten())
    assert values.max() == 26


def test_paddings():
    x = torch.arange(8.0).reshape(1, 1, 2, 2, 2)
    assert nn.ZeroPad3d(1)(x).shape == (1, 1, 4, 4, 4) and nn.ZeroPad3d(1)(x).sum() == x.sum()
    wrapped = nn.CircularPad3d((1, 0, 0, 0, 0, 0))(x)
    assert wrapped[0, 0, 0].tolist() == [[1, 0, 1], [3, 2, 3]]
    mirrored = nn.ReflectionPad3d((0, 1, 0, 0, 0, 0))(x)
    assert mirrored[0, 0, 0].tolist() == [[0, 1, 0], [2, 3, 2]]
    repeated = nn.ReplicationPad2d((0, 2, 1, 0))(x[0, :, 0])
    assert repeated[0].tolist() == [[0, 1, 1, 1], [0, 1, 1, 1], [2, 3, 3, 3]]


@pytest.mark.parametrize(
    ("function", "dims"), [(F.dropout1d, 3), (F.dropout2d, 4), (F.dropout3d, 5)]
)
def test_dropout_takes_whole_channels(function, dims):
    torch.manual_seed(0)
    out = function(torch.ones(8, 64, *[2] * (dims - 2)), p=0.25).flatten(2)
    assert torch.equal(out.amin(2), out.amax(2))
    kept = out[..., 0]
    assert_close(kept[kept != 0], torch.full((int((kept != 0).sum()),), 4 / 3))
    assert 0.65 < (kept != 0).float().mean() < 0.85
    x = torch.ones(2, 3, *[2] * (dims - 2))
    assert torch.equal(function(x, training=False), x)


def test_old_names_of_interpolation():
    x = torch.arange(4.0).reshape(1, 1, 2, 2)
    with pytest.warns(UserWarning, match="deprecated"):
        near = F.upsample_nearest(x, scale_factor=2)
        smooth = F.upsample_bilinear(x, size=(3, 3))
        plain = F.upsample(x, scale_factor=2, mode="nearest")
    assert near[0, 0, 0].tolist() == [0, 0, 1, 1] and torch.equal(near, plain)
    assert smooth[0, 0].tolist() == [[0, 0.5, 1], [1, 1.5, 2], [2, 2.5, 3]]


def test_multi_head_attention_is_what_the_layer_computes():
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(4, 2)
    x = torch.randn(3, 2, 4)
    out, weights = F.multi_head_attention_forward(
        x, x, x, 4, 2, layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0,
        layer.out_proj.weight, layer.out_proj.bias,
    )  # fmt: skip
    expected, expected_weights = layer(x, x, x)
    assert_close(out, expected)
    assert_close(weights, expected_weights)
    with nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        assert_close(layer(x, x, x)[0], expected)


def test_masks_of_flexible_attention_combine():
    flex = __import__("rushlight.nn.attention.flex_attention", fromlist=["x"])

    def causal(b, h, q, kv):
        return q >= kv

    def close(b, h, q, kv):
        return (q - kv).abs() <= 1

    q, kv = torch.arange(3)[:, None], torch.arange(3)
    here = torch.tensor(0)
    both = flex.and_masks(causal, close)(here, here, q, kv)
    assert both.tolist() == [[True, False, False], [True, True, False], [False, True, True]]
    either = flex.or_masks(causal, close)(here, here, q, kv)
    assert either.tolist() == [[True, True, False], [True, True, True], [True, True, True]]
    assert bool(flex.noop_mask(here, here, q, kv).all())


# ---- around modules ----


def test_parameters_as_one_vector():
    model = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(model.parameters())
    assert vector.shape == (9,) and torch.equal(vector[:6].view(3, 2), model.weight)
    nn.utils.vector_to_parameters(torch.arange(9.0), model.parameters())
    assert model.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and model.bias.tolist() == [6, 7, 8]


def test_modules_without_their_initialisation():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    layer = nn.utils.skip_init(nn.Linear, 3, 2, dtype=torch.float64)
    assert torch.equal(torch.get_rng_state(), state)
    assert layer.weight.shape == (2, 3) and layer.weight.dtype is torch.float64
    assert nn.factory_kwargs({"dtype": torch.half}) == {"dtype": torch.half}
    with pytest.raises(TypeError, match="unexpected kwargs"):
        nn.factory_kwargs({"size": 3})


def test_fusion_of_a_linear_layer_and_its_normalisation():
    torch.manual_seed(0)
    linear, norm = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4)
    norm(torch.randn(32, 4) * 3 + 1)
    norm.eval()
    x = torch.randn(5, 3)
    fused = nn.utils.fuse_linear_bn_eval(linear, norm)
    assert_close(fused(x), norm(linear(x)))
    weight, bias = nn.utils.fuse_linear_bn_weights(
        linear.weight, linear.bias, norm.running_mean, norm.running_var, norm.eps,
        norm.weight, norm.bias,
    )  # fmt: skip
    assert_close(F.linear(x, weight, bias), fused(x))


def test_spectral_norm_of_old_is_put_on_and_taken_off():
    torch.manual_seed(0)
    layer = nn.utils.spectral_norm(nn.Linear(4, 3), n_power_iterations=20)
    layer(torch.ones(1, 4))
    assert_close(torch.linalg.matrix_norm(layer.weight, 2), torch.tensor(1.0), rtol=1e-3, atol=0)
    assert "weight_orig" in layer.state_dict()
    state = layer.state_dict()
    assert state._metadata[""]["spectral_norm"] == {"weight.version": 1}
    nn.utils.remove_spectral_norm(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    assert "spectral_norm" not in layer.state_dict()._metadata[""]


def test_spectral_norm_reads_states_that_old_versions_wrote():
    layer, twin = (nn.utils.spectral_norm(nn.Conv2d(3, 4, 2)) for _ in range(2))
    x = torch.randn(2, 3, 5, 5)
    layer(x)
    state = layer.state_dict()
    del state._metadata[""]["spectral_norm"]
    twin.load_state_dict(state)  # one without its version is read as it is
    assert_close(twin.eval()(x), layer.eval()(x))
    del state["weight_v"]  # which was added in the version 1
    state["weight"] = layer.weight.detach()
    twin.load_state_dict(state)
    for mode in (False, True, True, False):
        assert_close(twin.train(mode)(x), layer.train(mode)(x), rtol=1e-4, atol=1e-5)
    state = layer.state_dict()
    del state._metadata[""]["spectral_norm"], state["weight_v"]
    with pytest.raises(RuntimeError, match="Missing key"):
        twin.load_state_dict(state)


def test_clip_grad_norm_by_its_old_name():
    p = nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([3.0, 4.0])
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        assert nn.utils.clip_grad_norm([p], 1.0).item() == 5
    assert_close(p.grad, torch.tensor([0.6, 0.8]))


def test_the_memory_format_of_convolutions():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(2, 2))
    nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)
    assert model[0].weight.is_contiguous(memory_format=torch.channels_last)


def test_prefixes_of_states_are_dropped():
    state = nn.Sequential(nn.Linear(1, 1)).state_dict(prefix="module.")
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"]
    nn.Sequential(nn.Linear(1, 1)).load_state_dict(state)


def test_cross_map_response_norm():
    x = torch.tensor([[1.0, 2.0, 3.0]]).reshape(1, 3, 1, 1)
    out = nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0, k=1.0)(x)
    assert_close(out.flatten(), torch.tensor([1 / 6, 2 / 15, 3 / 14]))


def test_batch_norm_over_one_process():
    torch.manual_seed(0)
    x = torch.randn(6, 3, 4)
    plain = nn.BatchNorm1d(3)
    with pytest.raises((RuntimeError, ValueError)):
        nn.SyncBatchNorm(3)(x[:, 0, 0])
    shared = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(copy.deepcopy(plain)))[0]
    assert isinstance(shared, nn.SyncBatchNorm)
    assert sorted(shared.state_dict()) == sorted(plain.state_dict())


def test_data_parallel_on_this_machine():
    inner = nn.Linear(2, 2)
    model = nn.DataParallel(inner)
    x = torch.ones(3, 2)
    assert torch.equal(model(x), inner(x)) and model.module is inner


# ---- hooks of all modules ----


def test_hooks_of_all_modules_see_gradients():
    seen = []
    module = nn.modules.module
    handles = [
        module.register_module_full_backward_pre_hook(lambda m, g: seen.append("before")),
        module.register_module_full_backward_hook(lambda m, i, o: seen.append("after")),
    ]
    try:
        nn.Linear(2, 1)(torch.ones(1, 2, requires_grad=True)).sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["before", "after"]
    with pytest.raises(RuntimeError, match="regular backward hooks and full backward hooks"):
        module.register_module_backward_hook(lambda m, i, o: None)


# ---- pruning ----


def test_pruning():
    torch.manual_seed(0)
    layer = nn.Linear(4, 4)
    assert not prune.is_pruned(layer)
    prune.random_unstructured(layer, "weight", 0.25)
    assert prune.is_pruned(layer) and (layer.weight == 0).sum() == 4
    prune.remove(layer, "weight")
    assert not prune.is_pruned(layer) and (layer.weight == 0).sum() == 4
    layer = prune.random_structured(nn.Linear(4, 4), "weight", 2, dim=0)
    assert (layer.weight == 0).all(1).sum() == 2
    layer = prune.identity(nn.Linear(4, 4), "weight")
    assert (layer.weight != 0).all() and bool(layer.weight_mask.all())
    mask = torch.eye(4)
    layer = prune.custom_from_mask(nn.Linear(4, 4), "weight", mask)
    assert torch.equal(layer.weight != 0, mask.bool())
    assert isinstance(prune.CustomFromMask(mask), prune.BasePruningMethod)
    large, small = nn.Linear(4, 4), nn.Linear(4, 4)
    with torch.no_grad():
        small.weight.mul_(1e-3)
    prune.global_unstructured(
        [(large, "weight"), (small, "weight")], prune.L1Unstructured, amount=16
    )
    assert (small.weight == 0).all() and (large.weight != 0).all()
