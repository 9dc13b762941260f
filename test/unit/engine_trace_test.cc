// The file of coll_hetcoll_trace: what is in it, when, and what happens if it cannot be written.
#include "base/element.h"
#include "engine/meeting/flags.h"
#include "engine/process/trace.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace hetcoll {
namespace {

std::vector<std::string> logged;

Log capture()
{
    logged.clear();
    return {[](int, const char *line) { logged.emplace_back(line); }, 0};
}

class TraceTest : public ::testing::Test {
protected:
    TraceTest()
    {
        char pattern[] = "/tmp/hetcoll_trace.XXXXXX";
        folder_ = mkdtemp(pattern);
    }
    ~TraceTest() override { static_cast<void>(std::system(("rm -rf " + folder_).c_str())); }

    [[nodiscard]] std::string path(const char *name) const { return folder_ + "/" + name; }

    static std::string content(const std::string &path)
    {
        std::ifstream file(path);
        std::ostringstream text;
        text << file.rdbuf();
        return text.str();
    }

    static std::size_t lines(const std::string &text)
    {
        return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    }

    void expect_refused(const char *why) const
    {
        const auto trace = Trace::open(path("t"), 0, capture());
        ASSERT_FALSE(trace.ok());
        EXPECT_NE(trace.status().message().find(why), std::string::npos)
            << trace.status().message();
    }

    std::string folder_;
};

CallRecord ring_call()
{
    CallRecord record;
    record.comm_id = 3;
    record.rank = 1;
    record.comm_size = 4;
    record.bytes = 4096;
    record.kind = static_cast<int>(ElementKind::kFloat32);
    record.op = static_cast<int>(ReduceOp::kSum);
    record.memory = kDeviceMemory;
    record.served = HETCOLL_CALLS_RING;
    record.mapped = true;
    record.chunk_bytes = 512;
    record.start_ns = now_ns();
    record.ns = 1234;
    return record;
}

TEST_F(TraceTest, NameHoldsRankAndProcess)
{
    const std::string pid = std::to_string(getpid());
    EXPECT_EQ(RankFile::expand("a.%r.%p.json", 7), "a.7." + pid + ".json");
    EXPECT_EQ(RankFile::expand("100%%.%r", 7), "100%.7");
    EXPECT_EQ(RankFile::expand("a%", 7), "a%.7");
    EXPECT_EQ(RankFile::expand("a", 7), "a.7");
}

TEST_F(TraceTest, AnUnknownSignOfTheNameIsSaidOnce)
{
    for (const int rank : {0, 1}) {
        ASSERT_TRUE(Trace::open(path("%q.%r.%%r"), rank, capture()).ok());
        EXPECT_EQ(logged.size(), rank == 0 ? 1u : 0u);
    }
    ASSERT_TRUE(Trace::open(path("t.%%.%p.%r"), 0, capture()).ok());
    EXPECT_TRUE(logged.empty());
    ASSERT_TRUE(Trace::open(path("t%"), 0, capture()).ok());
    ASSERT_EQ(logged.size(), 1u);
    EXPECT_NE(logged[0].find("coll_hetcoll_trace: % stays in the name "), std::string::npos);
}

TEST_F(TraceTest, LineSaysWhatTheCallDid)
{
    auto trace = Trace::open(path("t.%r"), 1, capture());
    ASSERT_TRUE(trace.ok());
    (*trace)->write(ring_call());
    trace->reset();
    const std::string text = content(path("t.1"));
    EXPECT_EQ(text.substr(text.find(",\"rank\"")),
              ",\"rank\":1,\"comm\":3,\"ranks\":4,\"call\":\"allreduce\",\"bytes\":4096,"
              "\"kind\":\"float32\",\"op\":\"sum\",\"memory\":\"device\",\"algorithm\":\"ring\","
              "\"path\":\"mapped\",\"chunk_bytes\":512,\"ns\":1234}\n");
}

TEST_F(TraceTest, LineSaysWhyACallWasStagedAndThatItFailed)
{
    auto trace = Trace::open(path("t"), 1, capture());
    ASSERT_TRUE(trace.ok());
    CallRecord record = ring_call();
    record.kind = record.op = -1;
    record.served = HETCOLL_CALLS_STAGED;
    record.staged_reason = HETCOLL_REASON_TYPE;
    record.memory = kDeviceMemory | kHostMemory;
    record.failed = true;
    (*trace)->write(record);
    trace->reset();
    const std::string text = content(path("t.1"));
    EXPECT_EQ(text.substr(text.find("\"kind\"")),
              "\"kind\":\"other\",\"op\":\"other\",\"memory\":\"mixed\",\"algorithm\":\"open_mpi\","
              "\"path\":\"staged\",\"chunk_bytes\":512,\"ns\":1234,\"staged\":\"type\","
              "\"failed\":true}\n");
}

TEST_F(TraceTest, LinesOutliveAProcessThatIsKilled)
{
    const pid_t child = fork();
    if (child == 0) {
        auto trace = Trace::open(path("t"), 0, Log{});
        for (int i = 0; trace.ok() && i < 100; ++i) {
            (*trace)->write(ring_call());
        }
        raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(lines(content(path("t.0"))), 100u);
}

TEST_F(TraceTest, FileHasEveryLineHoweverMany)
{
    constexpr std::size_t kLines = 12'000; // over 2 MiB
    auto trace = Trace::open(path("t"), 0, capture());
    ASSERT_TRUE(trace.ok());
    for (std::size_t i = 0; i < kLines; ++i) {
        (*trace)->write(ring_call());
    }
    trace->reset();
    const std::string text = content(path("t.0"));
    EXPECT_EQ(lines(text), kLines);
    EXPECT_EQ(text.find('\0'), std::string::npos);
    std::size_t whole = 0;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        whole += line.starts_with("{\"time\":") && line.ends_with("\"ns\":1234}") ? 1 : 0;
    }
    EXPECT_EQ(whole, kLines);
    EXPECT_TRUE(logged.empty());
}

TEST_F(TraceTest, FileThatCannotBeWrittenIsNamed)
{
    const auto trace = Trace::open(path("none/t.%r"), 2, capture());
    ASSERT_FALSE(trace.ok());
    EXPECT_EQ(trace.status().message(), "coll_hetcoll_trace: " + path("none/t.2") +
                                            " cannot be written (No such file or directory)");
}

TEST_F(TraceTest, PipeIsNoFile)
{
    ASSERT_EQ(mkfifo(path("t.0").c_str(), 0600), 0);
    expect_refused("it is not a file");
}

// ---- files that somebody has put in the way ----

TEST_F(TraceTest, FileBehindALinkIsLeftAlone)
{
    std::ofstream(path("other")) << "precious";
    ASSERT_EQ(symlink(path("other").c_str(), path("t.0").c_str()), 0);
    expect_refused("it is a symbolic link");
    EXPECT_EQ(content(path("other")), "precious");
}

TEST_F(TraceTest, FileWithASecondNameIsLeftAlone)
{
    std::ofstream(path("other")) << "precious";
    ASSERT_EQ(link(path("other").c_str(), path("t.0").c_str()), 0);
    expect_refused("it has another name too");
    EXPECT_EQ(content(path("other")), "precious");
}

TEST_F(TraceTest, FileOfAnotherUserIsLeftAlone)
{
    std::ofstream(path("t.0")) << "precious";
    if (chown(path("t.0").c_str(), geteuid() + 1, getegid()) != 0) {
        GTEST_SKIP() << "only root gives files away";
    }
    expect_refused("it is another user's file");
    EXPECT_EQ(content(path("t.0")), "precious");
}

// As logrotate does with copytruncate.
TEST_F(TraceTest, FileThatIsCutWhileItIsWrittenGoesOnFromItsBeginning)
{
    auto trace = Trace::open(path("t"), 0, capture());
    ASSERT_TRUE(trace.ok());
    for (const std::size_t more : {5u, 7u}) {
        ASSERT_EQ(truncate(path("t.0").c_str(), 0), 0);
        for (std::size_t i = 0; i < more; ++i) {
            (*trace)->write(ring_call());
        }
        const std::string text = content(path("t.0"));
        EXPECT_EQ(lines(text), more);
        EXPECT_EQ(text.find('\0'), std::string::npos);
    }
    EXPECT_TRUE(logged.empty());
}

TEST_F(TraceTest, FileOfAnotherTraceIsLeftAlone)
{
    auto first = Trace::open(path("t"), 0, capture());
    ASSERT_TRUE(first.ok());
    (*first)->write(ring_call());
    const auto second = Trace::open(path("t"), 0, capture());
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.status().message().find("put %p into the name"), std::string::npos);
    first->reset();
    EXPECT_EQ(lines(content(path("t.0"))), 1u);
}

