"""Gaussian processes: exact, variational, deep kernels, multitask."""
# packages: gpytorch
# cases: exact variational multitask kernels deep

import math
import sys

import gpytorch
import torch
from shown import show, train

torch.manual_seed(0)
x = torch.linspace(0, 1, 40)
y = torch.sin(x * 2 * math.pi) + 0.1 * torch.randn(40)
K = gpytorch.kernels


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, kernel, tasks=0):
        super().__init__(x, y, likelihood)
        mean = gpytorch.means.ConstantMean()
        self.mean = gpytorch.means.MultitaskMean(mean, tasks) if tasks else mean
        self.kernel = K.MultitaskKernel(kernel, num_tasks=tasks) if tasks else K.ScaleKernel(kernel)
        self.tasks = tasks

    def forward(self, x):
        D = gpytorch.distributions
        kind = D.MultitaskMultivariateNormal if self.tasks else D.MultivariateNormal
        return kind(self.mean(x), self.kernel(x))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points):
        q = gpytorch.variational.CholeskyVariationalDistribution(points.size(0))
        super().__init__(
            gpytorch.variational.VariationalStrategy(self, points, q, learn_inducing_locations=True)
        )
        self.mean = gpytorch.means.LinearMean(1)
        self.kernel = K.ScaleKernel(K.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))


case = sys.argv[1]
likelihood = gpytorch.likelihoods.GaussianLikelihood()
if case == "variational":
    model = Variational(torch.linspace(0, 1, 8)[:, None])
    loss = gpytorch.mlls.VariationalELBO(likelihood, model, 40)
    xs = x[:, None]
elif case == "multitask":
    y = torch.stack([y, y.cos()], -1)
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
    model, xs = Exact(x, y, likelihood, K.RBFKernel(), 2), x
    loss = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
elif case == "deep":

    class Warped(Exact):
        def __init__(self, *args):
            super().__init__(*args)
            self.net = torch.nn.Sequential(
                torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
            )

        def forward(self, x):
            return super().forward(self.net(x))

    xs = x[:, None]
    model = Warped(xs, y, likelihood, K.RBFKernel())
    loss = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
else:
    kernel = (
        K.RBFKernel()
        if case == "exact"
        else K.MaternKernel(1.5) + K.PeriodicKernel() * K.LinearKernel() + K.RQKernel()
    )
    model, xs = Exact(x, y, likelihood, kernel), x
    loss = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
model.train(), likelihood.train()
train(model, lambda: -loss(model(xs), y).sum(), lr=0.05, steps=5)
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    predicted = likelihood(
        model(torch.linspace(0, 1, 7) if xs.dim() == 1 else torch.linspace(0, 1, 7)[:, None])
    )
    show("mean", predicted.mean)
    show("variance", predicted.variance)
    lower, upper = predicted.confidence_region()
    show("lower", lower)
model.load_state_dict(model.state_dict())
