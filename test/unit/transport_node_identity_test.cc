// Who is who: the same host on processes that can share memory, another start time on each.
#include "test/unit/transport_peer.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>

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
