"""Horovod on tensors in device memory: checks, or a training. Started by mpirun.

    mpirun -n 2 python3 horovod_gpu.py
    mpirun -n 2 python3 horovod_gpu.py --train resnet50 --batch 32 --fp16

Rank 0 prints a line for each check, or the time of a step of the training, of the slowest rank, and whether
the parameters are the same on all ranks. Exit status 1: something is wrong; 77: what it needs is missing.
"""
import argparse
import math
import sys
import time

try:
    import torch
    import horovod.torch as hvd
except ModuleNotFoundError as error:
    print("skip", error, flush=True)
    sys.exit(77)

TYPES = ("float32", "float64", "float16", "int32", "int64")
COUNTS = (1, 3, 1000, 300007, 8 << 20)
WARMUP_STEPS = 5


def parse_arguments():
    parser = argparse.ArgumentParser(description="Horovod on tensors in device memory")
    parser.add_argument("--train", choices=("resnet50", "small"), help="this network on random images, no checks")
    parser.add_argument("--batch", type=int, default=32, help="images of a rank in a step")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--fp16", action="store_true", help="send gradients as half")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    return parser.parse_args()


def skip(why):
    print("skip", why, flush=True)
    sys.exit(77)


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def on_all_ranks(true):
    return hvd.allreduce(torch.tensor(int(true)), op=hvd.Min).item() == 1


# The checks add with op=Sum. With op=Average Horovod scales a tensor that it has not fused with others on a
# stream of its own and does not wait for it (MPI_GPUAllreduce::Execute), so a wrong result would be Horovod's.


def check_sum(device, dtype, count):
    mine = (torch.arange(count, device=device) % 5).to(dtype)
    total = hvd.allreduce(mine * (hvd.rank() + 1), op=hvd.Sum)
    return torch.equal(total, mine * sum(range(1, hvd.size() + 1)))


def check_grouped(device):
    group = [torch.full((count,), hvd.rank() + 1.0, device=device) for count in (1, 7, 4096, 1 << 20)]
    total = sum(range(1, hvd.size() + 1))
    return all(bool((tensor == total).all()) for tensor in hvd.grouped_allreduce(group, op=hvd.Sum))


def check_fused(device):
    """Horovod makes one call of many tensors that are ready at the same time."""
    handles = [hvd.allreduce_async(torch.full((100 + i,), float(i), device=device, dtype=torch.float16), op=hvd.Sum)
               for i in range(50)]
    return all(bool((hvd.synchronize(handle) == i * hvd.size()).all()) for i, handle in enumerate(handles))


def check_broadcast(device):
    root = hvd.size() - 1
    return bool((hvd.broadcast(torch.full((5000,), hvd.rank(), device=device), root) == root).all())


def check_allgather(device):
    gathered = hvd.allgather(torch.full((hvd.rank() + 1, 3), hvd.rank(), device=device))
    wanted = torch.cat([torch.full((rank + 1, 3), rank, device=device) for rank in range(hvd.size())])
    return torch.equal(gathered, wanted)


def check_reducescatter(device):
    scattered = hvd.reducescatter(torch.ones(4 * hvd.size(), 2, device=device), op=hvd.Sum)
    return torch.equal(scattered, torch.full((4, 2), float(hvd.size()), device=device))


def run_checks(device):
    checks = {f"sum of {count} {name}": lambda name=name, count=count: check_sum(device, getattr(torch, name), count)
              for name in TYPES for count in COUNTS}
    for check in (check_grouped, check_fused, check_broadcast, check_allgather, check_reducescatter):
        checks[check.__name__[len("check_"):]] = lambda check=check: check(device)
    wrong = 0
    for what, check in checks.items():
        right = on_all_ranks(check())
        wrong += not right
        if hvd.rank() == 0:
            print("ok   " if right else "WRONG", what, flush=True)
    return wrong == 0


def make_network(name):
    """Returns a network and the shape of its images."""
    if name == "resnet50":
        import torchvision

        return torchvision.models.resnet50(), (3, 224, 224)
    layers = (torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 30 * 30, 1000))
    return torch.nn.Sequential(*layers), (3, 32, 32)


def same_on_all_ranks(model):
    """In host memory, where nothing that is tested here moves them."""
    mine = torch.cat([parameter.detach().cpu().flatten() for parameter in model.parameters()])
    return on_all_ranks(torch.equal(mine, hvd.broadcast(mine, 0)))


def train(arguments, device, model, image):
    torch.manual_seed(7 + hvd.rank())
    model.to(device)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.01 / hvd.size(), momentum=0.9),
        named_parameters=model.named_parameters(), op=hvd.Sum,
        compression=hvd.Compression.fp16 if arguments.fp16 else hvd.Compression.none)
    images = torch.randn((arguments.batch, *image), device=device)
    labels = torch.randint(0, 1000, (arguments.batch,), device=device)
    seconds = []
    for _ in range(WARMUP_STEPS + arguments.steps):
        wait(device)
        hvd.barrier()
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        wait(device)
        seconds.append(time.perf_counter() - start)
    same = same_on_all_ranks(model)
    right = same and math.isfinite(loss.item())
    slowest = hvd.allreduce(torch.tensor(seconds[WARMUP_STEPS:], dtype=torch.float64), op=hvd.Max).sort().values
    median = slowest[len(slowest) // 2].item()
    if hvd.rank() == 0:
        print(f"{'ok   ' if right else 'WRONG'} {arguments.train} batch {arguments.batch} ranks {hvd.size()}"
              f" {'fp16' if arguments.fp16 else 'fp32'} step_ms median {median * 1e3:.2f} least {slowest[0].item() * 1e3:.2f}"
              f" images/s {hvd.size() * arguments.batch / median:.1f} loss {loss.item():.3f}"
              f" parameters {'equal' if same else 'DIFFER'}", flush=True)
    return right


def main():
    arguments = parse_arguments()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        skip("PyTorch sees no GPU")
    try:
        network = make_network(arguments.train) if arguments.train else None
    except (ImportError, RuntimeError) as error:  # torchvision is missing, or was made for another PyTorch
        skip(error)
    hvd.init()
    if arguments.device == "cuda":
        torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
    device = torch.device(arguments.device)
    torch.set_num_threads(1)  # several ranks share the machine
    right = train(arguments, device, *network) if network else run_checks(device)
    hvd.shutdown()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
