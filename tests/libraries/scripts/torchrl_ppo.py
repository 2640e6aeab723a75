"""Learns to hold a pendulum by PPO for some rounds: rollouts, advantages, a replay buffer, the clipped loss."""
import torch
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import CatTensors, Compose, PendulumEnv, TransformedEnv, UnsqueezeTransform
from torchrl.modules import MLP, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

torch.manual_seed(0)
STATE, SETTINGS = ["th", "thdot"], {"num_cells": [16], "activation_class": torch.nn.Tanh}
env = TransformedEnv(PendulumEnv(seed=0), Compose(
    UnsqueezeTransform(dim=-1, in_keys=STATE, in_keys_inv=STATE),
    CatTensors(in_keys=STATE, out_key="observation", dim=-1, del_keys=False)))
policy = torch.nn.Sequential(MLP(in_features=2, out_features=2, **SETTINGS), NormalParamExtractor())
actor = ProbabilisticActor(TensorDictModule(policy, ["observation"], ["loc", "scale"]), in_keys=["loc", "scale"],
                           distribution_class=TanhNormal, distribution_kwargs={"low": -2.0, "high": 2.0},
                           return_log_prob=True, spec=env.action_spec)
critic = ValueOperator(MLP(in_features=2, out_features=1, **SETTINGS), in_keys=["observation"])
advantage = GAE(gamma=0.95, lmbda=0.9, value_network=critic)
objective = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.01)
optimizer = torch.optim.Adam(objective.parameters(), lr=3e-3)
buffer = ReplayBuffer(storage=LazyTensorStorage(80), sampler=SamplerWithoutReplacement(), batch_size=40)

rewards, losses = [], []
for _ in range(3):
    with torch.no_grad():
        start = env.reset(env.gen_params(batch_size=[8]))
        data = env.rollout(10, actor, auto_reset=False, tensordict=start)
        advantage(data)
    rewards.append(data["next", "reward"].mean())
    buffer.extend(data.reshape(-1).exclude("params", ("next", "params")))
    for batch in buffer:
        loss = sum(value for key, value in objective(batch).items() if key.startswith("loss_"))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(objective.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
torch.testing.assert_close(torch.stack(rewards), torch.tensor([-5.056618, -6.002012, -7.365527]), rtol=1e-4, atol=0)
expected = torch.tensor([42.35662, 39.85056, 50.19821, 49.61715, 62.15895, 57.58544])
torch.testing.assert_close(torch.stack(losses), expected, rtol=1e-4, atol=0)
