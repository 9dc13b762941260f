#include "test/unit/transport_peer.h"

#include "test/unit/child.h"
#include "test/unit/device_cuda.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

namespace hetcoll::test {
namespace {

constexpr std::size_t kGranule = std::size_t{2} << 20;

bool write_whole(int fd, const auto &value)
{
    return send(fd, &value, sizeof value, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof value);
}

bool read_whole(int fd, auto &value)
{
    auto *at = reinterpret_cast<char *>(&value);
    for (std::size_t got = 0; got < sizeof value;) {
        const ssize_t more = read(fd, at + got, sizeof value - got);
        if (more <= 0) {
            return false;
        }
        got += static_cast<std::size_t>(more);
    }
    return true;
}

// Memory of one of the types.
class Buffer {
public:
    Buffer(PeerMemoryType type, std::size_t bytes, int pieces, int device) : type_(type)
    {
        switch (type) {
        case PeerMemoryType::kPlain: HETCOLL_REQUIRE(cuda().driver->cuMemAlloc(&at_, bytes)); break;
        case PeerMemoryType::kManaged:
            HETCOLL_REQUIRE(cuda().driver->cuMemAllocManaged(&at_, bytes, CU_MEM_ATTACH_GLOBAL));
            break;
        case PeerMemoryType::kPool:
            HETCOLL_REQUIRE(cuda().cuMemAllocAsync(&at_, bytes, nullptr));
            HETCOLL_REQUIRE(cuda().driver->cuCtxSynchronize());
            break;
        default: map_pieces(pieces, device); break;
        }
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    ~Buffer()
    {
        if (type_ == PeerMemoryType::kPool) {
            HETCOLL_REQUIRE(cuda().cuMemFreeAsync(at_, nullptr));
            HETCOLL_REQUIRE(cuda().driver->cuCtxSynchronize());
        } else if (reserved_ == 0) {
            HETCOLL_REQUIRE(cuda().driver->cuMemFree(at_));
        } else {
            HETCOLL_REQUIRE(cuda().cuMemUnmap(at_, reserved_));
            HETCOLL_REQUIRE(cuda().cuMemAddressFree(at_, reserved_));
        }
    }
    [[nodiscard]] CUdeviceptr at() const { return at_; }

private:
    void map_pieces(int pieces, int device)
    {
        reserved_ = static_cast<std::size_t>(pieces) * kGranule;
        CUmemAllocationProp properties{};
        properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
        if (type_ == PeerMemoryType::kVmm) {
            properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        }
        HETCOLL_REQUIRE(cuda().cuMemAddressReserve(&at_, reserved_, 0, 0, 0));
        for (CUdeviceptr at = at_; at < at_ + reserved_; at += kGranule) {
            CUmemGenericAllocationHandle handle = 0;
            HETCOLL_REQUIRE(cuda().cuMemCreate(&handle, kGranule, &properties, 0));
            HETCOLL_REQUIRE(cuda().cuMemMap(at, kGranule, 0, handle, 0));
            HETCOLL_REQUIRE(cuda().cuMemRelease(handle));
        }
        CUmemAccessDesc access{};
        access.location = properties.location;
        access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        HETCOLL_REQUIRE(cuda().cuMemSetAccess(at_, reserved_, &access, 1));
    }

    PeerMemoryType type_;
    CUdeviceptr at_ = 0;
    std::size_t reserved_ = 0;
};

int launches = 0;

// The driver, but that a launch of a kernel has no effect: that with the number in
// HETCOLL_TEST_LOST_LAUNCH, or with "writes" every second one, which a probe writes by.
const Driver &driver_of_devices()
{
    static const Driver made = [] {
        Driver driver = *cuda().driver;
        if (std::getenv("HETCOLL_TEST_LOST_LAUNCH") != nullptr) {
            driver.cuLaunchKernel = [](auto... arguments) {
                const std::string lost = std::getenv("HETCOLL_TEST_LOST_LAUNCH");
                ++launches;
                return lost == std::to_string(launches) || (lost == "writes" && launches % 2 == 0)
                           ? CUDA_SUCCESS
                           : cuda().driver->cuLaunchKernel(arguments...);
            };
        }
        return driver;
    }();
    return made;
}

// The process that answers.
class Server {
public:
    explicit Server(int ordinal) : ordinal_(ordinal)
    {
        const auto identity = node_identity(std::getenv("HETCOLL_TEST_WORD"));
        EXPECT_TRUE(identity.ok());
        self_ = identity->process;
        auto socket = FdSocket::create({});
        EXPECT_TRUE(socket.ok());
        socket_ = *socket;
        exporter_ = Exporter::create(*cuda().driver, socket_, {}, 8);
        memory_ = PeerMemory::create(*cuda().driver, self_, socket_, {}, {});
        enter();
    }
    ~Server()
    {
        probe_.reset();
        target_.reset();
        lease_.release();
        other_lease_.release();
        memory_.reset();
        exporter_.reset();
        buffers_.clear();
        device_.reset();
        cuda().driver->cuCtxSetCurrent(nullptr);
        cuda().driver->cuDevicePrimaryCtxRelease(0); // that of Cuda itself
    }
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    PeerAnswer answer(const PeerQuestion &question);

private:
    void enter()
    {
        auto context = retain_primary_context(*cuda().driver, ordinal_);
        EXPECT_TRUE(context.ok()) << context.status().message();
        device_ = std::make_shared<Device>(driver_of_devices(), *context, ordinal_);
        cuda().driver->cuCtxSetCurrent(*context);
    }
    void answer_as_owner(const PeerQuestion &question, PeerAnswer &answer);
    void answer_as_user(const PeerQuestion &question, PeerAnswer &answer);
    void answer_probe(const PeerQuestion &question, PeerAnswer &answer);
    void map(const PeerQuestion &question, PeerLease &lease, PeerAnswer &answer);
    void map_in_threads(const PeerQuestion &question, PeerAnswer &answer);
    static void note(PeerAnswer &answer, const Status &status)
    {
        answer.ok = status.ok();
        if (!status.ok()) {
            std::snprintf(answer.message, sizeof answer.message, "%s", status.message().c_str());
        }
    }

