#include "bench/flagged_sum.h"

namespace hetcoll {

FlaggedSum::FlaggedSum(const Gpu &gpu)
    : device_(gpu.driver(), gpu.context(), -1), stream_(require(device_.make_stream())),
      flag_(require(device_.make_pinned(sizeof(std::uint32_t)))),
      arrived_(require(device_.make_zeroed(sizeof(std::uint32_t), stream_.get())))
{
    require(device_.kernels().load());
    *flag() = 0;
    const CUdeviceptr address = require(device_.address_of(flag_));
    last_.flag = reinterpret_cast<std::uint32_t *>(address);
    last_.arrived = reinterpret_cast<std::uint32_t *>(arrived_.get());
}

void FlaggedSum::launch(const ReduceOutputs &outputs, const ReduceInputs &inputs, std::size_t count)
{
    ++last_.value;
    require(device_.kernels().reduce_many_async(ReduceOp::kSum, ElementKind::kFloat32, outputs,
                                                inputs, count, last_, stream_.get()));
}

bool FlaggedSum::is_done()
{
    // A failed kernel never sets its flag. The question costs more than a small sum takes.
    constexpr unsigned kPollsOfQuestion = 1 << 16;
    if (read_flag(flag()) == last_.value) {
        return true;
    }
    if (++polls_ % kPollsOfQuestion == 0 && require(device_.is_idle(stream_.get())) &&
        read_flag(flag()) != last_.value) {
        require(error(Errc::kDriver,
                      "kernel_bench: the stream is idle, but the flag of sum %u "
                      "holds %u: no result here is to be trusted",
                      last_.value, read_flag(flag())));
    }
    return false;
}

void FlaggedSum::wait()
{
    while (!is_done()) {
    }
}

} // namespace hetcoll
