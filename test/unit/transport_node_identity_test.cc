// Who is who: the same host on processes that can share memory, another start time on each.
#include "test/unit/failing_call.h"
#include "test/unit/transport_peer.h"

#include <pthread.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace hetcoll::test {
namespace {

ProcessIdentity self(const char *word = nullptr)
{
    const auto identity = node_identity(word);
    EXPECT_TRUE(identity.ok()) << identity.status().message();
    return identity.ok() ? identity->process : ProcessIdentity{};
}

// The identity that a forked child has, after `change`. False if that is not permitted here.
bool identity_of_child(int (*change)(), NodeIdentity &out)
{
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (change() != 0) {
            _exit(1);
        }
        const auto identity = node_identity(nullptr);
        _exit(identity.ok() && write(ends[1], &*identity, sizeof *identity) == sizeof *identity
                  ? 0
                  : 2);
    }
    close(ends[1]);
    const bool got = read(ends[0], &out, sizeof out) == sizeof out;
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_NE(WEXITSTATUS(status), 2);
    return got;
}

TEST(NodeIdentityTest, NamesThisProcess)
{
    const ProcessIdentity identity = self();
    EXPECT_EQ(identity.pid, getpid());
    EXPECT_NE(identity.host, 0u);
    EXPECT_NE(identity.start_time, 0u);
    EXPECT_EQ(identity, self(""));
    EXPECT_TRUE(check_alive(identity).ok());
}

TEST(NodeIdentityTest, AnotherProcessOfThisNodeHasTheSameHost)
{
    NodeIdentity child{};
    ASSERT_TRUE(identity_of_child([] { return 0; }, child));
    EXPECT_EQ(child.process.host, self().host);
    EXPECT_EQ(child.machine, node_identity(nullptr)->machine);
    EXPECT_NE(child.process.pid, getpid());
}

TEST(NodeIdentityTest, OtherWordsAreOtherNodes)
{
    EXPECT_NE(self("a").host, self("b").host);
    EXPECT_NE(self("a").host, self().host);
    EXPECT_EQ(self("a").host, self("a").host);
    EXPECT_EQ(node_identity("a")->machine, node_identity("b")->machine);
}

class NamespaceTest : public ::testing::TestWithParam<int> {};

TEST_P(NamespaceTest, AnotherNamespaceIsAnotherNodeOfThisMachine)
{
    static int flag = 0;
    flag = GetParam();
    NodeIdentity child{};
    if (!identity_of_child([] { return unshare(flag); }, child)) {
        GTEST_SKIP() << "no permission to unshare";
    }
    EXPECT_NE(child.process.host, self().host);
    EXPECT_EQ(child.machine, node_identity(nullptr)->machine);
}

INSTANTIATE_TEST_SUITE_P(Kinds, NamespaceTest, ::testing::Values(CLONE_NEWIPC));

TEST(NodeIdentityTest, AProcessThatEndedIsNotAlive)
{
    NodeIdentity child{};
    ASSERT_TRUE(identity_of_child([] { return 0; }, child));
    const Status status = check_alive(child.process);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find(std::to_string(child.process.pid)), std::string::npos);
}

TEST(NodeIdentityTest, ThePidAloneIsNotEnough)
{
    ProcessIdentity identity = self();
    ++identity.start_time;
    EXPECT_FALSE(check_alive(identity).ok());
}

enum Answer : int { kRight, kWrong, kCannotTry };

// In a child: `what` answers with this process and one that has ended, once /proc is as `spoil`
// leaves it.
template <class Spoil> void check_with_spoiled_proc(Spoil spoil, const char *expected)
{
    const ProcessIdentity parent = self();
    NodeIdentity ended{};
    ASSERT_TRUE(identity_of_child([] { return 0; }, ended));
    const pid_t child = fork();
    if (child == 0) {
        if (!spoil()) {
            _exit(kCannotTry);
        }
        const std::string message = check_alive(parent).message();
        const bool right = process_state(parent) == ProcessState::kUnknown &&
                           process_state(ended.process) == ProcessState::kGone &&
                           message.find("it may still run") != std::string::npos &&
                           message.find(expected) != std::string::npos;
        _exit(right ? kRight : kWrong);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == kCannotTry) {
        GTEST_SKIP() << "not permitted here";
    }
    EXPECT_EQ(status, kRight);
}

