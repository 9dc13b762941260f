"""Trains with PyTorch. Each gradient is summed over all ranks on a second stream as soon as the
backward pass has made it, while the rest of the pass goes on.

    mpirun --mca coll hetcoll -n 4 python3 train_torch.py

Needs PyTorch with CUDA and a compiler: it builds torch_streams.cpp at its first start.
"""
import os
import subprocess

import torch
from torch.utils.cpp_extension import load

here = os.path.dirname(os.path.abspath(__file__))


def build():
    """With the flags of mpicxx, on every rank in a folder of its own."""
    flags = subprocess.check_output(["mpicxx", "--showme:compile"], text=True).split()
    libraries = subprocess.check_output(["mpicxx", "--showme:link"], text=True).split()
    local = os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0")
    folder = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"torch_streams.{os.getuid()}.{local}")
    os.makedirs(folder, exist_ok=True)
    include = os.environ.get("HETCOLL_INCLUDE", "/usr/local/include")
    return load("torch_streams", [os.path.join(here, "torch_streams.cpp")], build_directory=folder,
                extra_cflags=flags + ["-DOMPI_SKIP_MPICXX=1", f"-I{include}"],
                extra_ldflags=libraries + ["-ldl"], with_cuda=True)


def main():
    local = int(os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK", "0"))
    torch.cuda.set_device(local % torch.cuda.device_count())
    streams = build()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512),
                                torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    sums = torch.cuda.Stream()
    with torch.cuda.stream(sums):
        streams.attach(max(p.numel() * p.element_size() for p in model.parameters()))
    ranks = streams.size()

    def sum_gradient(parameter):
        sums.wait_stream(torch.cuda.current_stream())  # it is there
        with torch.cuda.stream(sums):
            streams.sum_(parameter.grad)
            parameter.grad.div_(ranks)
        parameter.grad.record_stream(sums)

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(sum_gradient)
    torch.manual_seed(2 + streams.rank())  # each rank has data of its own
    for step in range(200):
        data = torch.randn(128, 64, device="cuda")
        wanted = (data[:, :10] > 0).float()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(data), wanted)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        torch.cuda.current_stream().wait_stream(sums)  # the optimizer needs all sums
        optimizer.step()
    with torch.cuda.stream(sums):
        torch.cuda.synchronize()
        streams.check()
        streams.detach()
    print(f"rank {streams.rank()} of {ranks}: loss {loss.item():.4f}, "
          f"weights {sum(p.double().sum().item() for p in model.parameters()):.9f}")
    streams.finalize()


if __name__ == "__main__":
    main()
