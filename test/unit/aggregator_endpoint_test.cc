#include "aggregator/endpoint.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace hetcoll {
namespace {

TEST(AggregatorEndpointTest, HostsAndPortsAreTakenApart)
{
    const Endpoint named = *parse_endpoint("node-1.cluster:7470");
    EXPECT_EQ(named.host, "node-1.cluster");
    EXPECT_EQ(named.port, 7470);
    EXPECT_EQ(parse_endpoint("[fe80::1]:80")->host, "fe80::1");
    EXPECT_EQ(parse_endpoint("[fe80::1]:80")->text(), "[fe80::1]:80");
    EXPECT_EQ(named.text(), "node-1.cluster:7470");
}

TEST(AggregatorEndpointTest, WhatIsNoHostAndPortIsRefusedWithItsText)
{
    for (const char *text : {"", "host", "host:", ":80", "host:0", "host:65536", "host:80x",
                             "fe80::1:80", "a b:80", "host:-1", "[]:80", "host:80 "}) {
        const Result<Endpoint> endpoint = parse_endpoint(text);
        ASSERT_FALSE(endpoint.ok()) << text;
        EXPECT_NE(endpoint.status().message().find("'" + std::string(text) + "'"),
                  std::string::npos);
    }
}

TEST(AggregatorEndpointTest, WhoListensMayLeaveThePortOpen)
{
    EXPECT_EQ(parse_endpoint("host:0", 0)->port, 0);
    EXPECT_EQ(parse_endpoint("host:1", 0)->port, 1);
    EXPECT_FALSE(parse_endpoint("host:", 0).ok());
}

TEST(AggregatorEndpointTest, AListHasCommasAndNoEmptyPlaces)
{
    const auto all = *parse_endpoints("a:1,b:2,[::1]:3");
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[2].text(), "[::1]:3");
    EXPECT_FALSE(parse_endpoints("").ok());
    EXPECT_FALSE(parse_endpoints("a:1,").ok());
    EXPECT_FALSE(parse_endpoints("a:1,,b:2").ok());
}

class AggregatorKeyFileTest : public ::testing::Test {
protected:
    AggregatorKeyFileTest() { write("0123456789abcdef\n"); }
    ~AggregatorKeyFileTest() override { std::filesystem::remove_all(folder_); }
    void write(const std::string &content, mode_t mode = 0600)
    {
        std::filesystem::create_directories(folder_);
        std::ofstream(path_) << content;
        chmod(path_.c_str(), mode);
    }
    std::string why()
    {
        const Result<std::string> key = read_key_file(path_);
        return key.ok() ? "" : key.status().message();
    }
    std::string folder_ = testing::TempDir() + "hetcoll_key_" + std::to_string(getpid());
    std::string path_ = folder_ + "/key";
};

TEST_F(AggregatorKeyFileTest, TheKeyIsTheContentWithoutItsLineEnd)
{
    EXPECT_EQ(*read_key_file(path_), "0123456789abcdef");
}

TEST_F(AggregatorKeyFileTest, AFileThatOthersMayReadOrWriteIsRefused)
{
    for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0666, 0777}) {
        write("0123456789abcdef", mode);
        EXPECT_NE(why().find("chmod 600"), std::string::npos) << mode;
    }
    write("0123456789abcdef", 0400);
    EXPECT_EQ(why(), "");
}

TEST_F(AggregatorKeyFileTest, TooShortAndTooLongAreRefused)
{
    write("0123456789abcde\n");
    EXPECT_NE(why().find("holds 15 bytes"), std::string::npos);
    write("");
    EXPECT_NE(why(), "");
    write(std::string(4096, 'k'));
    EXPECT_EQ(why(), "");
    write(std::string(4097, 'k'));
    EXPECT_NE(why(), "");
}

TEST_F(AggregatorKeyFileTest, AFileOfAnotherUserIsRefused)
{
    if (geteuid() != 0) {
        GTEST_SKIP() << "only root can make one";
    }
    ASSERT_EQ(chown(path_.c_str(), 12345, 0), 0);
    EXPECT_NE(why().find("belongs to user 12345"), std::string::npos);
}

TEST_F(AggregatorKeyFileTest, WhatIsNoFileIsRefused)
{
    path_ = folder_;
    chmod(path_.c_str(), 0700);
    EXPECT_NE(why().find("not a regular file"), std::string::npos);
    path_ = folder_ + "/none";
    EXPECT_NE(why().find("No such file"), std::string::npos);
}

} // namespace
} // namespace hetcoll
