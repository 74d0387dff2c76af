"""A network in scikit-learn's clothes."""
# packages: skorch sklearn

import pickle
import tempfile

import numpy as np
import torch
from shown import show
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, EpochScoring, GradientNormClipping, LRScheduler
from torch import nn

torch.manual_seed(0)
x, y = make_classification(200, 10, n_informative=5, random_state=0)
x, y = x.astype(np.float32), y.astype(np.int64)


class Net(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x):
        return self.layers(x)


net = NeuralNetClassifier(
    Net, criterion=nn.CrossEntropyLoss, max_epochs=5, lr=0.1, iterator_train__shuffle=True, verbose=0,
    callbacks=[EpochScoring("roc_auc", lower_is_better=False), LRScheduler("StepLR", step_size=2), GradientNormClipping(1.0), EarlyStopping()],
)  # fmt: skip
net.fit(x, y)
show("score", net.score(x, y))
show("probabilities", torch.from_numpy(net.predict_proba(x)))
show("history", float(net.history[-1, "valid_loss"]))
with tempfile.TemporaryDirectory() as folder:
    net.save_params(folder + "/p.pt", folder + "/o.pt", f_history=folder + "/h.json")
    net.load_params(folder + "/p.pt")
    again = pickle.loads(pickle.dumps(net))
    show("again", again.score(x, y))
search = GridSearchCV(
    make_pipeline(
        StandardScaler(),
        NeuralNetClassifier(
            Net, criterion=nn.CrossEntropyLoss, verbose=0, train_split=False, max_epochs=3
        ),
    ),
    {"neuralnetclassifier__module__width": [4, 8]},
    cv=2,
    scoring="accuracy",
)
search.fit(x, y)
show("search", float(search.best_score_))
xr, yr = make_regression(100, 10, random_state=0)
regressor = NeuralNetRegressor(
    nn.Linear, module__in_features=10, module__out_features=1, lr=0.01, max_epochs=4, verbose=0
)
regressor.fit(xr.astype(np.float32), (yr / 100).astype(np.float32)[:, None])
show("r2", float(regressor.score(xr.astype(np.float32), (yr / 100).astype(np.float32)[:, None])))