    int ordinal_;
    ProcessIdentity self_{};
    std::shared_ptr<Device> device_;
    std::shared_ptr<FdSocket> socket_;
    std::unique_ptr<Exporter> exporter_;
    std::unique_ptr<PeerMemory> memory_;
    PeerLease lease_, other_lease_;
    std::map<int, std::unique_ptr<Buffer>> buffers_;
    std::unique_ptr<ReachTarget> target_;
    std::unique_ptr<ReachProbe> probe_;
    int last_slot_ = 0;
};

PeerAnswer Server::answer(const PeerQuestion &question)
{
    PeerAnswer answer;
    answer.identity = self_;
    answer_as_owner(question, answer);
    answer_as_user(question, answer);
    answer_probe(question, answer);
    switch (question.ask) {
    case Ask::kFaults: cuda().emulated_gpu_set_faults(question.text); break;
    case Ask::kCalls:
        answer.word = static_cast<std::uint32_t>(cuda().emulated_gpu_calls(question.text));
        break;
    case Ask::kStep: socket_->step(); break;
    case Ask::kCounters:
        answer.peer = memory_->counters();
        answer.exporter = exporter_->counters();
        break;
    case Ask::kDescriptors:
        answer.word = static_cast<decltype(answer.word)>(open_descriptors());
        break;
    case Ask::kReset:
        HETCOLL_REQUIRE(cuda().cuDevicePrimaryCtxReset(ordinal_));
        buffers_.clear();
        device_.reset();
        enter();
        break;
    case Ask::kNewContext: {
        CUcontext made = nullptr;
        HETCOLL_REQUIRE(cuda().cuCtxCreate_v2(&made, 0, ordinal_));
        device_ = std::make_shared<Device>(driver_of_devices(), made, -1);
        break;
    }
    case Ask::kAttach: {
        auto page = SharedPage::attach(question.ticket);
        note(answer, page.status());
        if (page.ok()) {
            answer.word = *static_cast<std::uint32_t *>(page->data());
            *static_cast<std::uint32_t *>(page->data()) = answer.word + 1;
        }
        break;
    }
    default: break;
    }
    return answer;
}

void Server::answer_as_owner(const PeerQuestion &question, PeerAnswer &answer)
{
    switch (question.ask) {
    case Ask::kAllocate:
        answer.slot = ++last_slot_;
        buffers_[answer.slot] =
            std::make_unique<Buffer>(question.type, question.bytes, question.pieces, ordinal_);
        answer.address = buffers_[answer.slot]->at();
        break;
    case Ask::kFree: buffers_.erase(question.slot); break;
    case Ask::kFill:
        HETCOLL_REQUIRE(cuda().driver->cuMemcpyHtoD(
            buffers_.at(question.slot)->at() + question.offset, &question.word, 4));
        break;
    case Ask::kDescribe: {
        void *const at = pointer(buffers_.at(question.slot)->at() + question.offset);
        auto allocation = query_allocation(*cuda().driver, at);
        note(answer, allocation.status());
        if (allocation.ok()) {
            allocation->own = false; // as the application's
            answer.buffer = exporter_->describe(*allocation, at, question.bytes);
        }
        break;
    }
    case Ask::kCloseExports: exporter_->close_all(); break;
    case Ask::kLook:
        exporter_->look_for_freed();
        exporter_->release_freed();
        break;
    case Ask::kLookInCall: exporter_->look_sometimes(); break;
    case Ask::kTellFreed:
        answer.freed = exporter_->tell_freed({&question.owner, 1}, std::array{0});
        break;
    case Ask::kWithdraw: exporter_->withdraw(question.buffer); break;
    default: break;
    }
}

void Server::answer_as_user(const PeerQuestion &question, PeerAnswer &answer)
{
    switch (question.ask) {
    case Ask::kMap: map(question, lease_, answer); break;
    case Ask::kMapElsewhere: map(question, other_lease_, answer); break;
    case Ask::kRead:
        note(answer, driver_status(*cuda().driver,
                                   cuda().driver->cuMemcpyDtoH(&answer.word, question.address, 4),
                                   "cuMemcpyDtoH", "testing"));
        break;
    case Ask::kRelease: lease_.release(); break;
    case Ask::kCloseAll: memory_->close_all(); break;
    case Ask::kCloseOwner: memory_->close_owner(question.owner); break;
    case Ask::kForget: memory_->forget(question.owner, question.freed); break;
    case Ask::kCloseFreed: memory_->close_freed(); break;
    case Ask::kLimits:
        memory_->set_limits({.mappings = question.pieces, .bytes = question.bytes});
        break;
    case Ask::kMapInThreads: map_in_threads(question, answer); break;
    default: break;
    }
}

void Server::map(const PeerQuestion &question, PeerLease &lease, PeerAnswer &answer)
{
    auto at = memory_->map(question.owner, question.buffer, question.bytes, *device_, lease);
    note(answer, at.status());
    if (at.ok() && *at != nullptr) {
        answer.address = reinterpret_cast<std::uintptr_t>(*at);
        note(answer, driver_status(*cuda().driver,
                                   cuda().driver->cuMemcpyDtoH(&answer.word, answer.address, 4),
                                   "cuMemcpyDtoH", "testing"));
    }
}

void Server::map_in_threads(const PeerQuestion &question, PeerAnswer &answer)
{
    std::vector<std::thread> threads;
    std::atomic<std::uint32_t> right = 0;
    for (int i = 0; i < question.pieces; ++i) {
        threads.emplace_back([&, i] {
            cuda().driver->cuCtxSetCurrent(device_->context());
            PeerLease lease;
            for (std::size_t time = 0; time < question.bytes; ++time) {
                std::uint32_t word = 0;
                auto at = memory_->map(question.owner, question.buffer, 1, *device_, lease);
                right += at.ok() && *at != nullptr &&
                         cuda().driver->cuMemcpyDtoH(&word, reinterpret_cast<std::uintptr_t>(*at),
                                                     4) == CUDA_SUCCESS &&
                         word == question.word;
                lease.release();
                if (i == 0) {
                    memory_->close_all();
                }
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    answer.word = right;
}

void Server::answer_probe(const PeerQuestion &question, PeerAnswer &answer)
{
    switch (question.ask) {
    case Ask::kOffer: {
        auto target = ReachTarget::create(device_, *exporter_);
        note(answer, target.status());
        if (!target.ok()) {
            break;
        }
        target_ = std::move(*target);
        Result<bool> ready = false;
        while (ready.ok() && !*ready) {
            ready = target_->step();
        }
        note(answer, ready.status());
        answer.offer = target_->offer();
        break;
    }
    case Ask::kProbe: {
        auto probe = ReachProbe::create(device_, *memory_);
        note(answer, probe.status());
        if (probe.ok()) {
            probe_ = std::move(*probe);
            probe_->start(question.owner, question.offer);
        }
        break;
    }
    case Ask::kProbeStep:
        answer.reach = probe_->step();
        std::snprintf(answer.message, sizeof answer.message, "%s",
                      answer.reach == Reach::kNo ? probe_->why().message().c_str() : "");
        break;
    default: break;
    }
}

TEST(TransportPeer, DISABLED_Serve)
{
    const int socket = std::atoi(std::getenv("HETCOLL_TEST_SOCKET"));
    Server server(std::atoi(std::getenv("HETCOLL_TEST_ORDINAL")));
    for (PeerQuestion question; read_whole(socket, question);) {
        ASSERT_TRUE(write_whole(socket, server.answer(question)));
    }
}

} // namespace

Peer::Peer(const std::vector<std::string> &environment, int ordinal)
{
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    process_ = fork();
    if (process_ == 0) {
        close(ends[0]);
        for (const std::string &variable : environment) {
            putenv(const_cast<char *>(variable.c_str()));
        }
        setenv("HETCOLL_TEST_SOCKET", std::to_string(ends[1]).c_str(), 1);
        setenv("HETCOLL_TEST_ORDINAL", std::to_string(ordinal).c_str(), 1);
        execl("/proc/self/exe", "test", "--gtest_filter=TransportPeer.DISABLED_Serve",
              "--gtest_also_run_disabled_tests", "--gtest_brief=1", static_cast<char *>(nullptr));
        _exit(127);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFD, FD_CLOEXEC); // another peer must not keep it open: its end ends this
    socket_ = ends[0];
    identity_ = ask(Ask::kHello).identity;
}

Peer::~Peer()
{
    close(socket_);
    int status = 0;
    waitpid(process_, &status, 0);
    EXPECT_TRUE(killed_ || status == 0) << "a peer ended with " << status;
}

void Peer::kill()
{
    killed_ = true;
    ::kill(process_, SIGKILL);
    siginfo_t gone;
    waitid(P_PID, static_cast<id_t>(process_), &gone, WEXITED | WNOWAIT);
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
}

PeerAnswer Peer::ask(const PeerQuestion &question) const
{
    PeerAnswer answer;
    EXPECT_TRUE(write_whole(socket_, question));
    EXPECT_TRUE(read_whole(socket_, answer)) << "a peer ended early";
    return answer;
}

void Peer::tell(const PeerQuestion &question) const
{
    const PeerAnswer answer = ask(question);
    EXPECT_TRUE(answer.ok) << answer.message;
}

int Peer::allocate(std::size_t bytes, PeerMemoryType type, int pieces) const
{
    return ask({.ask = Ask::kAllocate, .type = type, .pieces = pieces, .bytes = bytes}).slot;
}

void Peer::free(int slot) const { tell({.ask = Ask::kFree, .slot = slot}); }

void Peer::fill(int slot, std::uint32_t word, std::size_t offset) const
{
    tell({.ask = Ask::kFill, .slot = slot, .offset = offset, .word = word});
}

SharedBuffer Peer::describe(int slot, std::size_t offset, std::size_t bytes) const
{
    const PeerAnswer answer =
        ask({.ask = Ask::kDescribe, .slot = slot, .bytes = bytes, .offset = offset});
    EXPECT_TRUE(answer.ok) << answer.message;
    return answer.buffer;
}

PeerAnswer Peer::map(const Peer &owner, const SharedBuffer &buffer) const
{
    const PeerQuestion question{.ask = Ask::kMap, .owner = owner.identity(), .buffer = buffer};
    PeerAnswer answer = ask(question);
    for (int i = 0; i < 3 && answer.ok && answer.address == 0; ++i) {
        owner.tell(Ask::kStep);
        answer = ask(question);
    }
    return answer;
}

std::uint32_t Peer::read(std::uint64_t address) const
{
    const PeerAnswer answer = ask({.ask = Ask::kRead, .address = address});
    EXPECT_TRUE(answer.ok) << answer.message;
    return answer.word;
}

FreedMemory Peer::tell_freed(const Peer &peer) const
{
    tell(Ask::kLook); // which does not ask for what was described since the one before
    tell(Ask::kLook);
    return ask({.ask = Ask::kTellFreed, .owner = peer.identity()}).freed;
}

void Peer::set_limits(int mappings, std::size_t bytes) const
{
    tell({.ask = Ask::kLimits, .pieces = mappings, .bytes = bytes});
}

void Peer::set_faults(const char *faults) const
{
    PeerQuestion question{.ask = Ask::kFaults};
    std::snprintf(question.text, sizeof question.text, "%s", faults);
    tell(question);
}

std::uint32_t Peer::calls(const char *name) const
{
    PeerQuestion question{.ask = Ask::kCalls};
    std::snprintf(question.text, sizeof question.text, "%s", name);
    return ask(question).word;
}

std::string leaks_in(const std::string &path)
{
    std::string text;
    if (std::FILE *const file = std::fopen(path.c_str(), "r"); file != nullptr) {
        text.resize(4096);
        text.resize(std::fread(text.data(), 1, text.size(), file));
        std::fclose(file);
    }
    std::filesystem::remove(path);
    return text;
}

} // namespace hetcoll::test
