"""Architectures by name, their weights' data, pretrained files, and maps from the middle of models."""

import pytest

import rushlight as torch
from rushlight.vision import models
from rushlight.vision.models import _api, _utils, feature_extraction

SIZES = {"alexnet": 63, "inception_v3": 75, "vit_b_32": 224, "maxvit_t": 224}


def small(name, **settings):
    if name in ("googlenet", "inception_v3"):
        settings["init_weights"] = False
    return models.get_model(name, num_classes=7, **settings)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "alexnet",
            "resnet18",
            "squeezenet1_1",
            "densenet121",
            "googlenet",
            "inception_v3",
            "mobilenet_v2",
        ),
        *(
            "mobilenet_v3_small",
            "shufflenet_v2_x0_5",
            "mnasnet0_5",
            "efficientnet_b0",
            "regnet_y_400mf",
        ),
        *("convnext_tiny", "swin_t", "swin_v2_t", "maxvit_t"),
    ],
)
def test_scores(name):
    size = SIZES.get(name, 64)
    with torch.no_grad():
        scores = small(name).eval()(torch.rand(1, 3, size, size))
    assert scores.shape == (1, 7) and scores.isfinite().all()


def test_more_heads_in_training():
    names = {
        "googlenet": ("logits", "aux_logits2", "aux_logits1"),
        "inception_v3": ("logits", "aux_logits"),
    }
    for name, fields in names.items():
        out = small(name).train()(
            torch.rand(
                2, 3, 224 if name == "googlenet" else 299, 224 if name == "googlenet" else 299
            )
        )
        assert out._fields == fields and all(part.shape == (2, 7) for part in out)


def test_registry():
    assert (
        "resnet50" in models.list_models()
        and models.get_model_builder("ResNet50") is models.resnet50
    )
    assert models.list_models(include="vgg*", exclude="*_bn") == [
        "vgg11",
        "vgg13",
        "vgg16",
        "vgg19",
    ]
    assert "resnet50" in models.list_models(module=models)
    with pytest.raises(ValueError, match="Unknown model nothing"):
        models.get_model("nothing")

    @_api.register_model("test_of_registering")
    def mine(weights: models.ResNet18_Weights | None = None):
        return torch.nn.Linear(1, 1)

    try:
        assert isinstance(models.get_model("test_of_registering"), torch.nn.Linear)
        assert models.get_model_weights(mine) is models.ResNet18_Weights
        with pytest.raises(ValueError, match="already registered"):
            _api.register_model("test_of_registering")(mine)
    finally:
        del _api._BUILDERS["test_of_registering"]


def test_weights():
    weights = models.ResNet50_Weights
    assert (
        models.get_model_weights("resnet50") is weights is models.get_model_weights(models.resnet50)
    )
    assert models.get_weight("ResNet50_Weights.IMAGENET1K_V2") is weights.DEFAULT
    assert weights.verify("IMAGENET1K_V1") is weights.verify("ResNet50_Weights.IMAGENET1K_V1")
    assert repr(weights.DEFAULT) == "ResNet50_Weights.IMAGENET1K_V2"
    meta = weights.IMAGENET1K_V1.meta
    assert meta["num_params"] == sum(p.numel() for p in models.resnet50().parameters())
    assert len(meta["categories"]) == 1000 and meta["categories"][0] == "tench"
    with pytest.raises(TypeError, match="expected ResNet50_Weights but received ResNet18_Weights"):
        models.resnet50(weights=models.ResNet18_Weights.DEFAULT)
    with pytest.raises(KeyError):
        models.resnet50(weights="IMAGENET1K_V9")
    with pytest.raises(ValueError, match="Invalid weight name"):
        models.get_weight("ResNet50_Weights")
    with pytest.raises(ValueError, match="num_classes.* expected value 1000 but got 3"):
        models.resnet50(weights="DEFAULT", num_classes=3)


def test_trained_weights_are_loaded(monkeypatch):
    source = models.squeezenet1_1()
    asked = []

    def downloaded(url, *args, **kwargs):
        asked.append((url, kwargs))
        return source.state_dict()

    monkeypatch.setattr(_api, "load_state_dict_from_url", downloaded)
    model = models.squeezenet1_1(weights="DEFAULT", progress=False)
    assert asked == [
        (models.SqueezeNet1_1_Weights.DEFAULT.url, {"progress": False, "check_hash": True})
    ]
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), source.parameters(), strict=True)
    )
    with pytest.warns(UserWarning, match="'pretrained' is deprecated"):
        models.squeezenet1_1(pretrained=True)
    with pytest.warns(UserWarning, match="by position they are deprecated"):
        models.squeezenet1_1("DEFAULT")
    assert len(asked) == 3


