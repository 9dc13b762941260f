#!/usr/bin/env python3
"""Trains a small convolutional network on scikit-learn's handwritten digits with Horovod.

    mpirun -n 2 python3 train_digits.py

Nothing in it knows hetcoll. Rank 0 prints the loss of every epoch, then a checksum of the
parameters, which has to be the same on all ranks, and the time of a step.
"""
import argparse
import hashlib
import sys
import time

import horovod.torch as hvd
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def parse_arguments():
    parser = argparse.ArgumentParser(description="Digits with PyTorch and Horovod")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--lr", type=float, default=0.02, help="learning rate for one rank")
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--fp16-allreduce", action="store_true", help="send gradients as half")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    return parser.parse_args()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, kernel_size=3, padding=1)
        self.fc1 = nn.Linear(64 * 4 * 4, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return F.log_softmax(self.fc2(x), dim=1)


def load_data():
    """Training and test images, 8 x 8 pixels from 0 to 1."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target, dtype=torch.int64)
    test = torch.arange(len(labels)) % 5 == 0
    return TensorDataset(images[~test], labels[~test]), (images[test], labels[test])


def train_epoch(model, optimizer, loader, device, step_seconds):
    model.train()
    total = 0.0
    for images, labels in loader:
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = F.nll_loss(model(images.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()  # waits for a GPU too
        step_seconds.append(time.perf_counter() - start)
    return total / len(loader)


def average(value, name):
    return hvd.allreduce(torch.tensor(value), name=name).item()


def checksum(model):
    """The same number for the same bits, of 62 bits: a tensor can carry it."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return int.from_bytes(digest.digest()[:8], "little") >> 2


def main():
    arguments = parse_arguments()
    hvd.init()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)  # several ranks share the machine
    device = torch.device("cpu")
    if arguments.device == "cuda":
        torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
        device = torch.device("cuda")

    train_set, (test_images, test_labels) = load_data()
    sampler = DistributedSampler(train_set, num_replicas=hvd.size(), rank=hvd.rank(), seed=arguments.seed)
    loader = DataLoader(train_set, batch_size=arguments.batch_size, sampler=sampler)

    model = Net().to(device)
    optimizer = optim.SGD(model.parameters(), lr=arguments.lr * hvd.size(), momentum=arguments.momentum)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    compression = hvd.Compression.fp16 if arguments.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), compression=compression)

    step_seconds = []
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        loss = average(train_epoch(model, optimizer, loader, device, step_seconds), "loss")
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1} loss {loss:.6f}", flush=True)

    model.eval()
    with torch.no_grad():
        guess = model(test_images.to(device)).argmax(dim=1).cpu()
    right = average((guess == test_labels).float().mean().item(), "right")
    sums = hvd.allgather(torch.tensor([checksum(model)]), name="checksum").tolist()
    slowest = hvd.allreduce(torch.tensor(step_seconds, dtype=torch.float64), op=hvd.Max, name="steps")
    steps = slowest.sort().values * 1e3
    if hvd.rank() == 0:
        print(f"accuracy {right:.4f}")
        print(f"checksum {sums[0]:016x} on {len(set(sums))} of {hvd.size()} ranks" if len(set(sums)) > 1
              else f"checksum {sums[0]:016x} on all {hvd.size()} ranks")
        print(f"step_ms median {steps[len(steps) // 2]:.3f} least {steps[0]:.3f} steps {len(steps)}")
    return 0 if len(set(sums)) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
