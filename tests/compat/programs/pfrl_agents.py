"""Agents of pfrl on gymnasium's pole."""
# packages: pfrl gymnasium

import numpy
import pfrl
import torch
from shown import show
from torch import nn

pfrl.utils.set_random_seed(0)
rng = numpy.random.default_rng(0)
network = nn.Sequential(
    nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2), pfrl.q_functions.DiscreteActionValueHead()
)
agent = pfrl.agents.DoubleDQN(
    network,
    torch.optim.Adam(network.parameters(), eps=1e-2),
    pfrl.replay_buffers.ReplayBuffer(capacity=1000),
    0.9,
    pfrl.explorers.ConstantEpsilonGreedy(0.3, random_action_func=lambda: int(rng.integers(2))),
    replay_start_size=32,
    update_interval=1,
    target_update_interval=10,
    phi=lambda x: x.astype(numpy.float32),
    gpu=-1,
)
for episode in range(3):
    observation = rng.normal(size=4)
    for step in range(20):
        agent.act(observation)
        observation = rng.normal(size=4)
        agent.observe(observation, float(rng.normal()), step == 19, False)
show("dqn", network[0].weight)
for name, value in agent.get_statistics():
    show(name, float(value))
policy = nn.Sequential(
    nn.Linear(4, 16),
    nn.Tanh(),
    nn.Linear(16, 2),
    pfrl.policies.GaussianHeadWithStateIndependentCovariance(
        action_size=2, var_type="diagonal", var_func=lambda x: torch.exp(2 * x), var_param_init=0
    ),
)
value = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
model = pfrl.nn.Branched(policy, value)
ppo = pfrl.agents.PPO(
    model,
    torch.optim.Adam(model.parameters(), lr=1e-3),
    update_interval=32,
    minibatch_size=8,
    epochs=2,
)
torch.manual_seed(0)
for step in range(70):
    observation = rng.normal(size=4).astype("float32")
    ppo.act(observation)
    ppo.observe(rng.normal(size=4).astype("float32"), float(rng.normal()), step % 10 == 9, False)
show("ppo", policy[0].weight)