def test_older_names_of_dense_layers(monkeypatch):
    source = models.densenet121()
    old = {
        k.replace(".norm1", ".norm.1").replace(".conv2", ".conv.2"): v
        for k, v in source.state_dict().items()
    }
    monkeypatch.setattr(_api, "load_state_dict_from_url", lambda *a, **k: old)
    model = models.densenet121(weights="DEFAULT")
    assert torch.equal(
        model.features.denseblock1.denselayer1.conv2.weight,
        source.features.denseblock1.denselayer1.conv2.weight,
    )


def test_further_heads_go_after_loading(monkeypatch):
    state = models.googlenet(init_weights=False).state_dict()
    monkeypatch.setattr(_api, "load_state_dict_from_url", lambda *a, **k: state)
    model = models.googlenet(weights="DEFAULT")
    assert model.aux1 is None and model.transform_input and not model.aux_logits
    assert models.googlenet(weights="DEFAULT", aux_logits=True).aux2 is not None


def test_embeddings_of_places_are_resampled():
    model = models.VisionTransformer(32, 8, 1, 2, 8, 16, num_classes=3)
    larger = models.VisionTransformer(48, 8, 1, 2, 8, 16, num_classes=3)
    state = models.vision_transformer.interpolate_embeddings(48, 8, model.state_dict())
    larger.load_state_dict(state)
    assert larger(torch.rand(1, 3, 48, 48)).shape == (1, 3)
    with pytest.raises(AssertionError, match="Wrong image height! Expected 48 but got 32"):
        larger(torch.rand(1, 3, 32, 32))


@pytest.mark.parametrize(
    "make",
    [
        lambda: models.SqueezeNet("2_0"),
        lambda: models.MNASNet(0.0),
        lambda: models.ResNet(
            models.resnet.BasicBlock, [1, 1, 1, 1], replace_stride_with_dilation=[True]
        ),
        lambda: models.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1], groups=2),
        lambda: models.MobileNetV2(inverted_residual_setting=[]),
        lambda: models.ShuffleNetV2([1, 1], [8, 8, 8, 8, 8]),
        lambda: models.MaxVit((65, 65), 8, 7, [8], [1], 8, 0.0),
    ],
)
def test_settings_that_do_not_fit(make):
    with pytest.raises(ValueError):
        make()


def test_features():
    model = models.resnet18()
    extractor = feature_extraction.create_feature_extractor(
        model, {"layer1": "a", "layer3.0.bn2": "b", "avgpool": "c"}
    )
    x = torch.rand(2, 3, 64, 64)
    for mode in (True, False):
        out = extractor.train(mode)(x)
        assert {k: tuple(v.shape) for k, v in out.items()} == {
            "a": (2, 64, 16, 16),
            "b": (2, 256, 4, 4),
            "c": (2, 512, 1, 1),
        }
    model.eval()
    with torch.no_grad():
        stem = model.maxpool(model.relu(model.bn1(model.conv1(x))))
        assert torch.equal(extractor.eval()(x)["a"], model.layer1(stem))
    assert not hasattr(extractor, "fc")
    with pytest.raises(ValueError, match="'layer9' is not present in model"):
        feature_extraction.create_feature_extractor(model, ["layer9"])
    with pytest.raises(ValueError, match="should be specified"):
        feature_extraction.create_feature_extractor(model)


def test_features_that_training_alone_has():
    model = small("googlenet")
    with pytest.warns(UserWarning, match="graphs of training and evaluation differ"):
        names = feature_extraction.get_graph_node_names(model)
    assert "aux1.fc2" in names[0] and "aux1.fc2" not in names[1]


def test_intermediate_layers():
    body = _utils.IntermediateLayerGetter(models.resnet18(), {"layer1": "0", "layer2": "1"})
    assert list(body) == ["conv1", "bn1", "relu", "maxpool", "layer1", "layer2"]
    out = body(torch.rand(1, 3, 32, 32))
    assert {k: tuple(v.shape) for k, v in out.items()} == {"0": (1, 64, 8, 8), "1": (1, 128, 4, 4)}
    with pytest.raises(ValueError, match="not present in model"):
        _utils.IntermediateLayerGetter(models.resnet18(), {"layer9": "0"})


def test_layers_of_vgg_by_their_channels():
    from rushlight.vision.models import vgg

    assert vgg.cfgs["A"] == [64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"]
    assert [len(vgg.cfgs[c]) for c in "BDE"] == [15, 18, 21]
    layers = vgg.make_layers([4, "M", 8], batch_norm=True)
    names = [type(layer).__name__ for layer in layers]
    one = ["Conv2d", "BatchNorm2d", "ReLU"]
    assert names == [*one, "MaxPool2d", *one] and layers[4].in_channels == 4