// The limit of a file's size stands for a full disk: the same call reports both.
// The program has closed it with all others, and has a file of its own with its number.
TEST_F(TraceTest, AFileThatHasTakenItsNumberIsLeftAlone)
{
    const int next = dup(0);
    close(next);
    {
        auto trace = Trace::open(path("t"), 0, capture());
        ASSERT_TRUE(trace.ok());
        close(next);
        ASSERT_EQ(open(path("mine").c_str(), O_RDWR | O_CREAT, 0600), next);
        (*trace)->write(CallRecord{});
        (*trace)->write(CallRecord{});
    }
    EXPECT_EQ(content(path("mine")), "");
    ASSERT_EQ(logged.size(), 1u);
    EXPECT_NE(logged[0].find("ends after 0 bytes"), std::string::npos) << logged[0];
    EXPECT_NE(fcntl(next, F_GETFD), -1);
    close(next);
}

TEST_F(TraceTest, FullDiskEndsTheTraceWithOneMessage)
{
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = (std::size_t{3} << 20) / 2, .rlim_max = before.rlim_max};
    auto trace = Trace::open(path("t"), 0, capture());
    ASSERT_TRUE(trace.ok());
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 12'000; ++i) {
        (*trace)->write(ring_call());
    }
    trace->reset();
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    ASSERT_EQ(logged.size(), 1u);
    EXPECT_NE(logged[0].find("the calls after that are not in it"), std::string::npos);
    const std::string text = content(path("t.0"));
    EXPECT_GT(lines(text), 1000u);
    EXPECT_TRUE(text.ends_with("}\n"));
}

} // namespace
} // namespace hetcoll
