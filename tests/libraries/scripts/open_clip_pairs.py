"""Trains a small CLIP of open_clip's on eight images and what is said of them, and finds the texts of images."""
import torch
import torchvision_alone  # noqa: F401  (first)
from open_clip import CLIP, ClipLoss, get_tokenizer

torch.manual_seed(0)
net = CLIP(embed_dim=32, vision_cfg={"layers": 2, "width": 64, "patch_size": 8, "image_size": 32},
           text_cfg={"context_length": 16, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2})
words = get_tokenizer("ViT-B-32", context_length=16)([f"a photo of a {thing}" for thing in (
    "cat", "dog", "house", "river", "red car", "blue car", "man with a hat", "bowl of soup")])
images = torch.randn(8, 3, 32, 32)
criterion, optimizer = ClipLoss(), torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.1)
losses = []
for _ in range(6):
    loss = criterion(*net(images, words))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())

with torch.no_grad():
    scores = 10 * net.encode_image(images, normalize=True) @ net.encode_text(words, normalize=True).T
assert words.sum() == 839560
expected = torch.tensor([2.234607, 2.261853, 2.033051, 1.980932, 1.872549, 1.559967])
torch.testing.assert_close(torch.stack(losses), expected, rtol=1e-4, atol=0)
expected = torch.tensor([0.336978, 0.168253, 0.281013, 0.554302, 0.398321, 0.138716, 0.772992, 0.228463])
torch.testing.assert_close(scores.softmax(1).diag(), expected, rtol=1e-3, atol=0)
