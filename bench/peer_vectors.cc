#include "bench/peer_vectors.h"

#include "test/gpu/small_numbers.h"

#include <cerrno>
#include <cstring>

namespace hetcoll {
namespace {

constexpr unsigned kContent = 1; // of test::digit()

CUdeviceptr device(const void *pointer)
{
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

} // namespace

PeerVectors::PeerVectors(const Gpu &gpu, const Device &device_of, PeersIn where, int ranks,
                         std::size_t count)
    : gpu_(gpu), count_(count)
{
    for (int rank = 0; rank < ranks; ++rank) {
        const PeersIn place = rank == 0 ? PeersIn::kOwnMemory : where;
        inputs_.push_back(make(device_of, place));
        outputs_.push_back(make(device_of, place));
        const Vector &input = inputs_.back();
        const auto content = test::input_of(rank, HETCOLL_FLOAT32, count, kContent);
        if (input.on_host != nullptr) {
            std::memcpy(input.on_host.get(), content.data(), bytes());
        } else {
            require(gpu.driver().cuMemcpyHtoD(device(input.address), content.data(), bytes()),
                    "cuMemcpyHtoD");
        }
    }
}

PeerVectors::Vector PeerVectors::make(const Device &device, PeersIn where) const
{
    Vector made;
    if (where == PeersIn::kOwnMemory) {
        made.on_device = require(device.make_memory(bytes()));
        made.address = reinterpret_cast<void *>(made.on_device.get());
        return made;
    }
    void *const memory =
        mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        require(error(Errc::kNoMemory, "kernel_bench: no shared memory for %zu bytes: %s", bytes(),
                      std::strerror(errno)));
    }
    made.on_host = {memory, Unmap{bytes()}};
    made.registered = require(device.register_host(memory, bytes()));
    made.address = reinterpret_cast<void *>(require(device.address_of(made.registered)));
    return made;
}

ReduceInputs PeerVectors::inputs(int how_many) const
{
    ReduceInputs inputs{};
    for (int i = 0; i < how_many; ++i) {
        inputs.input[inputs.count++] = inputs_[static_cast<std::size_t>(i)].address;
    }
    return inputs;
}

ReduceOutputs PeerVectors::outputs(int how_many) const
{
    ReduceOutputs outputs{};
    for (int i = 0; i < how_many; ++i) {
        outputs.output[outputs.count++] = outputs_[static_cast<std::size_t>(i)].address;
    }
    return outputs;
}

std::vector<unsigned char> PeerVectors::sum_of(int inputs) const
{
    return test::result_of(inputs, HETCOLL_FLOAT32, HETCOLL_SUM, count_, kContent);
}

void PeerVectors::clear(int outputs) const
{
    for (int i = 0; i < outputs; ++i) {
        const Vector &output = outputs_[static_cast<std::size_t>(i)];
        if (output.on_host != nullptr) {
            std::memset(output.on_host.get(), 0xee, bytes());
        } else {
            require(gpu_.driver().cuMemsetD8(device(output.address), 0xee, bytes()), "cuMemsetD8");
        }
    }
    require(gpu_.driver().cuCtxSynchronize(), "cuCtxSynchronize"); // cuMemsetD8 may still run
}

void PeerVectors::check(int outputs, const std::vector<unsigned char> &sum) const
{
    std::vector<unsigned char> copied;
    for (int i = 0; i < outputs; ++i) {
        const Vector &output = outputs_[static_cast<std::size_t>(i)];
        const void *got = output.on_host.get();
        if (got == nullptr) {
            copied.resize(bytes());
            require(gpu_.driver().cuMemcpyDtoH(copied.data(), device(output.address), bytes()),
                    "cuMemcpyDtoH");
            got = copied.data();
        }
        if (std::memcmp(got, sum.data(), bytes()) != 0) {
            require(error(Errc::kInvalid,
                          "kernel_bench: output %d of %d, %zu bytes in %s memory, is not the sum: "
                          "no time of this run counts",
                          i, outputs, bytes(), output.on_host != nullptr ? "host" : "device"));
        }
    }
}

} // namespace hetcoll
