"""Sums of arrays in device memory: arrays.py torch [ALLOCATOR] | cupy | runtime, started by mpirun.

PyTorch's tensors, CuPy's arrays, and memory of cudaMalloc, by mpi4py; where that is missing, by libmpi
itself. ALLOCATOR is what PYTORCH_CUDA_ALLOC_CONF says, such as expandable_segments:True. Exit status 77: the library is
missing, or sees no GPU.
"""

import ctypes
import glob
import os
import sys

COUNTS = (1, 1000, 300007)


class WithMpi4py:
    name = "mpi4py"

    def __init__(self):
        from mpi4py import MPI

        self.mpi = MPI
        self.rank = MPI.COMM_WORLD.Get_rank()
        self.size = MPI.COMM_WORLD.Get_size()

    def sum_in_place(self, array, _pointer, _count):
        self.mpi.COMM_WORLD.Allreduce(self.mpi.IN_PLACE, array)

    def finish(self):
        pass  # mpi4py does it at exit


class WithLibmpi:
    """Open MPI's C functions; its handles are the addresses of objects."""

    name = "libmpi"

    def __init__(self):
        self.library = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
        self._call("MPI_Init", None, None)
        rank, size = ctypes.c_int(), ctypes.c_int()
        self._call("MPI_Comm_rank", self._object("comm_world"), ctypes.byref(rank))
        self._call("MPI_Comm_size", self._object("comm_world"), ctypes.byref(size))
        self.rank, self.size = rank.value, size.value

    def _object(self, name):
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self.library, f"ompi_mpi_{name}")))

    def _call(self, name, *arguments):
        if getattr(self.library, name)(*arguments) != 0:
            raise RuntimeError(f"{name} failed")

    def sum_in_place(self, _array, pointer, count):
        self._call("MPI_Allreduce", ctypes.c_void_p(1), ctypes.c_void_p(pointer), ctypes.c_int(count),
                   self._object("float"), self._object("op_sum"), self._object("comm_world"))

    def finish(self):
        self._call("MPI_Finalize")


class Torch:
    def __init__(self, rank):
        if len(sys.argv) > 2:
            os.environ["PYTORCH_CUDA_ALLOC_CONF"] = sys.argv[2]  # read when PyTorch is imported
        import torch

        if not torch.cuda.is_available():
            raise ImportError("torch sees no GPU")
        self.torch = torch
        torch.cuda.set_device(rank % torch.cuda.device_count())

    def make(self, count, factor):
        return (self.torch.arange(count, device="cuda") % 1000 + 1).float() * factor

    def make_aside(self, count, factor):
        stream = self.torch.cuda.Stream()
        with self.torch.cuda.stream(stream):
            array = self.make(count, factor)
        stream.synchronize()
        return array

    def pointer(self, array):
        return array.data_ptr()

    def read(self, array):
        return array.cpu().tolist()


class Cupy:
    def __init__(self, rank):
        import cupy

        self.cupy = cupy
        try:
            cupy.cuda.Device(rank % cupy.cuda.runtime.getDeviceCount()).use()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise ImportError(f"cupy sees no GPU: {error}") from error

    def make(self, count, factor):
        return ((self.cupy.arange(count) % 1000 + 1) * factor).astype(self.cupy.float32)

    def make_aside(self, count, factor):
        stream = self.cupy.cuda.Stream(non_blocking=True)
        with stream:
            array = self.make(count, factor)
        stream.synchronize()
        return array

    def pointer(self, array):
        return array.data.ptr

    def read(self, array):
        return array.get().tolist()


class RuntimeArray:
    def __init__(self, pointer, count):
        self.pointer = pointer
        self.count = count
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<f4", "data": (pointer, False),
                                         "version": 3}


class Runtime:
    """cudaMalloc and copies on the default stream."""

    def __init__(self, rank):
        self.library = self._find()
        count = ctypes.c_int()
        self._call("cudaGetDeviceCount", ctypes.byref(count))
        self._call("cudaSetDevice", rank % count.value)

    @staticmethod
    def _find():
        folders = ["", os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/lib64/"]
        folders += [f"{path}/nvidia/*/lib/" for path in sys.path]
        for folder in folders:
            for name in glob.glob(folder + "libcudart.so.1[23]") if folder else ["libcudart.so.13"]:
                try:
                    return ctypes.CDLL(name)
                except OSError:
                    pass
        raise ImportError("no libcudart.so.13")

    def _call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name} returned {result}")

    def make(self, count, factor):
        pointer = ctypes.c_void_p()
        self._call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(4 * count))
        self.host = (ctypes.c_float * count)(*[(i % 1000 + 1) * factor for i in range(count)])
        self._call("cudaMemcpyAsync", pointer, self.host, ctypes.c_size_t(4 * count), 1, None)
        return RuntimeArray(pointer.value, count)

    def make_aside(self, count, factor):
        return self.make(count, factor)

    def pointer(self, array):
        return array.pointer

    def read(self, array):
        host = (ctypes.c_float * array.count)()
        self._call("cudaMemcpy", host, ctypes.c_void_p(array.pointer), ctypes.c_size_t(4 * array.count), 2)
        self._call("cudaFree", ctypes.c_void_p(array.pointer))
        return list(host)


def main():
    try:
        mpi = WithMpi4py()
    except Exception:  # mpi4py is missing, or was made for another MPI
        mpi = WithLibmpi()
    status = 0
    try:
        arrays = {"torch": Torch, "cupy": Cupy, "runtime": Runtime}[sys.argv[1]](mpi.rank)
        for count in COUNTS:
            wanted = [mpi.size * (mpi.size + 1) // 2 * (i % 1000 + 1) for i in range(count)]
            for make in (arrays.make, arrays.make_aside):
                array = make(count, mpi.rank + 1)
                mpi.sum_in_place(array, arrays.pointer(array), count)
                if arrays.read(array) != wanted:
                    print(f"WRONG rank {mpi.rank}: {count} elements of {sys.argv[1]}, {make.__name__}")
                    status = 1
        if mpi.rank == 0 and status == 0:
            print(f"ok   arrays of {' '.join(sys.argv[1:])} by {mpi.name}")
    except ImportError as error:
        status = 77
        if mpi.rank == 0:
            print(f"skip {sys.argv[1]}: {error}")
    mpi.finish()
    return status


if __name__ == "__main__":
    sys.exit(main())
