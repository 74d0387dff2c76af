"""Explanations: shap, lime."""
# packages: shap lime

import warnings

import lime.lime_tabular
import numpy
import shap
import torch
from shown import show
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(0)
numpy.random.seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 4, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Dropout(),
    nn.Flatten(),
    nn.Linear(36, 8),
    nn.Tanh(),
    nn.Linear(8, 3),
).eval()
background, x = torch.randn(10, 1, 8, 8), torch.randn(2, 1, 8, 8)
for make in (shap.DeepExplainer, shap.GradientExplainer):
    numpy.random.seed(0)
    options = {} if make is shap.DeepExplainer else dict(nsamples=10, rseed=0)
    values = make(model, background).shap_values(x, **options)
    show(make.__name__, torch.as_tensor(numpy.asarray(values)))


def probabilities(rows):
    with torch.no_grad():
        return (
            model(torch.as_tensor(rows, dtype=torch.float32).view(-1, 1, 8, 8)).softmax(1).numpy()
        )


explainer = lime.lime_tabular.LimeTabularExplainer(background.view(10, 64).numpy(), random_state=0)
found = explainer.explain_instance(
    x[0].flatten().numpy(), probabilities, num_features=3, num_samples=50
)
show("lime", float(sum(abs(v) for _, v in found.as_list())))
kernel = shap.KernelExplainer(probabilities, background.view(10, 64).numpy())
show(
    "kernel",
    torch.as_tensor(kernel.shap_values(x[0].flatten().numpy(), nsamples=100, silent=True))
    .abs()
    .sum(),
)
