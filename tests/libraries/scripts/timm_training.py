"""Trains two small networks of timm's, with its augmentation, loss, optimizer, schedule and moving average of weights."""
import numpy as np
import torch
import torchvision_alone  # noqa: F401  (first)
from timm import create_model
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3

VIT = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3, "drop_path_rate": 0.1}
CONVNEXT = {"depths": (1, 1, 1, 1), "dims": (8, 16, 24, 32), "drop_path_rate": 0.1}


def train(name, **settings):
    torch.manual_seed(0)
    np.random.seed(0)
    net = create_model(name, pretrained=False, num_classes=5, **settings)
    images, labels = torch.randn(8, 3, 32, 32), torch.arange(8) % 5
    mixup = Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=5, label_smoothing=0.1)
    criterion, average = SoftTargetCrossEntropy(), ModelEmaV3(net, decay=0.5)
    optimizer = create_optimizer_v2(net, opt="lamb", lr=0.02, weight_decay=0.05)
    schedule = CosineLRScheduler(optimizer, t_initial=5, warmup_t=2, warmup_lr_init=1e-3)
    losses = []
    for step in range(5):
        mixed, target = mixup(images, labels)
        loss = criterion(net(mixed), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update(net, step)
        schedule.step(step + 1)
        losses.append(loss.detach())
    net.eval()
    scores = [model(images).square().mean().detach() for model in (net, average.module.eval())]
    return torch.stack(losses), torch.stack(scores)


def check(found, losses, scores):
    torch.testing.assert_close(found[0], torch.tensor(losses), rtol=1e-4, atol=0)
    torch.testing.assert_close(found[1], torch.tensor(scores), rtol=1e-3, atol=0)


check(train("vit_tiny_patch16_224", **VIT), [1.573985, 1.561765, 1.578755, 1.544138, 1.530411], [0.077283, 0.076704])
check(train("convnext_atto", **CONVNEXT), [1.641443, 1.635573, 1.577114, 1.527675, 1.502294], [0.035142, 0.030978])
