"""Bayesian optimisation."""
# packages: botorch

import warnings

import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    UpperConfidenceBound,
)
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood

warnings.simplefilter("ignore")
torch.manual_seed(0)
torch.set_default_dtype(torch.double)
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
x = torch.rand(10, 2)
y = -(x - 0.3).square().sum(-1, keepdim=True)
model = SingleTaskGP(x, y, input_transform=Normalize(2), outcome_transform=Standardize(1))
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
posterior = model.posterior(torch.tensor([[0.3, 0.3], [0.9, 0.9]]))
print("mean", [round(v, 3) for v in posterior.mean.flatten().tolist()])
print("sobol", draw_sobol_samples(bounds, 2, 1, seed=0).shape)
for acquisition in (LogExpectedImprovement(model, y.max()), UpperConfidenceBound(model, 2.0)):
    candidate, value = optimize_acqf(acquisition, bounds, q=1, num_restarts=2, raw_samples=16)
    print(type(acquisition).__name__, [round(v, 1) for v in candidate.flatten().tolist()])
