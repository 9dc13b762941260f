// hetcoll_stream.h for PyTorch: sums a CUDA tensor over all ranks in the order of PyTorch's current
// stream. train_torch.py builds and loads it.
#include <hetcoll_stream.h>

#include <ATen/cuda/CUDAContext.h>
#include <torch/extension.h>

#include <stdexcept>
#include <string>

namespace {

void must(int code, const char *call)
{
    if (code != MPI_SUCCESS) {
        throw std::runtime_error(std::string(call) + ": MPI error " + std::to_string(code));
    }
}

hetcoll_stream_t current_stream() { return at::cuda::getCurrentCUDAStream().stream(); }

MPI_Datatype type_of(const torch::Tensor &tensor)
{
    switch (tensor.scalar_type()) {
    case torch::kFloat32: return MPI_FLOAT;
    case torch::kFloat64: return MPI_DOUBLE;
    case torch::kInt32: return MPI_INT32_T;
    case torch::kInt64: return MPI_INT64_T;
    default: throw std::runtime_error("sum_: float32, float64, int32 or int64, please");
    }
}

// The current stream, for tensors of at most `most_bytes`. By all ranks.
void attach(std::size_t most_bytes)
{
    int initialised = 0, level = 0;
    MPI_Initialized(&initialised);
    if (initialised == 0) {
        must(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "MPI_Init_thread");
    }
    must(hetcoll_stream_attach(MPI_COMM_WORLD, current_stream(), most_bytes), "attach");
}

void check() { must(hetcoll_stream_check(MPI_COMM_WORLD, current_stream()), "check"); }
void detach() { must(hetcoll_stream_detach(MPI_COMM_WORLD, current_stream()), "detach"); }

// In place. Returns when it is queued: the tensor must stay until the stream has come past it.
void sum_(torch::Tensor tensor)
{
    if (!tensor.is_cuda() || !tensor.is_contiguous()) {
        throw std::runtime_error("sum_: a contiguous CUDA tensor, please");
    }
    must(hetcoll_allreduce_enqueue(MPI_IN_PLACE, tensor.data_ptr(),
                                   static_cast<int>(tensor.numel()), type_of(tensor), MPI_SUM,
                                   MPI_COMM_WORLD, current_stream()),
         "allreduce");
}

int rank()
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int size()
{
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.def("attach", &attach);
    module.def("check", &check);
    module.def("detach", &detach);
    module.def("finalize", [] { MPI_Finalize(); });
    module.def("rank", &rank);
    module.def("size", &size);
    module.def("sum_", &sum_);
}
