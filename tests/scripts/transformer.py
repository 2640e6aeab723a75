"""A causal transformer block that predicts the next token."""
import argparse
import json
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x, mask):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, vocabulary=11, width=16, heads=4, length=8):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.zeros(1, length, width))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(2)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("mask", torch.triu(torch.full((length, length), float("-inf")), diagonal=1), persistent=False)

    def forward(self, tokens):
        n = tokens.shape[1]
        x = self.tokens(tokens) * math.sqrt(self.tokens.embedding_dim) + self.position[:, :n]
        x = self.blocks[0](x, self.mask[:n, :n])
        x = checkpoint(self.blocks[1], x, self.mask[:n, :n], use_reentrant=False)
        return self.head(self.norm(x))


def prepare(path):
    torch.manual_seed(3)
    state = {f"model.{k}": v.numpy() for k, v in Transformer().state_dict().items()}
    np.savez(path, tokens=torch.randint(0, 11, (6, 9)).numpy(), **state)


def train(data, optimizer_name, settings):
    model = Transformer()
    model.load_state_dict({k[6:]: torch.from_numpy(data[k].copy()) for k in data.files if k.startswith("model.")})
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), **settings)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    tokens = torch.from_numpy(data["tokens"])
    losses = []
    for _step in range(20):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
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
