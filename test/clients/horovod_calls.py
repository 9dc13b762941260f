#!/usr/bin/env python3
"""Every collective that Horovod has for PyTorch, of every type that it takes, on small tensors whose
results are exact; process sets that come and go, ranks that leave early, Horovod ended and begun again.

    mpirun -n 3 python3 horovod_calls.py

Prints "ok" three times, or what was wrong; exit status 1 if anything was.
"""
import ctypes
import sys

import horovod.torch as hvd
import torch

TYPES = (torch.int32, torch.int64, torch.float16, torch.float32, torch.float64)
SIZES = (1, 17, 1000, 100003)
failures = 0


def expect(got, want, what):
    global failures
    want = torch.as_tensor(want, dtype=got.dtype).expand_as(got)
    if not torch.equal(got, want):
        failures += 1
        print(f"WRONG {what}, rank {hvd.rank()} of {hvd.size()}", flush=True)


def check_reductions():
    ranks, mine = hvd.size(), hvd.rank() + 1
    wanted = {hvd.Sum: ranks * (ranks + 1) // 2, hvd.Min: 1, hvd.Max: ranks,
              hvd.Product: torch.arange(1, ranks + 1).prod().item()}
    for dtype in TYPES:
        for size in SIZES:
            for op, want in wanted.items():
                name = f"{dtype}.{size}.{op}"
                tensor = torch.full((size,), mine, dtype=dtype)
                expect(hvd.allreduce(tensor, op=op, name=name), want, "allreduce " + name)
                hvd.allreduce_(tensor, op=op, name=name + ".in_place")
                expect(tensor, want, "allreduce in place " + name)
    # Several at once, which Horovod fuses into one call.
    handles = [hvd.allreduce_async(torch.full((100 + i,), mine * (i + 1.0)), op=hvd.Sum, name=f"fused.{i}")
               for i in range(50)]
    for i, handle in enumerate(handles):
        expect(hvd.synchronize(handle), wanted[hvd.Sum] * (i + 1.0), f"fused allreduce {i}")
    group = hvd.grouped_allreduce([torch.full((size,), mine, dtype=torch.float16) for size in SIZES],
                                  op=hvd.Sum, name="group")
    for tensor in group:
        expect(tensor, wanted[hvd.Sum], "grouped allreduce")


def check_moves():
    ranks, rank = hvd.size(), hvd.rank()
    for dtype in TYPES + (torch.uint8,):
        tensor = torch.full((rank + 2, 3), rank + 1, dtype=dtype)
        want = torch.cat([torch.full((r + 2, 3), r + 1, dtype=dtype) for r in range(ranks)])
        expect(hvd.allgather(tensor, name=f"gather.{dtype}"), want, f"allgather {dtype}")
        for root in range(ranks):
            expect(hvd.broadcast(tensor[:2].clone(), root, name=f"broadcast.{dtype}.{root}"), root + 1,
                   f"broadcast {dtype} from {root}")
        sent = torch.cat([torch.full((to + 1,), 10 * rank + to, dtype=dtype) for to in range(ranks)])
        got, counts = hvd.alltoall(sent, splits=torch.arange(1, ranks + 1, dtype=torch.int32), name=f"all.{dtype}")
        want = torch.cat([torch.full((rank + 1,), 10 * r + rank, dtype=dtype) for r in range(ranks)])
        expect(got, want, f"alltoall {dtype}")
        expect(counts, rank + 1, f"alltoall {dtype}, counts")
    for dtype in TYPES:
        scattered = hvd.reducescatter(torch.full((3 * ranks + 1, 5), rank + 1, dtype=dtype), op=hvd.Sum,
                                      name=f"scatter.{dtype}")
        expect(scattered, ranks * (ranks + 1) // 2, f"reducescatter {dtype}")
    expect(torch.tensor(hvd.allgather_object(rank, name="object")), torch.arange(ranks), "allgather_object")
    hvd.barrier()


def check_process_sets():
    ranks, rank = hvd.size(), hvd.rank()
    for turn in range(5):
        members = list(range(turn % ranks, ranks))
        process_set = hvd.add_process_set(hvd.ProcessSet(members)) if len(members) < ranks else None
        if process_set is None:
            continue
        if rank in members:
            got = hvd.allreduce(torch.full((1000,), rank, dtype=torch.float16), op=hvd.Sum,
                                name=f"set.{turn}", process_set=process_set)
            expect(got, sum(members), f"allreduce in process set {members}")
        hvd.remove_process_set(process_set)


def check_join():
    """Rank 0 leaves first: zeros take its place."""
    if hvd.rank() != 0:
        got = hvd.allreduce(torch.full((1000,), 1.0), op=hvd.Sum, name="joined")
        expect(got, hvd.size() - 1, "allreduce beside a rank that has joined")
    hvd.join()


def check_adasum():
    """The same tensor everywhere: its Adasum is that tensor. Horovod leaves these communicators to Finalize."""
    if hvd.size() & (hvd.size() - 1) == 0:
        expect(hvd.allreduce(torch.full((1000,), 2.0), op=hvd.Adasum, name="adasum"), 2, "adasum")


def main():
    # The program holds MPI, so that Horovod, which would end it for good, can begin several times.
    mpi = ctypes.CDLL("libmpi.so", mode=ctypes.RTLD_GLOBAL)
    multiple = 3
    mpi.MPI_Init_thread(None, None, multiple, ctypes.byref(ctypes.c_int()))
    for _ in range(3):
        hvd.init(process_sets="dynamic")
        check_reductions()
        check_moves()
        check_process_sets()
        check_adasum()
        check_join()
        wrong = hvd.allreduce(torch.tensor(failures), op=hvd.Sum, name="failures").item()
        if hvd.rank() == 0 and wrong == 0:
            print(f"ok every call of Horovod on {hvd.size()} ranks", flush=True)
        hvd.shutdown()
    mpi.MPI_Finalize()
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
