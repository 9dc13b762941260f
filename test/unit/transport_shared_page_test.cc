// Shared memory without a name: what is attached is what was announced, and nothing is left.
#include "test/unit/child.h"
#include "test/unit/transport_peer.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>

namespace hetcoll::test {
namespace {

constexpr std::size_t kBytes = 10000;

ProcessIdentity self() { return node_identity(nullptr)->process; }

SharedPage make_page(std::size_t bytes = kBytes)
{
    auto page = SharedPage::create(self(), bytes);
    EXPECT_TRUE(page.ok()) << page.status().message();
    return page.ok() ? std::move(*page) : SharedPage();
}

std::string attach_error(const SharedPageTicket &ticket)
{
    const auto page = SharedPage::attach(ticket);
    EXPECT_FALSE(page.ok());
    return page.ok() ? "" : page.status().message();
}

TEST(SharedPageTest, IsZeroedAlignedAndAllThere)
{
    const SharedPage page = make_page();
    ASSERT_NE(page.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(page.data()) % SharedPage::kAlignment, 0u);
    EXPECT_EQ(page.bytes(), kBytes);
    const auto *bytes = static_cast<const unsigned char *>(page.data());
    for (std::size_t i = 0; i < kBytes; ++i) {
        ASSERT_EQ(bytes[i], 0);
    }
    struct stat file {};
    ASSERT_EQ(fstat(page.ticket().fd, &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600u);
    EXPECT_EQ(file.st_nlink, 0u);
    EXPECT_GE(file.st_blocks * 512u, kBytes); // taken now, not at the first touch
}

TEST(SharedPageTest, ProcessesSeeWhatEachOtherWrites)
{
    const SharedPage page = make_page();
    auto *const word = static_cast<std::uint32_t *>(page.data());
    *word = 5;
    const Peer peer;
    const PeerAnswer answer = peer.ask({.ask = Ask::kAttach, .ticket = page.ticket()});
    EXPECT_TRUE(answer.ok) << answer.message;
    EXPECT_EQ(answer.word, 5u);
    EXPECT_EQ(*word, 6u);
}

TEST(SharedPageTest, LivesAsLongAsSomebodyHasIt)
{
    SharedPage attached;
    {
        const SharedPage page = make_page();
        std::memset(page.data(), 7, kBytes);
        attached = std::move(*SharedPage::attach(page.ticket()));
    }
    EXPECT_EQ(static_cast<const char *>(attached.data())[kBytes - 1], 7);
}

TEST(SharedPageTest, NeverHasAName)
{
    const auto names = [] {
        std::set<std::string> found;
        for (const auto &entry : std::filesystem::directory_iterator("/dev/shm")) {
            if (entry.path().string().find("hetcoll") != std::string::npos) {
                found.insert(entry.path());
            }
        }
        return found;
    };
    const auto before = names();
    const SharedPage page = make_page();
    EXPECT_EQ(names(), before);
    const std::string path = "/proc/self/fd/" + std::to_string(page.ticket().fd);
    EXPECT_NE(linkat(AT_FDCWD, path.c_str(), AT_FDCWD, "/dev/shm/hetcoll_test", AT_SYMLINK_FOLLOW),
              0);
}

TEST(SharedPageTest, SealedItCannotBeAttachedAndHoldsNoDescriptor)
{
    const int before = open_descriptors();
    SharedPage page = make_page();
    page.seal();
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_NE(attach_error(page.ticket()).find("has closed it"), std::string::npos);
    std::memset(page.data(), 1, kBytes); // still there
}

TEST(SharedPageTest, AFileThatHasTakenItsNumberIsNotClosed)
{
    int fd = -1;
    {
        const SharedPage page = make_page();
        fd = page.ticket().fd;
        close(fd); // a program that closes what is not its own
        ASSERT_EQ(open("/dev/null", O_RDONLY), fd);
    }
    EXPECT_NE(fcntl(fd, F_GETFD), -1);
    close(fd);
}

TEST(SharedPageTest, NoDescriptorAndNoMappingIsLeft)
{
    const int before = open_descriptors();
    {
        const SharedPage page = make_page();
        const auto attached = SharedPage::attach(page.ticket());
        EXPECT_TRUE(attached.ok());
        SharedPageTicket wrong = page.ticket();
        ++wrong.nonce;
        EXPECT_FALSE(SharedPage::attach(wrong).ok());
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(SharedPageTest, ADescriptorNumberThatIsUsedAgainIsRefused)
{
    SharedPageTicket ticket;
    {
        const SharedPage page = make_page();
        ticket = page.ticket();
    }
    const SharedPage other = make_page();
    ASSERT_EQ(other.ticket().fd, ticket.fd);
    EXPECT_NE(attach_error(ticket).find("other shared memory"), std::string::npos);
    ticket.bytes += 1;
    EXPECT_NE(attach_error(ticket).find("is not the"), std::string::npos);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    ticket.fd = ends[0];
    EXPECT_NE(attach_error(ticket).find("not shared memory"), std::string::npos);
    close(ends[0]);
    close(ends[1]);
}

TEST(SharedPageTest, AnOwnerThatEndedOrNeverWasIsRefused)
{
    const SharedPage page = make_page();
    SharedPageTicket ticket = page.ticket();
    ++ticket.owner.start_time;
    EXPECT_NE(attach_error(ticket).find("has ended"), std::string::npos);
    ticket.owner.pid = 0x3fffffff;
    EXPECT_NE(attach_error(ticket).find("PID namespace"), std::string::npos);
}

TEST(SharedPageTest, AFolderThatIsNotThereIsNamed)
{
    const auto page = SharedPage::create(self(), kBytes, "/nowhere");
    ASSERT_FALSE(page.ok());
    EXPECT_NE(page.status().message().find("/nowhere"), std::string::npos);
}

// In a mount namespace of its own: 0 if the message names the folder and the remedy.
int create_in_small_folder(const std::string &folder)
{
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64k") != 0) {
        return 2;
    }
    const bool fits = SharedPage::create(self(), kBytes, folder.c_str()).ok();
    const auto page = SharedPage::create(self(), 1 << 20, folder.c_str());
    return fits && !page.ok() && page.status().code() == Errc::kNoMemory &&
                   page.status().message().find("see df") != std::string::npos
               ? 0
               : 1;
}

TEST(SharedPageTest, AFullFolderIsAnErrorNow)
{
    char folder[] = "/tmp/hetcoll_test.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    const pid_t child = fork();
    if (child == 0) {
        _exit(create_in_small_folder(folder));
    }
    expect_success(child, "no permission to mount");
    rmdir(folder);
}

// /proc as HPC nodes often have it.
bool hide_others_in_proc()
{
    return unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("proc", "/proc", "proc", 0, "hidepid=2") == 0;
}

// In a child that is another user: 0 if the message says what to do.
int attach_as_other_user(const SharedPageTicket &ticket, bool hides)
{
    if (hides && !hide_others_in_proc()) {
        return 2;
    }
    if (setgid(65534) != 0 || setuid(65534) != 0) {
        return 2;
    }
    const auto page = SharedPage::attach(ticket);
    return !page.ok() && page.status().message().find("same user") != std::string::npos ? 0 : 1;
}

class OtherUserTest : public ::testing::TestWithParam<bool> {}; // whether /proc hides processes

TEST_P(OtherUserTest, IsRefused)
{
    const SharedPage page = make_page();
    const pid_t child = fork();
    if (child == 0) {
        _exit(attach_as_other_user(page.ticket(), GetParam()));
    }
    expect_success(child, "no permission to become another user, or to mount");
}

INSTANTIATE_TEST_SUITE_P(Proc, OtherUserTest, ::testing::Bool());

} // namespace
} // namespace hetcoll::test
