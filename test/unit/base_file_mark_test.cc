// Identity and owner of a descriptor's file.
#include "base/file_mark.h"
#include "base/own_user.h"
#include "test/unit/child.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <fstream>

namespace hetcoll {
namespace {

TEST(FileMarkTest, ItsOwnFileIsClosed)
{
    const int fd = open("/dev/null", O_RDONLY);
    const FileMark mark(fd);
    EXPECT_TRUE(mark.fits(fd));
    mark.close(fd);
    EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(FileMarkTest, AFileThatHasTakenTheNumberIsLeftAlone)
{
    const int fd = open("/dev/null", O_RDONLY);
    const FileMark mark(fd);
    close(fd);
    ASSERT_EQ(open("/dev/zero", O_RDONLY), fd);
    EXPECT_FALSE(mark.fits(fd));
    mark.close(fd);
    EXPECT_NE(fcntl(fd, F_GETFD), -1);
    close(fd);
}

TEST(FileMarkTest, NothingIsNothing)
{
    const FileMark none, of_none(-1);
    EXPECT_FALSE(none.fits(0));
    EXPECT_FALSE(of_none.fits(-1));
}

TEST(OwnUserTest, IsTheEffectiveOne)
{
    EXPECT_TRUE(is_own_user(geteuid()) || geteuid() == 65534);
    EXPECT_FALSE(is_own_user(geteuid() + 1));
}

// A child for which no user has a number: 0 if it takes nobody for itself.
TEST(OwnUserTest, WhoHasNoNumberHereIsNotOneself)
{
    const pid_t child = fork();
    if (child == 0) {
        if (unshare(CLONE_NEWUSER) != 0) {
            _exit(test::kNotTried);
        }
        _exit(geteuid() == 65534 && is_own_user(65534) ? 1 : 0);
    }
    test::expect_success(child, "no permission to unshare");
}

// Where everybody has a number, that one is a user like others.
TEST(OwnUserTest, NobodyIsAUserOutsideOfContainers)
{
    std::ifstream map("/proc/self/uid_map");
    unsigned long inside = 0, outside = 0, count = 0;
    map >> inside >> outside >> count;
    const pid_t child = fork();
    if (child == 0) {
        if (count != 4294967295 || setuid(65534) != 0) {
            _exit(test::kNotTried);
        }
        _exit(is_own_user(65534) ? 0 : 1);
    }
    test::expect_success(child, "no permission to become another user");
}

} // namespace
} // namespace hetcoll
