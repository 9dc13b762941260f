"""Arrays in device memory for mpi4py's tests: what CuPy would be, by the CUDA driver alone.

register() makes them the only kind of array that the tests use. They offer the pointer as CuPy does, by
__cuda_array_interface__; elements are read and written by copies.
"""

import array
import ctypes

import arrayimpl  # mpi4py's, from its folder of tests

_cuda = ctypes.CDLL("libcuda.so.1")


def _call(name, *arguments):
    result = getattr(_cuda, name)(*arguments)
    if result != 0:
        raise RuntimeError(f"{name} returned {result}")


class _Context:
    """The primary context of device 0, current on this thread."""

    handle = None

    @classmethod
    def enter(cls):
        if cls.handle is None:
            device = ctypes.c_int()
            cls.handle = ctypes.c_void_p()
            _call("cuInit", 0)
            _call("cuDeviceGet", ctypes.byref(device), 0)
            _call("cuDevicePrimaryCtxRetain", ctypes.byref(cls.handle), device)
        _call("cuCtxSetCurrent", cls.handle)


class _Memory:
    def __init__(self, size):
        _Context.enter()
        pointer = ctypes.c_uint64()
        _call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self.pointer = pointer.value

    def write(self, offset, data):
        if data:
            _Context.enter()
            _call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.pointer + offset), data,
                  ctypes.c_size_t(len(data)))

    def read(self, offset, size):
        data = ctypes.create_string_buffer(max(size, 1))
        if size:
            _Context.enter()
            _call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(self.pointer + offset),
                  ctypes.c_size_t(size))
        return data.raw[:size]

    def __del__(self):
        if getattr(self, "pointer", None) is not None and _Context.handle is not None:
            _Context.enter()
            _call("cuMemFree_v2", ctypes.c_uint64(self.pointer))


class DeviceArray(arrayimpl.BaseArray):
    backend = "cuda-driver"

    def __init__(self, arg, typecode, shape=None, readonly=False):
        if shape is None:
            shape = () if isinstance(arg, (int, float)) else (len(arg),)
        try:
            shape = tuple(int(extent) for extent in shape)
        except TypeError:
            shape = (int(shape),)
        self.size = 1
        for extent in shape:
            self.size *= extent
        values = [arg] * self.size if isinstance(arg, (int, float)) else arg
        host = array.array(typecode, values)
        assert len(host) == self.size
        self.typecode = typecode
        self.itemsize = host.itemsize
        self._memory = _Memory(self.size * self.itemsize)
        self._memory.write(0, host.tobytes())
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (self.address, readonly),
            "typestr": arrayimpl.typestr(typecode, self.itemsize),
            "shape": shape,
        }

    @property
    def address(self):
        return self._memory.pointer

    @property
    def array(self):
        """The elements, in host memory: a copy."""
        return array.array(self.typecode, self._memory.read(0, self.size * self.itemsize))

    @property
    def flat(self):
        return self

    def __len__(self):
        return self.size

    def __iter__(self):
        return iter(self.array)

    def __setitem__(self, index, value):
        host = self.array
        host[index] = value.array if isinstance(value, DeviceArray) else value
        self._memory.write(0, host.tobytes())

    def as_raw(self):
        return self


def register():
    arrayimpl.ArrayBackends[:] = [DeviceArray]