class SilentProcTest : public ::testing::TestWithParam<int> {};

TEST_P(SilentProcTest, AProcessThatCannotBeOpenedIsNotGone)
{
    check_with_spoiled_proc([] { return fail_system_calls({SYS_openat}, GetParam()); },
                            std::strerror(GetParam()));
}

TEST_P(SilentProcTest, AProcessThatCannotBeReadIsNotGone)
{
    check_with_spoiled_proc([] { return fail_system_calls({SYS_read}, GetParam()); },
                            std::strerror(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Errors, SilentProcTest,
                         ::testing::Values(EMFILE, ENFILE, ENOMEM, EACCES, EPERM, ENOENT, EINTR,
                                           EIO));

TEST(NodeIdentityTest, WithoutAFreeDescriptorAProcessIsNotGone)
{
    const auto use_up = [] {
        const rlimit none{.rlim_cur = 0, .rlim_max = 0};
        return setrlimit(RLIMIT_NOFILE, &none) == 0;
    };
    check_with_spoiled_proc(use_up, "ulimit -n");
}

TEST(NodeIdentityTest, AProcessThatProcHidesFromOtherUsersIsNotGone)
{
    const auto hide = [] {
        return unshare(CLONE_NEWNS) == 0 &&
               mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               mount("proc", "/proc", "proc", 0, "hidepid=2") == 0 && setgid(65534) == 0 &&
               setuid(65534) == 0;
    };
    check_with_spoiled_proc(hide, "without hidepid");
}

// /proc shows its first thread, a zombie by now.
TEST(NodeIdentityTest, AProcessWhoseFirstThreadHasEndedHasNotDied)
{
    ProcessIdentity child = self();
    child.pid = fork();
    if (child.pid == 0) {
        pthread_t other;
        const auto stay = [](void *) -> void * { return reinterpret_cast<void *>(pause()); };
        pthread_create(&other, nullptr, stay, nullptr);
        syscall(SYS_exit, 0); // of this thread
    }
    ASSERT_TRUE(process_start_time(child.pid).ok());
    child.start_time = *process_start_time(child.pid);
    ProcessState state = ProcessState::kRuns;
    while (state == ProcessState::kRuns || state == ProcessState::kSleeps) {
        state = process_state(child);
    }
    EXPECT_EQ(state, ProcessState::kUnknown);
    kill(child.pid, SIGKILL);
    while (is_alive(state)) { // its threads end one after the other
        state = process_state(child);
    }
    EXPECT_EQ(state, ProcessState::kDied);
    waitpid(child.pid, nullptr, 0);
    EXPECT_EQ(process_state(child), ProcessState::kGone);
}

// Two that cannot look at their namespaces must not take them for the same.
TEST(NodeIdentityTest, WhoCannotSeeItsNamespacesSharesWithNobody)
{
    const pid_t child = fork();
    if (child == 0) {
#ifdef SYS_readlink
        const bool blind = fail_system_calls({SYS_readlink, SYS_readlinkat}, EACCES);
#else
        const bool blind = fail_system_calls({SYS_readlinkat}, EACCES);
#endif
        if (!blind) {
            _exit(kCannotTry);
        }
        _exit(node_identity(nullptr).ok() ? kWrong : kRight);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WEXITSTATUS(status) == kCannotTry) {
        GTEST_SKIP() << "no seccomp filters here";
    }
    EXPECT_EQ(status, kRight);
}

// Field 2 of /proc/PID/stat is the name as it is.
TEST(NodeIdentityTest, TheNameOfAProgramMayHoldAnything)
{
    const std::uint64_t before = *process_start_time(getpid());
    std::FILE *const name = std::fopen("/proc/self/comm", "w");
    ASSERT_NE(name, nullptr);
    std::fputs("a) 1 (b) 2", name);
    std::fclose(name);
    EXPECT_EQ(*process_start_time(getpid()), before);
}

} // namespace
} // namespace hetcoll::test
