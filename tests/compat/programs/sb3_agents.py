"""Agents that learn for a few hundred steps."""
# packages: stable_baselines3 gymnasium
# cases: PPO A2C DQN SAC TD3 DDPG

import sys
import tempfile

import stable_baselines3
import torch
from shown import show
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

torch.set_num_threads(1)
name = sys.argv[1]
Agent = getattr(stable_baselines3, name)
env = make_vec_env(
    "CartPole-v1" if name in ("PPO", "A2C", "DQN") else "Pendulum-v1", n_envs=1, seed=0
)
options = {
    "PPO": dict(n_steps=64, batch_size=32, n_epochs=2),
    "A2C": {},
    "DQN": dict(learning_starts=50),
}.get(name, dict(learning_starts=50, batch_size=32))
agent = Agent(
    "MlpPolicy", env, seed=0, device="cpu", policy_kwargs=dict(net_arch=[16, 16]), **options
)
agent.learn(200)
observation = env.reset()
print("acts", agent.predict(observation, deterministic=True)[0].shape)
show("weights", next(agent.policy.parameters()))
with tempfile.TemporaryDirectory() as folder:
    agent.save(folder + "/agent")
    again = Agent.load(folder + "/agent", device="cpu")
show(
    "same",
    bool(
        (
            again.predict(observation, deterministic=True)[0]
            == agent.predict(observation, deterministic=True)[0]
        ).all()
    ),
)
mean, _ = evaluate_policy(agent, env, n_eval_episodes=1)
print("evaluated")
