"""
verdict: none
stack:
  trainer.fit(epochs=40)
  self.validate(self.val_images, self.val_labels)
  self.model(images)
why: the optimizer changes the parameters of the model in each epoch, so the same validation images give other outputs
"""
import torch
from torch import nn
from torchvision.models import mobilenet_v3_small


class Trainer:
    def __init__(self, data, lr=1e-3):
        self.train_images, self.train_labels = data["train"]
        self.val_images, self.val_labels = data["val"]
        self.model = mobilenet_v3_small(num_classes=12)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.best = 0.0

    def learn(self):
        self.model.train()
        for index in torch.randperm(len(self.train_labels)).split(64):
            batch = self.train_images[index]
            loss = nn.functional.cross_entropy(self.model(batch), self.train_labels[index])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self, images, labels):
        self.model.eval()
        logits = self.model(images)
        return (logits.argmax(1) == labels).float().mean().item()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.learn()
            score = self.validate(self.val_images, self.val_labels)
            if score > self.best:
                self.best = score
                torch.save(self.model.state_dict(), "best.pt")
        return self.best


if __name__ == "__main__":
    trainer = Trainer(torch.load("leaves.pt"))
    print(trainer.fit(epochs=40))
