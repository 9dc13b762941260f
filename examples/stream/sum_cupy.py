"""Sums CuPy arrays over all ranks in the order of a CuPy stream.

    mpicc -shared -fPIC stream_calls.c -ldl -o libstream_calls.so
    mpirun --mca coll hetcoll -n 4 python3 sum_cupy.py

Needs CuPy and mpi4py. The host waits once, at the end.
"""
import ctypes
import os

import cupy
from mpi4py import MPI  # initialises MPI with MPI_THREAD_MULTIPLE

here = os.path.dirname(os.path.abspath(__file__))
calls = ctypes.CDLL(os.environ.get("STREAM_CALLS", os.path.join(here, "libstream_calls.so")))


def must(code):
    if code != 0:
        raise RuntimeError(f"MPI error {code}: {MPI.Get_error_string(code)}")


def main():
    comm = MPI.COMM_WORLD
    cupy.cuda.Device(comm.rank % cupy.cuda.runtime.getDeviceCount()).use()
    stream = cupy.cuda.Stream(non_blocking=True)
    handle = ctypes.c_void_p.from_address(MPI._addressof(comm))
    pointer = ctypes.c_void_p(stream.ptr)
    with stream:
        vector = cupy.empty(1_000_000, dtype=cupy.float32)
        must(calls.stream_attach(handle, pointer, ctypes.c_size_t(vector.nbytes)))
        total = cupy.zeros((), dtype=cupy.float32)
        for step in range(10):
            vector.fill(comm.rank + step)
            must(calls.stream_sum(ctypes.c_void_p(vector.data.ptr), vector.size, handle, pointer))
            total += vector[-1]  # sees the sum
    stream.synchronize()
    must(calls.stream_check(handle, pointer))
    right = sum(comm.size * step + comm.size * (comm.size - 1) // 2 for step in range(10))
    must(calls.stream_detach(handle, pointer))
    if comm.rank == 0:
        print(f"the sums of 10 steps add up to {float(total):.0f}, they should to {right}")
    return float(total) != right


if __name__ == "__main__":
    raise SystemExit(main())
