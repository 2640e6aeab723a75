"""A variational autoencoder; its noise comes from the file, so that every run has the same."""
import argparse
import json

import numpy as np
import torch
import torch.utils.data
from torch import nn, optim
from torch.distributions import Independent, Normal, kl_divergence
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, pixels=20, hidden=12, latent=3):
        super().__init__()
        self.fc1 = nn.Linear(pixels, hidden)
        self.mean, self.log_variance = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.Softplus(), nn.Linear(hidden, pixels))

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.mean(h), self.log_variance(h)

    def reparameterize(self, mu, logvar, noise):
        std = torch.exp(0.5 * logvar)
        return mu + noise * std

    def forward(self, x, noise):
        mu, logvar = self.encode(x)
        return torch.sigmoid(self.decoder(self.reparameterize(mu, logvar, noise))), mu, logvar


def loss_function(recon, x, mu, logvar):
    likelihood = F.binary_cross_entropy(recon, x, reduction="sum")
    posterior = Independent(Normal(mu, torch.exp(0.5 * logvar)), 1)
    prior = Independent(Normal(torch.zeros_like(mu), torch.ones_like(mu)), 1)
    return (likelihood + kl_divergence(posterior, prior).sum()) / x.size(0)


def prepare(path):
    torch.manual_seed(4)
    state = {f"model.{k}": v.numpy() for k, v in VAE().state_dict().items()}
    np.savez(path, images=torch.rand(30, 20).round().numpy(), noise=torch.randn(20, 30, 3).numpy(), **state)


def train(data, optimizer_name, settings):
    model = VAE()
    model.load_state_dict({k[6:]: torch.from_numpy(data[k].copy()) for k in data.files if k.startswith("model.")})
    optimizer = getattr(optim, optimizer_name)(model.parameters(), **settings)
    images, noise = torch.from_numpy(data["images"]), torch.from_numpy(data["noise"])
    losses = []
    model.train()
    for step in range(20):
        optimizer.zero_grad()
        recon, mu, logvar = model(images, noise[step])
        loss = loss_function(recon, images, mu, logvar)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
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
