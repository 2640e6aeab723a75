"""Learns to swing a pendulum by PPO for some rounds: rollout, advantages, replay buffer, clipped loss."""
import torch
from tensordict.nn import NormalParamExtractor, TensorDictModule
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import CatTensors, Compose, PendulumEnv, TransformedEnv, UnsqueezeTransform
from torchrl.modules import MLP, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

torch.manual_seed(0)
env = TransformedEnv(PendulumEnv(seed=0), Compose(
    UnsqueezeTransform(dim=-1, in_keys=["th", "thdot"], in_keys_inv=["th", "thdot"]),
    CatTensors(in_keys=["th", "thdot"], out_key="observation", dim=-1, del_keys=False)))
net = torch.nn.Sequential(MLP(in_features=2, out_features=2, num_cells=[16], activation_class=torch.nn.Tanh), NormalParamExtractor())
actor = ProbabilisticActor(TensorDictModule(net, ["observation"], ["loc", "scale"]), in_keys=["loc", "scale"],
                           out_keys=["action"], distribution_class=TanhNormal, distribution_kwargs={"low": -2.0, "high": 2.0},
                           return_log_prob=True, spec=env.action_spec)
