// File descriptors on their way between two sockets. Nothing waits, nothing leaks, strangers get
// nothing.
#include "transport/fd_socket.h"

#include "test/unit/child.h"
#include "test/unit/failing_call.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace hetcoll {
namespace {

// `count` descriptors of one file for every token below 1000.
class Files final : public FdSource {
public:
    explicit Files(int count = 1) : count_(count), file_(memfd_create("hetcoll_test", 0)) {}

    [[nodiscard]] Result<FdBundle> fds_of(std::uint64_t token) override
    {
        ++asked;
        if (token >= 1000) {
            return error(Errc::kInvalid, "no such token");
        }
        FdBundle bundle;
        for (int i = 0; i < count_; ++i) {
            bundle.fds.emplace_back(dup(file_.get()));
            bundle.bytes.push_back(token * 100 + static_cast<std::uint64_t>(i));
        }
        return bundle;
    }
    [[nodiscard]] ino_t inode() const { return inode_of(file_.get()); }
    static ino_t inode_of(int fd)
    {
        struct stat file {};
        EXPECT_EQ(fstat(fd, &file), 0);
        return file.st_ino;
    }

    int asked = 0;

private:
    int count_;
    UniqueFd file_;
};

std::shared_ptr<FdSocket> make_socket()
{
    auto socket = FdSocket::create({});
    EXPECT_TRUE(socket.ok()) << socket.status().message();
    return *socket;
}

TEST(FdSocketTest, TheOwnersNextStepAnswers)
{
    Files files;
    const auto owner = make_socket(), user = make_socket();
    owner->set_source(&files);
    const FdTicket ticket{.socket = owner->name(), .token = 7};
    auto taken = user->take(ticket);
    ASSERT_TRUE(taken.ok()) << taken.status().message();
    EXPECT_FALSE(taken->has_value());
    EXPECT_FALSE(user->take(ticket)->has_value());
    owner->step();
    taken = user->take(ticket);
    ASSERT_TRUE(taken.ok() && taken->has_value());
    ASSERT_EQ((*taken)->fds.size(), 1u);
    EXPECT_EQ(Files::inode_of((*taken)->fds[0].get()), files.inode());
    EXPECT_NE(fcntl((*taken)->fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ((*taken)->bytes, std::vector<std::uint64_t>{700});
    EXPECT_EQ(files.asked, 1); // however often take() was called
    owner->set_source(nullptr);
}

TEST(FdSocketTest, AsManyDescriptorsAsTheLimitAllowsArriveInOrder)
{
    Files files(kMaxFds);
    const auto owner = make_socket(), user = make_socket();
    owner->set_source(&files);
    const FdTicket ticket{.socket = owner->name(), .token = 1};
    static_cast<void>(user->take(ticket));
    owner->step();
    const auto taken = user->take(ticket);
    ASSERT_TRUE(taken.ok() && taken->has_value());
    ASSERT_EQ((*taken)->fds.size(), static_cast<std::size_t>(kMaxFds));
    EXPECT_EQ((*taken)->bytes.back(), 100u + kMaxFds - 1);
    owner->set_source(nullptr);
}

TEST(FdSocketTest, TwoProcessesMayAskEachOtherAtOnce)
{
    Files one_files, other_files;
    const auto one = make_socket(), other = make_socket();
    one->set_source(&one_files);
    other->set_source(&other_files);
    const FdTicket of_one{one->name(), 1}, of_other{other->name(), 2};
    static_cast<void>(one->take(of_other));
    static_cast<void>(other->take(of_one)); // answers what it was asked too
    const auto from_other = one->take(of_other);
    EXPECT_TRUE(from_other.ok() && from_other->has_value());
    const auto from_one = other->take(of_one);
    EXPECT_TRUE(from_one.ok() && from_one->has_value());
    one->set_source(nullptr);
    other->set_source(nullptr);
}

TEST(FdSocketTest, ATokenThatIsNotKnownIsAnError)
{
    Files files;
    const auto owner = make_socket(), user = make_socket();
    owner->set_source(&files);
    const FdTicket ticket{.socket = owner->name(), .token = 1000};
    static_cast<void>(user->take(ticket));
    owner->step();
    EXPECT_FALSE(user->take(ticket).ok());
    owner->set_source(nullptr);
}

TEST(FdSocketTest, AnOwnerWithoutASourceRefuses)
{
    const auto owner = make_socket(), user = make_socket();
    const FdTicket ticket{.socket = owner->name(), .token = 1};
    static_cast<void>(user->take(ticket));
    owner->step();
    EXPECT_FALSE(user->take(ticket).ok());
}

TEST(FdSocketTest, AnOwnerThatHasEndedIsAnErrorWithTheWayOut)
{
    std::uint64_t name = 0;
    {
        name = make_socket()->name();
    }
    const auto taken = make_socket()->take({.socket = name, .token = 1});
    ASSERT_FALSE(taken.ok());
    EXPECT_NE(taken.status().message().find("network namespace"), std::string::npos);
}

// More askers than the queue of a socket holds: who finds it full asks again.
TEST(FdSocketTest, AFullQueueOnlyDelays)
{
    Files files;
    const auto owner = make_socket(), user = make_socket();
    owner->set_source(&files);
    constexpr std::uint64_t kCount = 900;
    std::uint64_t arrived = 0;
    for (int round = 0; round < 100 && arrived < kCount; ++round) {
        arrived = 0;
        for (std::uint64_t token = 0; token < kCount; ++token) {
            static std::vector<bool> done;
            done.resize(kCount);
            if (!done[token]) {
                const auto taken = user->take({.socket = owner->name(), .token = token});
                ASSERT_TRUE(taken.ok()) << taken.status().message();
                done[token] = taken->has_value();
            }
            arrived += done[token];
        }
        owner->step();
    }
    EXPECT_EQ(arrived, kCount);
    owner->set_source(nullptr);
}

TEST(FdSocketTest, NoDescriptorIsLeft)
{
    const int before = test::open_descriptors();
    {
        Files files(3);
        const auto owner = make_socket(), user = make_socket();
        owner->set_source(&files);
        for (std::uint64_t token = 0; token < 10; ++token) {
            const FdTicket ticket{.socket = owner->name(), .token = token};
            static_cast<void>(user->take(ticket));
            owner->step();
            if (token % 2 == 0) { // half of the answers are never taken
                static_cast<void>(user->take(ticket));
            }
        }
        owner->set_source(nullptr);
    }
    EXPECT_EQ(test::open_descriptors(), before);
}

TEST(FdSocketTest, NoRoomForDescriptorsIsAnError)
{
    const auto owner = make_socket(), user = make_socket();
    const pid_t child = fork();
    if (child == 0) { // the limit is this process's, so not the test's
        Files files(20);
        owner->set_source(&files);
        const FdTicket ticket{.socket = owner->name(), .token = 1};
        static_cast<void>(user->take(ticket));
        owner->step();
        const rlimit few{.rlim_cur = static_cast<rlim_t>(test::open_descriptors() + 5),
                         .rlim_max = static_cast<rlim_t>(test::open_descriptors() + 5)};
        setrlimit(RLIMIT_NOFILE, &few);
        const int before = test::open_descriptors();
        const auto taken = user->take(ticket);
        const bool right =
            !taken.ok() && taken.status().message().find("ulimit -n") != std::string::npos &&
            test::open_descriptors() == before - 1; // its connection ends with the answer
        _exit(right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

// As another user; false if that cannot be tried. `what` answers whether all is right.
template <class What> bool as_another_user(What what)
{
    const pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(test::kNotTried);
        }
        _exit(what() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_NE(WEXITSTATUS(status), 1);
    return WEXITSTATUS(status) != 2;
}

TEST(FdSocketTest, AnotherUsersSocketIsNotAsked)
{
    const auto owner = make_socket();
    if (!as_another_user([&owner] {
            const auto stranger = FdSocket::create({});
            const auto taken = (*stranger)->take({.socket = owner->name(), .token = 1});
            return !taken.ok() && taken.status().message().find("same user") != std::string::npos;
        })) {
        GTEST_SKIP() << "no permission to become another user";
    }
}

// Another user's connections and questions, more than a queue of datagrams would hold, change
// nothing: our user's question is answered in the owner's next step.
TEST(FdSocketTest, AnotherUserGetsNoAnswerAndIsInNobodysWay)
{
    Files files;
    const auto owner = make_socket(), user = make_socket();
    owner->set_source(&files);
    const int before = test::open_descriptors();
    if (!as_another_user([&owner] {
            char name[32];
            std::snprintf(name, sizeof name, "hetcoll.%016llx",
                          static_cast<unsigned long long>(owner->name()));
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            std::memcpy(address.sun_path + 1, name, std::strlen(name));
            const auto length =
                static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + std::strlen(name));
            const std::vector<char> bytes(1000, 'x');
            for (int i = 0; i < 200; ++i) {
                const int stranger = socket(AF_UNIX, SOCK_SEQPACKET, 0);
                if (connect(stranger, reinterpret_cast<const sockaddr *>(&address), length) != 0 ||
                    send(stranger, bytes.data(), bytes.size(), 0) != 1000) {
                    return false;
                }
            }
            return true;
        })) {
        GTEST_SKIP() << "no permission to become another user";
    }
    const FdTicket ticket{.socket = owner->name(), .token = 1};
    ASSERT_TRUE(user->take(ticket).ok());
    owner->step();
    const auto taken = user->take(ticket);
    EXPECT_TRUE(taken.ok() && taken->has_value());
    EXPECT_EQ(files.asked, 1);
    owner->step();
    EXPECT_EQ(test::open_descriptors(), before + 1); // what was taken
    owner->set_source(nullptr);
}

TEST(FdSocketTest, AnOwnerThatEndsWhileItIsAskedIsAnError)
{
    auto owner = make_socket();
    const auto user = make_socket();
    const FdTicket ticket{.socket = owner->name(), .token = 1};
    ASSERT_TRUE(user->take(ticket).ok());
    owner.reset();
    const auto taken = user->take(ticket);
    ASSERT_FALSE(taken.ok());
    EXPECT_NE(taken.status().message().find("it has ended"), std::string::npos);
}

TEST(FdSocketTest, AnOwnerWithoutADescriptorToAnswerWithIsAnError)
{
    const auto owner = make_socket(), user = make_socket();
    const FdTicket ticket{.socket = owner->name(), .token = 1};
    const pid_t child = fork();
    if (child == 0) { // the limit is this process's, so not the test's
        const bool asked = user->take(ticket).ok();
        const int next = dup(0);
        close(next);
        const rlimit none{.rlim_cur = static_cast<rlim_t>(next),
                          .rlim_max = static_cast<rlim_t>(next)};
        setrlimit(RLIMIT_NOFILE, &none);
        owner->step();
        _exit(asked && !user->take(ticket).ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

class NoAcceptTest : public ::testing::TestWithParam<int> {}; // the error, as of a seccomp filter

// It keeps the owner's socket open.
TEST_P(NoAcceptTest, WhoAsksHearsOfItThoughACopyOfTheOwnerLives)
{
    const pid_t child = fork();
    if (child == 0) { // the filter is for good
        const auto owner = make_socket(), user = make_socket(), other = make_socket();
        const FdTicket ticket{.socket = owner->name(), .token = 1};
        const pid_t copy = fork();
        if (copy == 0) {
            pause();
            _exit(0);
        }
        if (!test::fail_system_calls({SYS_accept4}, GetParam())) {
            kill(copy, SIGKILL);
            _exit(test::kNotTried);
        }
        bool asked = user->take(ticket).ok(), heard = false;
        for (int looks = 0; looks < 1 << 20 && !heard; ++looks) {
            owner->step();
            heard = !user->take(ticket).ok();
        }
        const bool next_hears = !other->take(ticket).ok();
        kill(copy, SIGKILL);
        _exit(asked && heard && next_hears ? 0 : 1);
    }
    test::expect_success(child, "no seccomp filters here");
}

TEST_P(NoAcceptTest, WhoAsksHearsOfIt)
{
    const pid_t child = fork();
    if (child == 0) { // the filter is for good
        const auto owner = make_socket(), user = make_socket();
        const FdTicket ticket{.socket = owner->name(), .token = 1};
        if (!test::fail_system_calls({SYS_accept4}, GetParam())) {
            _exit(test::kNotTried);
        }
        bool right = true;
        for (int i = 0; i < 3; ++i) { // every time
            const bool asked = user->take(ticket).ok();
            owner->step();
            right = right && asked && !user->take(ticket).ok();
        }
        _exit(right ? 0 : 1);
    }
    test::expect_success(child, "no seccomp filters here");
}

INSTANTIATE_TEST_SUITE_P(Errors, NoAcceptTest,
                         ::testing::Values(EPERM, EACCES, ENOSYS, EMFILE, ENOMEM, EINVAL));

// A program closes what is not its own, and opens files of its own.
TEST(FdSocketTest, AForeignFileIsLeftAloneAndTheNextAskerIsServed)
{
    const int next = dup(0);
    close(next);
    const auto owner = make_socket(), user = make_socket();
    Files files(1);
    owner->set_source(&files);
    close(next); // the owner's socket
    ASSERT_EQ(open("/dev/zero", O_RDONLY), next);
    owner->step(); // finds out
    const FdTicket ticket{.socket = owner->name(), .token = 1};
    ASSERT_TRUE(user->take(ticket).ok());
    owner->step();
    const auto taken = user->take(ticket);
    EXPECT_TRUE(taken.ok() && taken->has_value());
    owner->set_source(nullptr);
    struct stat file {};
    EXPECT_EQ(fstat(next, &file), 0);
    EXPECT_TRUE(S_ISCHR(file.st_mode));
    close(next);
}

} // namespace
} // namespace hetcoll
