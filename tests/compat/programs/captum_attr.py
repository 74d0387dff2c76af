"""Attributions of a small network."""
# packages: captum

import numpy
import torch
from captum import attr
from shown import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(36, 8),
    nn.ReLU(),
    nn.Linear(8, 3),
).eval()
x = torch.randn(2, 1, 8, 8, requires_grad=True)
for make in (
    attr.Saliency,
    attr.IntegratedGradients,
    attr.InputXGradient,
    attr.DeepLift,
    attr.GuidedBackprop,
    attr.Deconvolution,
    attr.Occlusion,
    attr.FeatureAblation,
    attr.GradientShap,
    attr.DeepLiftShap,
    attr.ShapleyValueSampling,
    attr.KernelShap,
    attr.Lime,
    attr.FeaturePermutation,
):
    torch.manual_seed(1)
    numpy.random.seed(1)  # GradientShap draws with it
    options = {}
    if make is attr.Occlusion:
        options = dict(sliding_window_shapes=(1, 3, 3))
    if make in (attr.GradientShap, attr.DeepLiftShap):
        options = dict(baselines=torch.zeros(3, 1, 8, 8))
    if make in (attr.ShapleyValueSampling, attr.KernelShap, attr.Lime):
        options = dict(feature_mask=torch.arange(64).reshape(1, 1, 8, 8) // 16, n_samples=5)
    show(make.__name__, make(model).attribute(x, target=1, **options))
show("gradcam", attr.LayerGradCam(model, model[0]).attribute(x, target=1))
show("conductance", attr.LayerConductance(model, model[4]).attribute(x, target=1))
show("neuron", attr.NeuronGradient(model, model[4]).attribute(x, (2,)))
show(
    "noise", attr.NoiseTunnel(attr.Saliency(model)).attribute(x, nt_samples=3, stdevs=0.0, target=0)
)
show("layer", attr.LayerIntegratedGradients(model, model[0]).attribute(x, target=1, n_steps=5))
