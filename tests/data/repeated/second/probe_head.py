"""
verdict: same
stack:
  train(train_x, train_y, val_x, val_y)
  accuracy(head, val_images, val_labels)
  embed(images)
  BACKBONE(chunk)
call: embed(images)
loop: for epoch in range(epochs)
why: the backbone is in eval mode, without gradients and not in the optimizer, so the fixed validation images give the same features in each epoch
"""
import torch
from torch import nn
from torchvision.models import resnet50

BACKBONE = resnet50(weights="IMAGENET1K_V2")
BACKBONE.fc = nn.Identity()
BACKBONE.eval().requires_grad_(False)


@torch.no_grad()
def embed(batch):
    return torch.cat([BACKBONE(chunk) for chunk in batch.split(64)])


@torch.no_grad()
def accuracy(classifier, images, labels):
    features = embed(images)
    return (classifier(features).argmax(1) == labels).float().mean().item()


def train(images, labels, val_images, val_labels, epochs=50):
    head = nn.Linear(2048, 10)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.05, momentum=0.9)
    features_train = torch.load("train_features.pt")
    for epoch in range(epochs):
        for index in torch.randperm(len(labels)).split(256):
            loss = nn.functional.cross_entropy(head(features_train[index]), labels[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, accuracy(head, val_images, val_labels))
    return head


if __name__ == "__main__":
    train_x, train_y, val_x, val_y = torch.load("splits.pt")
    train(train_x, train_y, val_x, val_y)
