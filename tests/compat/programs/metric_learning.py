"""Losses of metric learning, with miners and reducers."""
# packages: pytorch_metric_learning

import torch
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers
from shown import show

torch.manual_seed(0)
labels = torch.arange(16) % 4
for make in (
    lambda: losses.TripletMarginLoss(), lambda: losses.ContrastiveLoss(), lambda: losses.NTXentLoss(),
    lambda: losses.ArcFaceLoss(4, 8), lambda: losses.CircleLoss(), lambda: losses.MultiSimilarityLoss(),
    lambda: losses.ProxyAnchorLoss(4, 8), lambda: losses.SupConLoss(), lambda: losses.NPairsLoss(),
    lambda: losses.LiftedStructureLoss(), lambda: losses.AngularLoss(), lambda: losses.FastAPLoss(),
    lambda: losses.CosFaceLoss(4, 8), lambda: losses.SoftTripleLoss(4, 8), lambda: losses.MarginLoss(),
    lambda: losses.TripletMarginLoss(distance=distances.CosineSimilarity(), reducer=reducers.ThresholdReducer(low=0), embedding_regularizer=regularizers.LpRegularizer()),
):  # fmt: skip
    torch.manual_seed(1)
    loss = make()
    x = torch.randn(16, 8, requires_grad=True)
    value = loss(x, labels)
    value.backward()
    show(type(loss).__name__, value)
    show("gradient", x.grad)
for miner in (
    miners.MultiSimilarityMiner(),
    miners.TripletMarginMiner(),
    miners.BatchHardMiner(),
    miners.PairMarginMiner(),
):
    found = miner(x.detach(), labels)
    print(type(miner).__name__, [len(f) for f in found])
