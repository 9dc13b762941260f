#include "measure/workload.h"

#include <utility>
#include <vector>

namespace hetcoll {

namespace {

constexpr char kGarbage = '\xee';

class Vector : public Workload {
public:
    Vector(const VectorSpec &spec, Buffer send, Buffer recv)
        : spec_(spec), send_(std::move(send)), recv_(std::move(recv)), host_(recv_.bytes())
    {
    }

    Status fill(int rank) override
    {
        fill_input(spec_.pattern, rank, spec_.count, host_.data());
        if (spec_.in_place) {
            return recv_.write(0, host_.data(), host_.size());
        }
        Status status = send_.write(0, host_.data(), host_.size());
        if (status.ok()) {
            const std::vector<char> garbage(host_.size(), kGarbage);
            status = recv_.write(0, garbage.data(), garbage.size());
        }
        return status;
    }

    Result<Outcome> check(int ranks) override
    {
        Status status = recv_.read(0, host_.data(), host_.size());
        if (!status.ok()) {
            return status;
        }
        return Outcome{compare_result(spec_.pattern, ranks, spec_.count, host_.data()).wrong,
                       checksum(spec_.pattern.kind, spec_.count, host_.data())};
    }

    [[nodiscard]] WorkloadReduction reduction() const override
    {
        return {spec_.in_place ? MPI_IN_PLACE : send_.data(),
                recv_.data(),
                spec_.count,
                recv_.bytes(),
                spec_.type,
                spec_.op};
    }

private:
    VectorSpec spec_;
    Buffer send_, recv_;
    std::vector<char> host_;
};

} // namespace

Result<std::unique_ptr<Workload>> make_vector(const Gpu *gpu, const VectorSpec &spec)
{
    const std::size_t bytes = spec.count * element_bytes(spec.pattern.kind);
    Result<Buffer> send = Buffer::allocate(gpu, spec.memory, spec.in_place ? 0 : bytes);
    if (!send.ok()) {
        return send.take_status();
    }
    Result<Buffer> recv = Buffer::allocate(gpu, spec.memory, bytes);
    if (!recv.ok()) {
        return recv.take_status();
    }
    return std::unique_ptr<Workload>(
        std::make_unique<Vector>(spec, std::move(*send), std::move(*recv)));
}

} // namespace hetcoll
