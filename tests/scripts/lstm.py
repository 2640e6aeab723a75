"""An LSTM that predicts the next character, on sequences of different lengths."""
import argparse
import json

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

VOCABULARY = 12


class CharLSTM(nn.Module):
    def __init__(self, hidden=10):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, hidden, num_layers=2, batch_first=True, bidirectional=False)
        self.out = nn.Linear(hidden, VOCABULARY)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = self.lstm(packed)
        hidden, _ = pad_packed_sequence(hidden, batch_first=True)
        return self.out(hidden)


def prepare(path):
    torch.manual_seed(2)
    lengths = torch.tensor([7, 5, 9, 3])
    tokens = torch.randint(1, VOCABULARY, (4, 10))
    for row, length in enumerate(lengths):
        tokens[row, length + 1:] = 0
    state = {f"model.{k}": v.numpy() for k, v in CharLSTM().state_dict().items()}
    np.savez(path, tokens=tokens.numpy(), lengths=lengths.numpy(), **state)


def train(data, optimizer_name, settings):
    model = CharLSTM()
    model.load_state_dict({k[6:]: torch.from_numpy(data[k].copy()) for k in data.files if k.startswith("model.")})
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), **settings)
    criterion = nn.CrossEntropyLoss(ignore_index=0)
    tokens, lengths = torch.from_numpy(data["tokens"]), torch.from_numpy(data["lengths"])
    losses = []
    for _step in range(20):
        optimizer.zero_grad(set_to_none=True)
        logits = model(tokens, lengths)
        targets = tokens[:, 1:1 + logits.size(1)]
        loss = criterion(logits.reshape(-1, VOCABULARY), targets.reshape(-1))
        loss.backward()
        clip_grad_norm_(model.parameters(), 0.5)
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
