"""Trains a small ResNet of torchvision's on images that its transforms have changed, and looks at features and boxes.

Its compiled operators (nms, roi_align) are not needed: they belong to PyTorch's binaries.
"""
import torch
import torchvision_alone  # noqa: F401  (first)
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.models.resnet import BasicBlock, ResNet
from torchvision.ops import box_convert, generalized_box_iou_loss, sigmoid_focal_loss
from torchvision.transforms import v2

torch.manual_seed(0)
images = (torch.rand(8, 3, 40, 40) * 255).to(torch.uint8)
labels = torch.arange(8) % 4
change = v2.Compose([v2.RandomCrop(36), v2.RandomHorizontalFlip(0.5), v2.ToDtype(torch.float32, scale=True), v2.Resize((32, 32), antialias=True),
                     v2.ColorJitter(brightness=0.3, saturation=0.3),
                     v2.Normalize([0.5] * 3, [0.25] * 3)])
net = ResNet(BasicBlock, [1, 1, 1, 1], num_classes=4, norm_layer=lambda width: torch.nn.GroupNorm(8, width))
optimizer = torch.optim.SGD(net.parameters(), lr=0.005, momentum=0.9)
losses = []
for _ in range(4):
    scores = net(torch.stack([change(image) for image in images]))
    loss = torch.nn.functional.cross_entropy(scores, labels) + sigmoid_focal_loss(scores, torch.eye(4)[labels]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())

extract = create_feature_extractor(net.eval(), {"layer1": "early", "avgpool": "late"})
features = extract(v2.functional.to_dtype(images, scale=True))
boxes = torch.tensor([[5.0, 5.0, 4.0, 4.0], [6.0, 6.0, 4.0, 2.0]], requires_grad=True)
goal = torch.tensor([[4.0, 4.0, 8.0, 8.0]]).expand(2, 4)
generalized_box_iou_loss(box_convert(boxes, "cxcywh", "xyxy"), goal).sum().backward()
torch.testing.assert_close(torch.stack(losses), torch.tensor([1.636014, 1.577471, 1.503230, 1.388504]), rtol=1e-4, atol=0)
found = torch.stack([features[place].mean().detach() for place in ("early", "late")])
torch.testing.assert_close(found, torch.tensor([1.076532, 0.571808]), rtol=1e-4, atol=0)
expected = torch.tensor([[-0.245474, -0.245474, -0.030684, -0.030684], [0.0, 0.0, 0.03125, -0.25]])
torch.testing.assert_close(boxes.grad, expected, rtol=1e-4, atol=1e-6)
