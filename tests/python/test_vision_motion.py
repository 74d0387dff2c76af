"""Models of videos and of optical flow, and networks under the names of their quantised forms."""

import pytest

import rushlight as torch
from rushlight.vision import models
from rushlight.vision.models import quantization
from rushlight.vision.models.optical_flow import raft
from rushlight.vision.models.video import mvit, swin_transformer


def tiny_mvit(**settings):
    blocks = [
        mvit.MSBlockConfig(1, 8, 16, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 2, 2]),
        mvit.MSBlockConfig(2, 16, 16, [], [3, 3, 3], [], [1, 1, 1]),
    ]
    how = dict.fromkeys(["residual_pool", "rel_pos_embed", "proj_after_attn"], True)
    how["residual_with_cls_embed"] = True
    return mvit.MViT((16, 24), 4, blocks, num_classes=2, dropout=0.0, **{**how, **settings})


def tiny_swin():
    return swin_transformer.SwinTransformer3d(
        *([2, 4, 4], 16, [2, 1], [1, 2], [2, 2, 2]), num_classes=2, stochastic_depth_prob=0.0
    )


@pytest.mark.parametrize(
    "make", [tiny_mvit, lambda: tiny_mvit(rel_pos_embed=False), tiny_swin], ids=str
)
def test_networks_learn_which_way_a_square_goes(make):
    torch.manual_seed(6)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

    def videos(count):
        label = torch.arange(count) % 2
        x = torch.rand(count, 3, 4, 16, 24) * 0.1
        for i, goes_right in enumerate(label.tolist()):
            for frame in range(4):
                step = frame if goes_right else 3 - frame
                x[i, :, frame, 4:12, 4 * step : 4 * step + 8] = 1
        return x, label

    for _ in range(80):
        x, label = videos(8)
        loss = torch.nn.functional.cross_entropy(model(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x, label = videos(8)
    with torch.no_grad():
        assert (model.eval()(x).argmax(1) == label).all()


def test_scores_of_videos():
    with torch.no_grad():
        assert models.video.S3D(num_classes=3).eval()(torch.rand(1, 3, 13, 224, 224)).shape == (
            1,
            3,
        )
        # Videos that no patch or window fits, and images as videos of one frame.
        assert tiny_swin().eval()(torch.rand(2, 3, 3, 10, 13)).shape == (2, 2)
        single = tiny_mvit(patch_embed_stride=(1, 4, 4), residual_pool=False)
        single.pos_encoding.temporal_size = 1
        assert single.eval()(torch.rand(1, 3, 16, 24)).shape == (1, 2)
    assert models.list_models(models.video, include="swin*") == ["swin3d_b", "swin3d_s", "swin3d_t"]
    with pytest.raises(ValueError, match="configuration parameter can't be empty"):
        mvit.MViT((16, 16), 4, [], False, False, False, False)


def test_trained_sizes():
    for name in ("mvit_v1_b", "mvit_v2_s", "swin3d_t", "s3d", "raft_small"):
        count = sum(p.numel() for p in models.get_model(name).parameters())
        assert count == models.get_model_weights(name).DEFAULT.meta["num_params"], name


def tiny_raft(**parts):
    norm = torch.nn.InstanceNorm2d
    encoder = raft.FeatureEncoder(layers=(8, 8, 8, 8, 16), norm_layer=norm)
    context = raft.FeatureEncoder(layers=(8, 8, 8, 8, 24), norm_layer=None)
    corr = raft.CorrBlock(num_levels=2, radius=2)
    motion = raft.MotionEncoder(
        in_channels_corr=corr.out_channels, corr_layers=(8,), flow_layers=(8, 8), out_channels=10
    )
    unit = raft.RecurrentBlock(input_size=18, hidden_size=16, kernel_size=(3,), padding=(1,))
    head = raft.FlowHead(in_channels=16, hidden_size=16)
    step = raft.UpdateBlock(motion_encoder=motion, recurrent_block=unit, flow_head=head)
    return raft.RAFT(
        feature_encoder=encoder,
        context_encoder=context,
        corr_block=corr,
        update_block=step,
        **parts,
    )


@pytest.mark.parametrize("masked", [False, True])
def test_flow_is_learned(masked):
    torch.manual_seed(0)
    mask = raft.MaskPredictor(in_channels=16, hidden_size=16) if masked else None
    model = tiny_raft(mask_predictor=mask)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    right = torch.tensor([8.0, -8.0] * 2)

    def pairs():
        texture = torch.nn.functional.interpolate(torch.rand(4, 3, 16, 16), size=(64, 64))
        moved = [image.roll(int(by), 2) for image, by in zip(texture, right, strict=True)]
        return texture, torch.stack(moved)

    for _ in range(120):
        flows = model(*pairs(), num_flow_updates=2)
        wanted = torch.stack((right, torch.zeros(4)), 1).view(4, 2, 1, 1)
        loss = sum((flow - wanted).abs().mean() for flow in flows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert flows[0].shape == (4, 2, 64, 64)
    with torch.no_grad():
        flow = model(*pairs())[-1]
    assert (flow[:, 0].mean((1, 2)) * right > 8).all() and flow[:, 1].abs().mean() < 2


def test_flow_of_images_that_do_not_fit():
    model = models.optical_flow.raft_small()
    good = torch.rand(1, 3, 128, 128)
    for images, said in (
        ((good, good[..., :120]), "should have the same shape"),
        ((good[..., :124], good[..., :124]), "should be divisible by 8"),
        ((good[..., :64], good[..., :64]), "Feature maps are too small"),
    ):
        with pytest.raises(ValueError, match=said):
            model(*images)
    for make, said in (
        (lambda: raft.FeatureEncoder(layers=(8, 8)), "number of layers is 5"),
        (lambda: raft.MotionEncoder(in_channels_corr=8, flow_layers=(8,)), "flow_layers is 2"),
        (lambda: raft.MotionEncoder(in_channels_corr=8, corr_layers=()), "should be 1 or 2"),
        (
            lambda: raft.RecurrentBlock(input_size=8, hidden_size=8, padding=(1,)),
            "same length as padding",
        ),
        (
            lambda: raft.CorrBlock().build_pyramid(good, good[..., :64]),
            "should have the same shape",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            make()
    own = raft.CorrBlock(radius=3)
    assert models.optical_flow.raft_small(corr_block=own).corr_block is own


@pytest.mark.parametrize(
    "name", ["resnet18", "mobilenet_v2", "mobilenet_v3_large", "shufflenet_v2_x0_5"]
)
def test_networks_that_can_be_quantised(name):
    model = getattr(quantization, name)(num_classes=3)
    assert type(model).__name__.startswith("Quantizable")
    with pytest.raises(RuntimeError, match="call eval"):
        model.fuse_model()
    model.eval()
    for layer in model.modules():  # statistics that are not 0 and 1
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.running_mean.uniform_(-0.1, 0.1)
            layer.running_var.uniform_(0.5, 2)
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        before = model(x)
        model.fuse_model()
        torch.testing.assert_close(model(x), before, rtol=1e-3, atol=1e-4)
    assert not any(isinstance(layer, torch.nn.BatchNorm2d) for layer in model.modules())
    with pytest.raises(NotImplementedError, match="knows of quantisation"):
        model.fuse_model(is_qat=True)
    with pytest.raises(NotImplementedError, match="quantised arithmetic is not supported"):
        models.get_model(f"quantized_{name}", quantize=True)
    weights = models.get_model_weights(f"quantized_{name}")
    assert weights.DEFAULT.meta["unquantized"].name.startswith("IMAGENET1K_V")


@pytest.mark.parametrize("make", [tiny_mvit, tiny_swin, lambda: models.video.r3d_18(num_classes=2)])
def test_features_of_videos(make):
    model = make().eval()
    name = "norm" if hasattr(model, "norm") else "layer4"
    maps = models.feature_extraction.create_feature_extractor(model, {name: "last"})
    seen = []
    getattr(model, name).register_forward_hook(lambda m, x, out: seen.append(out))
    x = torch.rand(1, 3, 4, 16, 24)
    with torch.no_grad():
        model(x)
        torch.testing.assert_close(maps(x)["last"], seen[0])
