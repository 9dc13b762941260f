// File descriptors on their way between two channels. Nothing waits, nothing leaks, strangers get
// nothing.
#include "transport/fd_channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>

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

std::shared_ptr<FdChannel> make_channel()
{
    auto channel = FdChannel::create({});
    EXPECT_TRUE(channel.ok()) << channel.status().message();
    return *channel;
}

int descriptors()
{
    int count = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        static_cast<void>(entry);
        ++count;
    }
    return count;
}

TEST(FdChannelTest, TheOwnersNextStepAnswers)
{
    Files files;
    const auto owner = make_channel(), user = make_channel();
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

TEST(FdChannelTest, AsManyDescriptorsAsTheLimitAllowsArriveInOrder)
{
    Files files(kMaxFds);
    const auto owner = make_channel(), user = make_channel();
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

TEST(FdChannelTest, TwoProcessesMayAskEachOtherAtOnce)
{
    Files one_files, other_files;
    const auto one = make_channel(), other = make_channel();
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

TEST(FdChannelTest, ATokenThatIsNotKnownIsAnError)
{
    Files files;
    const auto owner = make_channel(), user = make_channel();
    owner->set_source(&files);
    const FdTicket ticket{.socket = owner->name(), .token = 1000};
    static_cast<void>(user->take(ticket));
    owner->step();
    EXPECT_FALSE(user->take(ticket).ok());
    owner->set_source(nullptr);
}

TEST(FdChannelTest, AnOwnerWithoutASourceRefuses)
{
    const auto owner = make_channel(), user = make_channel();
    const FdTicket ticket{.socket = owner->name(), .token = 1};
    static_cast<void>(user->take(ticket));
    owner->step();
    EXPECT_FALSE(user->take(ticket).ok());
}

TEST(FdChannelTest, AnOwnerThatHasEndedIsAnErrorWithTheWayOut)
{
    std::uint64_t name = 0;
    {
        name = make_channel()->name();
    }
    const auto taken = make_channel()->take({.socket = name, .token = 1});
    ASSERT_FALSE(taken.ok());
    EXPECT_NE(taken.status().message().find("network namespace"), std::string::npos);
}

// More askers than the queue of a socket holds: who finds it full asks again.
TEST(FdChannelTest, AFullQueueOnlyDelays)
{
    Files files;
    const auto owner = make_channel(), user = make_channel();
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

TEST(FdChannelTest, NoDescriptorIsLeft)
{
    const int before = descriptors();
    {
        Files files(3);
        const auto owner = make_channel(), user = make_channel();
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
    EXPECT_EQ(descriptors(), before);
}

TEST(FdChannelTest, NoRoomForDescriptorsIsAnError)
{
    const auto owner = make_channel(), user = make_channel();
    const pid_t child = fork();
    if (child == 0) { // the limit is this process's, so not the test's
        Files files(20);
        owner->set_source(&files);
        const FdTicket ticket{.socket = owner->name(), .token = 1};
        static_cast<void>(user->take(ticket));
        owner->step();
        const rlimit few{.rlim_cur = static_cast<rlim_t>(descriptors() + 5),
                         .rlim_max = static_cast<rlim_t>(descriptors() + 5)};
        setrlimit(RLIMIT_NOFILE, &few);
        const int before = descriptors();
        const auto taken = user->take(ticket);
        const bool right = !taken.ok() &&
                           taken.status().message().find("ulimit -n") != std::string::npos &&
                           descriptors() == before;
        _exit(right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST(FdChannelTest, AnotherUserGetsNoAnswer)
{
    Files files;
    const auto owner = make_channel();
    owner->set_source(&files);
    const pid_t child = fork();
    if (child == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0) {
            _exit(2);
        }
        const auto stranger = FdChannel::create({});
        const auto taken = (*stranger)->take({.socket = owner->name(), .token = 1});
        _exit(taken.ok() && !taken->has_value() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == 2) {
        GTEST_SKIP() << "no permission to become another user";
    }
    EXPECT_EQ(status, 0);
    owner->step();
    EXPECT_EQ(files.asked, 0);
    owner->set_source(nullptr);
}

} // namespace
} // namespace hetcoll
