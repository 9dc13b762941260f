// Info key hetcoll_stream: MPI_Allreduce waits for the stream that its communicator names, and for
// the legacy stream no more.
#include "test/mpi/check.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace hetcoll::test {
namespace {

CUdeviceptr address(const void *pointer)
{
    return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
}

class Info {
public:
    explicit Info(const char *value)
    {
        MPI_Info_create(&info_);
        MPI_Info_set(info_, "hetcoll_stream", value);
    }
    ~Info() { MPI_Info_free(&info_); }
    Info(const Info &) = delete;
    Info &operator=(const Info &) = delete;
    [[nodiscard]] MPI_Info get() const noexcept { return info_; }

private:
    MPI_Info info_ = MPI_INFO_NULL;
};

std::string told(MPI_Comm comm)
{
    MPI_Info info = MPI_INFO_NULL;
    std::array<char, 64> value{};
    int given = 0;
    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, "hetcoll_stream", static_cast<int>(value.size()) - 1, value.data(), &given);
    MPI_Info_free(&info);
    return given != 0 ? value.data() : "";
}

class Streams {
public:
    explicit Streams(Program &program) : program_(program)
    {
        must(driver().cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        std::array<char, 32> text{};
        std::snprintf(text.data(), text.size(), "%p", static_cast<void *>(stream_));
        name_ = text.data();
    }
    ~Streams() { driver().cuStreamDestroy(stream_); }
    Streams(const Streams &) = delete;
    Streams &operator=(const Streams &) = delete;

    // The input is made on the stream while the device stands still.
    void named_work_is_waited_for(MPI_Comm comm, const Emulated &emulated, bool nonblocking);
    // Work on the legacy stream ends after the call: were it waited for, the call would not end.
    void legacy_work_is_not(MPI_Comm comm, const Emulated &emulated);

    [[nodiscard]] const std::string &name() const noexcept { return name_; }

private:
    [[nodiscard]] const Driver &driver() const { return program_.gpu().driver(); }
    void must(CUresult result, const char *call) const
    {
        program_.require(driver_status(driver(), result, call, "testing a named stream"));
    }
    [[nodiscard]] Buffer allocate(std::size_t bytes) const
    {
        auto made = Buffer::allocate(&program_.gpu(), Memory::kDevice, bytes);
        program_.require(made.status());
        return std::move(*made);
    }
    void expect_sum(const Buffer &buffer, std::size_t bytes, const char *what) const
    {
        std::vector<unsigned char> seen(bytes);
        program_.require(buffer.read(0, seen.data(), bytes));
        std::size_t wrong = 0;
        for (const unsigned char byte : seen) {
            wrong += byte != program_.ranks();
        }
        program_.check(wrong == 0, "%s: %zu of %zu bytes are wrong", what, wrong, bytes);
    }

    Program &program_;
    CUstream stream_ = nullptr;
    std::string name_;
};

void Streams::named_work_is_waited_for(MPI_Comm comm, const Emulated &emulated, bool nonblocking)
{
    for (const std::size_t bytes : {8, 4'000, 100'000, 2'000'000}) {
        const Buffer buffer = allocate(bytes);
        std::vector<unsigned char> image(bytes, 0x70);
        program_.require(buffer.write(0, image.data(), bytes));
        MPI_Barrier(comm);
        emulated.hold_devices(true);
        must(driver().cuMemsetD8Async(address(buffer.data()), 1, bytes, stream_),
             "cuMemsetD8Async");
        std::thread release([&emulated] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            emulated.hold_devices(false);
        });
        const int count = static_cast<int>(bytes);
        MPI_Request request = MPI_REQUEST_NULL;
        int code = nonblocking ? MPI_Iallreduce(MPI_IN_PLACE, buffer.data(), count, MPI_UINT8_T,
                                                MPI_SUM, comm, &request)
                               : MPI_Allreduce(MPI_IN_PLACE, buffer.data(), count, MPI_UINT8_T,
                                               MPI_SUM, comm);
        if (nonblocking && code == MPI_SUCCESS) {
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        release.join();
        program_.check(code == MPI_SUCCESS, "MPI error %d", code);
        expect_sum(buffer, bytes, nonblocking ? "nonblocking" : "blocking");
    }
}

void Streams::legacy_work_is_not(MPI_Comm comm, const Emulated &emulated)
{
    const auto launch =
        reinterpret_cast<decltype(&::cuLaunchHostFunc)>(emulated.find("cuLaunchHostFunc"));
    if (launch == nullptr) {
        return;
    }
    const std::size_t bytes = 100'000;
    const Buffer buffer = allocate(bytes);
    std::vector<unsigned char> image(bytes, 1);
    program_.require(buffer.write(0, image.data(), bytes));
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), 1, MPI_UINT8_T, MPI_MAX,
                  comm); // makes what it needs
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(bytes), MPI_UINT8_T, MPI_MAX, comm);
    std::atomic<bool> returned{false}, gave_up{false};
    struct Wait {
        std::atomic<bool> &returned, &gave_up;
    } wait{returned, gave_up};
    const auto stand = [](void *given) {
        const auto &flags = *static_cast<Wait *>(given);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!flags.returned && !flags.gave_up) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
            flags.gave_up = std::chrono::steady_clock::now() > end;
        }
    };
    must(launch(nullptr, stand, &wait), "cuLaunchHostFunc");
    const int code = MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(bytes),
                                   MPI_UINT8_T, MPI_SUM, comm);
    returned = true;
    program_.check(code == MPI_SUCCESS && !gave_up, "a call waits for the legacy stream, code %d",
                   code);
    must(driver().cuStreamSynchronize(nullptr), "cuStreamSynchronize");
    expect_sum(buffer, bytes, "alongside legacy work");
}

void run(Program &program)
{
    program.gpu();
    const Emulated emulated;
    Streams streams(program);
    const Info info(streams.name().c_str()), none("none"), wrong("stream 7");

    MPI_Comm set = MPI_COMM_NULL, made = MPI_COMM_NULL, copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &set);
    MPI_Comm_set_info(set, info.get());
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info.get(), &made);
    for (const MPI_Comm comm : {set, made}) {
        program.check(told(comm) == streams.name(), "the communicator tells '%s', not '%s'",
                      told(comm).c_str(), streams.name().c_str());
        streams.named_work_is_waited_for(comm, emulated, false);
        streams.named_work_is_waited_for(comm, emulated, true);
        streams.legacy_work_is_not(comm, emulated);
    }
    MPI_Comm_dup(set, &copy);
    MPI_Comm_set_info(set, none.get());
    MPI_Comm_set_info(copy, wrong.get());
    program.check(told(copy) != "stream 7", "the communicator tells '%s'", told(copy).c_str());
    for (const MPI_Comm comm : {set, copy}) { // as those that name none
        check_allreduce(program, comm,
                        {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 3}, 50'000});
    }
    for (MPI_Comm *comm : {&set, &made, &copy}) {
        MPI_Comm_free(comm);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "named_stream");
    run(program);
    return program.finish();
}
