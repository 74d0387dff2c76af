"""Probabilistic programs: variational inference, Monte Carlo, flows, enumeration."""
# packages: pyro
# cases: svi nuts autoguide flows enumerate

import sys

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from shown import show

pyro.set_rng_seed(0)
pyro.clear_param_store()
data = torch.randn(30) * 0.5 + 2.0


def model(data):
    mu = pyro.sample("mu", dist.Normal(0.0, 5.0))
    sigma = pyro.sample("sigma", dist.HalfNormal(2.0))
    with pyro.plate("data", len(data)):
        pyro.sample("x", dist.Normal(mu, sigma), obs=data)


def guide(data):
    m = pyro.param("m", torch.tensor(0.0))
    s = pyro.param("s", torch.tensor(1.0), constraint=dist.constraints.positive)
    pyro.sample("mu", dist.Normal(m, s))
    pyro.sample("sigma", dist.LogNormal(pyro.param("ls", torch.tensor(0.0)), 0.1))


case = sys.argv[1]
if case in ("svi", "autoguide"):
    from pyro.infer.autoguide import AutoMultivariateNormal

    used = guide if case == "svi" else AutoMultivariateNormal(model)
    svi = SVI(model, used, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO())
    for _ in range(20):
        loss = svi.step(data)
    show("loss", float(loss))
    for name, value in sorted(pyro.get_param_store().items()):
        show(name, value)
    show("predicted", Predictive(model, guide=used, num_samples=5)(data)["mu"])
elif case == "nuts":
    mcmc = MCMC(NUTS(model), num_samples=20, warmup_steps=10, disable_progbar=True)
    mcmc.run(data)
    mu = mcmc.get_samples()["mu"]
    print("mu", mu.shape, "near 2", bool(abs(mu.mean() - 2) < 0.4))
elif case == "flows":
    base = dist.Normal(torch.zeros(2), torch.ones(2))
    flow = dist.transforms.spline_coupling(2, count_bins=4)
    iaf = dist.transforms.affine_autoregressive(2, hidden_dims=[8])
    target = torch.randn(50, 2) @ torch.tensor([[1.0, 0.5], [0.0, 1.0]])
    made = dist.TransformedDistribution(base, [flow, iaf])
    parameters = [*flow.parameters(), *iaf.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        loss = -made.log_prob(target).mean()
        loss.backward()
        optimizer.step()
        made.clear_cache()
        show("loss", loss)
    show("draw", made.sample((3,)))
else:

    @config_enumerate
    def mixture(data):
        w = pyro.sample("w", dist.Dirichlet(torch.ones(2)))
        means = torch.tensor([0.0, 2.0])
        with pyro.plate("data", len(data)):
            k = pyro.sample("k", dist.Categorical(w))
            pyro.sample("x", dist.Normal(means[k], 1.0), obs=data)

    def point(data):
        pyro.sample(
            "w",
            dist.Delta(
                pyro.param("p", torch.ones(2) / 2, constraint=dist.constraints.simplex)
            ).to_event(1),
        )

    svi = SVI(mixture, point, pyro.optim.Adam({"lr": 0.05}), TraceEnum_ELBO(max_plate_nesting=1))
    for _ in range(5):
        show("loss", float(svi.step(data)))
    show("p", pyro.param("p"))
