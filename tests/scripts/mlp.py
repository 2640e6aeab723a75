"""A multilayer perceptron that classifies points."""
import argparse
import json

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class MLP(nn.Module):
    def __init__(self, width=16, classes=3):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.BatchNorm1d(width), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.layers(x))


def prepare(path):
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
    state = {f"model.{k}": v.numpy() for k, v in MLP().state_dict().items()}
    np.savez(path, x=x.numpy(), y=y.numpy(), **state)


def train(data, optimizer_name, settings):
    model = MLP()
    model.load_state_dict({k[6:]: torch.from_numpy(data[k].copy()) for k in data.files if k.startswith("model.")})
    optimizer = getattr(optim, optimizer_name)(model.parameters(), **settings)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.5)
    loader = DataLoader(TensorDataset(torch.from_numpy(data["x"]), torch.from_numpy(data["y"])), batch_size=16)
    losses = []
    while len(losses) < 20:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
    with torch.no_grad():
        model.eval()
        losses.append(F.cross_entropy(model(torch.from_numpy(data["x"])), torch.from_numpy(data["y"])).item())
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--optimizers", type=json.loads, default={})
    args = parser.parse_args()
    if args.prepare:
        prepare(args.file)
    data = np.load(args.file)
    print(json.dumps({name: train(data, name, settings) for name, settings in args.optimizers.items()}))
