"""Normalising flows of zuko."""
# packages: zuko

import torch
import zuko
from shown import show, train

torch.manual_seed(0)
x = torch.randn(16, 4)
c = torch.randn(16, 3)
for make in (
    zuko.flows.MAF,
    zuko.flows.NSF,
    zuko.flows.NICE,
    zuko.flows.GMM,
    zuko.flows.NAF,
    zuko.flows.UNAF,
    zuko.flows.CNF,
    zuko.flows.SOSPF,
    zuko.flows.BPF,
    zuko.flows.GF,
    zuko.flows.NCSF,
    zuko.flows.RealNVP,
):
    torch.manual_seed(0)
    options = {} if make is zuko.flows.CNF else {"transforms": 2}
    if make is zuko.flows.GMM:
        options = {"components": 3}
    else:
        options["hidden_features"] = (16,)
    flow = make(4, 3, **options)
    torch.manual_seed(1)
    train(flow, lambda: -flow(c).log_prob(x / 4).mean())
    if make not in (zuko.flows.NAF, zuko.flows.UNAF):
        torch.manual_seed(2)
        show(make.__name__, flow(c).sample())
