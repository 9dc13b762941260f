"""Wave-synchronous training of a PyTorch model: libhetcoll_wsp through ctypes.

    import hetcoll_wsp
    hetcoll_wsp.init()                                  # MPI_Init
    training = hetcoll_wsp.Training(model.parameters(), distance=2)
    for batch in batches:
        loss(model, batch).backward()
        optimizer.step()
        training.step()                                 # what the optimizer changed, averaged
    training.flush()                                    # the same weights on all ranks: save them now
    training.free()
    hetcoll_wsp.finalize()

The optimizer stays the program's own, and its state stays on its rank. include/hetcoll_wsp.h and
docs/unequal-gpus.md have the contract. HETCOLL_WSP_LIBRARY names the library where it is not installed.
"""
import ctypes
import os

import torch

_library = None
_TYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3}
_THREAD_MULTIPLE = 3


class Options(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int)
                for name in ("distance", "steps_per_wave", "in_flight", "deterministic", "progress_us")]


class Statistics(ctypes.Structure):
    _fields_ = [("steps", ctypes.c_uint64), ("waves", ctypes.c_uint64), ("waves_applied", ctypes.c_uint64),
                ("max_staleness", ctypes.c_uint64), ("staleness_bound", ctypes.c_uint64),
                ("compute_ms", ctypes.c_double), ("blocked_ms", ctypes.c_double),
                ("mean_lead", ctypes.c_double), ("max_lead", ctypes.c_uint64)]


def _world():
    # What Open MPI's mpi.h means by MPI_COMM_WORLD.
    if _library is None:
        raise RuntimeError("call hetcoll_wsp.init() first")
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(_library, "ompi_mpi_comm_world")))


def _check(code):
    if code != 0:
        raise RuntimeError(_library.hetcoll_wsp_error_message().decode())


def init():
    """Loads the library and initializes MPI, unless mpi4py or somebody else has."""
    global _library
    _library = ctypes.CDLL(os.environ.get("HETCOLL_WSP_LIBRARY", "libhetcoll_wsp.so.0"), ctypes.RTLD_GLOBAL)
    _library.hetcoll_wsp_error_message.restype = ctypes.c_char_p
    begun = ctypes.c_int()
    _library.MPI_Initialized(ctypes.byref(begun))
    if not begun.value:
        _library.MPI_Init_thread(None, None, _THREAD_MULTIPLE, ctypes.byref(ctypes.c_int()))


def finalize():
    _library.MPI_Finalize()


def _ask(function):
    world, answer = _world(), ctypes.c_int()
    getattr(_library, function)(world, ctypes.byref(answer))
    return answer.value


def rank():
    return _ask("MPI_Comm_rank")


def size():
    return _ask("MPI_Comm_size")


class Training:
    """The parameters become views of one vector, which the library keeps. scale: what this rank's
    updates count, 1 / size() for a mean over the ranks (or this rank's share of the whole batch,
    where the ranks' batches differ)."""

    def __init__(self, parameters, distance=1, steps_per_wave=1, deterministic=False, progress_us=500,
                 scale=None):
        parameters = list(parameters)
        if len({(p.dtype, p.device) for p in parameters}) != 1 or parameters[0].dtype not in _TYPES:
            raise ValueError("give parameters of one floating-point type on one device, others to a Training of their own")
        self.weights = torch.cat([p.detach().reshape(-1) for p in parameters])
        start = 0
        for parameter in parameters:
            view = self.weights[start:start + parameter.numel()]
            parameter.data = view.view(parameter.shape)
            start += parameter.numel()
        self.scale = 1 / size() if scale is None else scale
        self._handle = ctypes.c_void_p()
        options = Options(distance, steps_per_wave, 1, int(deterministic), progress_us)
        self._finish_work()
        _check(_library.hetcoll_wsp_create(
            _world(), ctypes.c_void_p(self.weights.data_ptr()), ctypes.c_size_t(self.weights.numel()),
            _TYPES[self.weights.dtype], ctypes.byref(options), ctypes.byref(self._handle)))
        self.before = self.weights.clone()
        self.update = torch.empty_like(self.weights)

    def _finish_work(self):
        if self.weights.is_cuda:  # the library orders only after the legacy default stream
            torch.cuda.current_stream(self.weights.device).synchronize()

    def step(self):
        """After optimizer.step(): gives what it changed to all ranks, and gets what has come from them."""
        torch.sub(self.weights, self.before, out=self.update).mul_(self.scale)
        self.weights.copy_(self.before)  # the library adds the update itself
        self._finish_work()
        _check(_library.hetcoll_wsp_step(self._handle, ctypes.c_void_p(self.update.data_ptr())))
        self.before.copy_(self.weights)

    def flush(self):
        """Collective. After it all ranks have the same weights."""
        self._finish_work()
        _check(_library.hetcoll_wsp_flush(self._handle))
        self.before.copy_(self.weights)

    def statistics(self):
        all_of_it = Statistics()
        _check(_library.hetcoll_wsp_get_statistics(self._handle, ctypes.byref(all_of_it)))
        return all_of_it

    def free(self):
        """Collective. The parameters keep their values."""
        _check(_library.hetcoll_wsp_free(ctypes.byref(self._handle)))
