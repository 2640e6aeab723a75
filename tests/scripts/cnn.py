"""A small convolutional network that classifies images."""
import argparse
import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, Dataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Images(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]), int(self.labels[index])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 8, 3, stride=2, bias=False)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(8 * 2 * 2, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.norm(self.conv1(x)), inplace=True))
        x = F.leaky_relu(self.conv2(x), 0.1)
        x = F.adaptive_avg_pool2d(x, (2, 2))
        return F.log_softmax(self.fc(torch.flatten(x, 1)), dim=1)


def prepare(path):
    torch.manual_seed(1)
    state = {f"model.{k}": v.numpy() for k, v in Net().state_dict().items()}
    np.savez(path, images=torch.randn(40, 1, 12, 12).numpy(), labels=torch.randint(0, 10, (40,)).numpy(), **state)


def train(data, optimizer_name, settings):
    model = Net().to(device)
    model.load_state_dict({k[6:]: torch.from_numpy(data[k].copy()) for k in data.files if k.startswith("model.")})
    optimizer = getattr(optim, optimizer_name)([{"params": [p for n, p in model.named_parameters() if "fc" not in n]},
                                                {"params": model.fc.parameters(), "lr": settings["lr"] / 2}], **settings)
    loader = DataLoader(Images(data["images"], data["labels"]), batch_size=8, shuffle=False)
    losses = []
    model.train()
    for _epoch in range(4):
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(images), labels)
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
