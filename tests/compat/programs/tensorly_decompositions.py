"""Decompositions of tensorly over tensors."""
# packages: tensorly

import numpy
import tensorly
import torch
from shown import show
from tensorly import decomposition, regression

tensorly.set_backend("pytorch")
torch.manual_seed(0)
rng = numpy.random.RandomState(0)
x = tensorly.tensor(rng.rand(4, 5, 6))
show("backend", tensorly.norm(x))
weights, factors = decomposition.parafac(x, 3, init="svd", n_iter_max=20)
show("parafac", tensorly.cp_to_tensor((weights, factors)))
core, factors = decomposition.tucker(x, [2, 3, 3])
show("tucker", tensorly.tucker_to_tensor((core, factors)))
train = decomposition.tensor_train(x, [1, 3, 3, 1])
show("train", tensorly.tt_to_tensor(train))
show(
    "nonnegative",
    tensorly.cp_to_tensor(decomposition.non_negative_parafac(x, 2, init="svd", n_iter_max=10)),
)
show("robust", decomposition.robust_pca(x, n_iter_max=5)[0])
show("unfold", tensorly.unfold(x, 1))
show("kronecker", tensorly.tenalg.kronecker([x[0], x[1]]))
show("khatri_rao", tensorly.tenalg.khatri_rao([x[0], x[1]]))
learned = regression.CPRegressor(weight_rank=2, n_iter_max=5, random_state=0, verbose=0)
learned.fit(x, tensorly.tensor(rng.rand(4)))
show("regression", learned.predict(x))
