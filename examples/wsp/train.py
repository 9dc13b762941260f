#!/usr/bin/env python3
"""Trains a small network with PyTorch, wave-synchronously.

    mpirun -n 4 python3 train.py --distance 2 --jitter-ms 5

Rank 0 prints the loss on samples that nobody trained with, a checksum of the weights, which is the
same on all ranks, and how far the ranks were apart.
"""
import argparse
import hashlib
import random
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import hetcoll_wsp

FEATURES, CLASSES = 20, 4


def parse_arguments():
    parser = argparse.ArgumentParser(description="A small network, wave-synchronously")
    parser.add_argument("--distance", type=int, default=1)
    parser.add_argument("--steps-per-wave", type=int, default=1)
    parser.add_argument("--deterministic", action="store_true")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--jitter-ms", type=float, default=0, help="some steps take so much longer")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    return parser.parse_args()


def make_samples(count, seed):
    """Classes that a random network gives, one in ten of them by chance."""
    generator = torch.Generator().manual_seed(1)
    first = torch.randn(FEATURES, 16, generator=generator)
    second = torch.randn(16, CLASSES, generator=generator)
    generator.manual_seed(seed)
    inputs = torch.randn(count, FEATURES, generator=generator)
    labels = (inputs @ first).tanh().matmul(second).argmax(dim=1)
    by_chance = torch.rand(count, generator=generator) < 0.1
    labels[by_chance] = torch.randint(CLASSES, (int(by_chance.sum()),), generator=generator)
    return inputs, labels


def main():
    arguments = parse_arguments()
    hetcoll_wsp.init()
    rank, ranks = hetcoll_wsp.rank(), hetcoll_wsp.size()
    torch.set_num_threads(1)  # several ranks share the machine
    torch.manual_seed(rank)  # initial weights are rank 0's anyhow
    jitter = random.Random(rank)
    device = torch.device(arguments.device)
    inputs, labels = (tensor.to(device) for tensor in make_samples(4000, 100 + rank))
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, CLASSES)).to(device)
    training = hetcoll_wsp.Training(model.parameters(), arguments.distance, arguments.steps_per_wave,
                                    arguments.deterministic)
    optimizer = torch.optim.SGD(model.parameters(), lr=arguments.lr)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 150))
    order = torch.Generator().manual_seed(rank)
    for _ in range(arguments.steps):
        batch = torch.randint(len(inputs), (arguments.batch_size,), generator=order).to(device)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs[batch]), labels[batch]).backward()
        optimizer.step()
        schedule.step()
        if jitter.random() < 0.05:
            time.sleep(jitter.random() * arguments.jitter_ms / 1000)
        training.step()
    training.flush()
    with torch.no_grad():
        test_inputs, test_labels = (tensor.to(device) for tensor in make_samples(4000, 99))
        loss = F.cross_entropy(model(test_inputs), test_labels).item()
    digest = hashlib.sha256(training.weights.cpu().numpy().tobytes()).hexdigest()[:16]
    seen = training.statistics()
    lines = f"checksum {digest}\n"
    if rank == 0:
        lines += f"loss {loss:.6f}\n"
        lines += (f"distance {arguments.distance}, steps behind {seen.max_staleness} of {seen.staleness_bound}, "
                  f"waited {seen.blocked_ms:.0f} ms, {ranks} ranks\n")
    sys.stdout.write(lines)
    training.free()
    hetcoll_wsp.finalize()


if __name__ == "__main__":
    main()
