#include "tuning/table_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace hetcoll {
namespace {

using ::testing::TempDir;

constexpr const char *kHead = "{\"rule_file_version\": 3, \"module\": \"hetcoll\",\n";

// A table whose "allreduce" is this list; the list begins in line 2.
std::string with_lists(const std::string &lists)
{
    return kHead + ("\"collectives\": {\"allreduce\": [" + lists + "]}}");
}
std::string with_rules(const std::string &rules)
{
    return with_lists("{\"rules\": [" + rules + "]}");
}

std::string fault(const std::string &text)
{
    const Result<TableFile> table = parse_table(text, "t.json");
    return table.ok() ? "no fault" : table.status().message();
}

void expect_fault(const std::string &text, const std::string &begin)
{
    const std::string message = fault(text);
    EXPECT_EQ(message.substr(0, begin.size()), begin) << message;
    EXPECT_TRUE(message.ends_with("; make a new table with hetcoll_tune")) << message;
}

TEST(TableFileTest, EveryKeyIsRead)
{
    const Result<TableFile> table = parse_table(R"({
  "$schema": "hetcoll_tuning.schema.json",
  "rule_file_version": 3,
  "module": "hetcoll",
  "machines": [
    {"name": "dgx", "fingerprint": {"gpu": "8x V100", "driver": "535"}, "measurements": "dgx.txt"}],
  "collectives": {
    "allreduce": [
      {"machine": "dgx", "comm_size_min": 2, "comm_size_max": 8, "nodes_min": 1, "nodes_max": 2,
       "ranks_per_node_min": 3, "ranks_per_node_max": 4, "ranks_per_gpu_min": 1,
       "ranks_per_gpu_max": 5, "element_size_min": 2, "element_size_max": 8,
       "op": "sum", "memory": "device",
       "rules": [{"msg_size_min": 0, "msg_size_max": 4096, "alg": "host"},
                 {"msg_size_min": 4097, "msg_size_max": "inf", "alg": "hierarchical",
                  "between_nodes": "rabenseifner", "chunk_bytes": 131072}]}]}})",
                                                "t.json");
    ASSERT_TRUE(table.ok()) << table.status().message();
    ASSERT_EQ(table->machines.size(), 1u);
    EXPECT_EQ(table->machines[0].name, "dgx");
    EXPECT_EQ(table->machines[0].fingerprint.facts.at("driver"), "535");
    EXPECT_EQ(table->machines[0].measurements, "dgx.txt");
    ASSERT_EQ(table->sets.size(), 1u);
    const RuleSet &set = table->sets[0];
    EXPECT_EQ(set.machine, "dgx");
    EXPECT_EQ(set.ranks, (Range{2, 8}));
    EXPECT_EQ(set.nodes, (Range{1, 2}));
    EXPECT_EQ(set.ranks_per_node, (Range{3, 4}));
    EXPECT_EQ(set.ranks_per_gpu, (Range{1, 5}));
    EXPECT_EQ(set.element_bytes, (Range{2, 8}));
    EXPECT_EQ(set.op, OpClass::kSum);
    EXPECT_EQ(set.memory, CallMemory::kDevice);
    EXPECT_EQ(set.line, 9);
    ASSERT_EQ(set.rules.size(), 2u);
    EXPECT_EQ(set.rules[0].bytes, (Range{0, 4096}));
    EXPECT_EQ(set.rules[0].algorithm, Algorithm::kHost);
    EXPECT_EQ(set.rules[0].between_nodes, std::nullopt);
    EXPECT_EQ(set.rules[0].chunk_bytes, 0u);
    EXPECT_EQ(set.rules[0].line, 13);
    EXPECT_EQ(set.rules[1].bytes, (Range{4097, Range::kInfinite}));
    EXPECT_EQ(set.rules[1].between_nodes, Algorithm::kRabenseifner);
    EXPECT_EQ(set.rules[1].chunk_bytes, 131072u);
    EXPECT_EQ(set.rules[1].line, 14);
}

TEST(TableFileTest, ADistributionOfRanksIsARange)
{
    const auto set = [](const char *distribution) {
        const Result<TableFile> table =
            parse_table(with_lists("{\"comm_rank_distribution\": \"" + std::string(distribution) +
                                   "\", \"rules\": []}"),
                        "t.json");
        return table.ok() ? table->sets[0] : RuleSet{};
    };
    EXPECT_EQ(set("any").nodes, Range{});
    EXPECT_EQ(set("single-node").nodes, (Range{1, 1}));
    EXPECT_EQ(set("one-per-node").ranks_per_node, (Range{1, 1}));
}

TEST(TableFileTest, WhatIsWrittenIsReadBack)
{
    TableFile table;
    table.machines = {
        {"a \"b\" \\ \n", {{{"gpu", "2x \x01"}, {"links", "f00"}}}, "a.txt", CpuLimits{1, 2}, 0},
        {"empty", {}, "", {}, 0}};
    table.sets = {{.ranks = {2, 4},
                   .nodes = {1, 1},
                   .ranks_per_node = {2, 4},
                   .ranks_per_gpu = {1, Range::kInfinite},
                   .element_bytes = {4, 4},
                   .op = OpClass::kOther,
                   .memory = CallMemory::kMixed,
                   .machine = table.machines[0].name,
                   .rules = {{.bytes = {0, 100}, .algorithm = Algorithm::kLeader},
                             {.bytes = {101, Range::kInfinite},
                              .algorithm = Algorithm::kHierarchical,
                              .between_nodes = Algorithm::kRing,
                              .chunk_bytes = 65536}}},
                  {}};
    const std::string text = write_table(table);
    const Result<TableFile> read = parse_table(text, "t.json");
    ASSERT_TRUE(read.ok()) << read.status().message() << '\n' << text;
    EXPECT_EQ(read->machines[0].name, table.machines[0].name);
    EXPECT_EQ(read->machines[0].fingerprint.facts, table.machines[0].fingerprint.facts);
    EXPECT_EQ(read->machines[0].measurements, "a.txt");
    std::vector<RuleSet> sets = read->sets;
    for (RuleSet &set : sets) {
        set.line = 0;
        for (SizeRule &rule : set.rules) {
            rule.line = 0;
        }
    }
    EXPECT_EQ(sets, table.sets);
    EXPECT_EQ(write_table(*read), text);
}

// ---- faults, each with its line ----

TEST(TableFileTest, WhatIsNotJsonIsAFault)
{
    expect_fault("", "t.json:1: not JSON: ");
    expect_fault("{\n\n  \"module\": hetcoll\n}", "t.json:3: not JSON: ");
    expect_fault("{}\n{}", "t.json:2: not JSON: ");
    expect_fault(std::string("\0\0\0\0", 4), "t.json:1: not JSON: ");
    expect_fault("\xff\xfe", "t.json:1: not JSON: ");
    expect_fault("{\"a\": 1,\n \"b\": 2,\n \"a\": 3}", "t.json:3: key 'a' is there twice");
}

TEST(TableFileTest, ATextWithoutPrintableCharactersDoesNotReachTheTerminal)
{
    for (const char c : fault("[\"\x1b[2J\xff\"]")) {
        EXPECT_GE(c, ' ');
    }
}

TEST(TableFileTest, NestingWithoutEndIsAFault)
{
    expect_fault(std::string(500000, '['), "t.json:1: nested deeper than 16");
    std::string many = "[0";
    for (int i = 0; i < 200000; ++i) {
        many += ",0";
    }
    expect_fault(many + "]", "t.json:1: more than 100000 values");
}

TEST(TableFileTest, AnUnknownKeyIsAFault)
{
    expect_fault("{\"rule_file_version\": 3,\n\"modul\": \"hetcoll\"}",
                 "t.json:2: unknown key 'modul' in the table, known are $schema, ");
    expect_fault(with_lists("{\"comm_size\": 2, \"rules\": []}"),
                 "t.json:2: unknown key 'comm_size' in a list of rules, known are machine, ");
    expect_fault(with_rules("\n\n{\"alg\": \"ring\", \"size\": 2}"),
                 "t.json:4: unknown key 'size' in a rule, known are msg_size_min, ");
    expect_fault(kHead + std::string("\"collectives\": {\n\"bcast\": []}}"),
                 "t.json:3: unknown key 'bcast' in 'collectives', known are allreduce");
    expect_fault(kHead + std::string("\"machines\": [{\"gpu\": 1}]}"),
                 "t.json:2: unknown key 'gpu' in a machine, known are name, ");
}

TEST(TableFileTest, AWrongTypeIsAFault)
{
    expect_fault("[]", "t.json:1: the table is a list, not an object");
    expect_fault(with_rules("{\"alg\": 4}"), "t.json:2: 'alg' is a whole number, not a string");
    expect_fault(with_rules("\n{\"alg\": \"ring\", \"msg_size_min\": \"4k\"}"),
                 "t.json:3: 'msg_size_min' is '4k', not a whole number or \"inf\"");
    expect_fault(
        with_rules("{\"alg\": \"ring\", \"msg_size_min\": 4.5}"),
        "t.json:2: 'msg_size_min' is a fraction or a number too large, not a whole number");
    expect_fault(with_rules("{\"alg\": \"ring\", \"msg_size_max\": 99999999999999999999}"),
                 "t.json:2: 'msg_size_max' is a fraction or a number too large");
    expect_fault(with_rules("{\"alg\": \"ring\", \"chunk_bytes\": true}"),
                 "t.json:2: 'chunk_bytes' is true or false, not a whole number");
    expect_fault(with_lists("\n{\"rules\": {}}"), "t.json:3: 'rules' is an object, not a list");
    expect_fault(with_lists("3"), "t.json:2: a list of rules is a whole number, not an object");
    expect_fault(with_lists("{\"op\": \"max\", \"rules\": []}"),
                 "t.json:2: 'op' is 'max', not one of sum, other, any");
    expect_fault(with_lists("{\"memory\": null, \"rules\": []}"),
                 "t.json:2: 'memory' is null, not a string");
    expect_fault(
        kHead + std::string("\"machines\": [{\"name\": \"a\", \"fingerprint\": {\"gpu\": 8}}]}"),
        "t.json:2: 'gpu' is a whole number, not a string");
}

TEST(TableFileTest, WhatIsMissingIsAFault)
{
    expect_fault("{\"module\": \"hetcoll\"}", "t.json:1: it has no number 'rule_file_version'");
    expect_fault("{\"rule_file_version\": \"3\"}",
                 "t.json:1: it has no number 'rule_file_version'");
    expect_fault(
        "{\"rule_file_version\": 2}",
        "t.json:1: 'rule_file_version' is 2, and this hetcoll reads 3: an older hetcoll has "
        "written the table");
    expect_fault(
        "{\"rule_file_version\": 4}",
        "t.json:1: 'rule_file_version' is 4, and this hetcoll reads 3: a newer hetcoll has "
        "written the table");
    expect_fault("{\"rule_file_version\": 3, \"module\":\n\"tuned\"}",
                 "t.json:2: 'module' is not \"hetcoll\"");
    expect_fault("{\"rule_file_version\": 3, \"module\": \"hetcoll\"}",
                 "t.json:1: the table has no 'collectives'");
    expect_fault(with_lists("{}"), "t.json:2: a list of rules has no 'rules'");
    expect_fault(with_rules("{}"), "t.json:2: a rule has no 'alg'");
    expect_fault(kHead + std::string("\"machines\": [{\"fingerprint\": {}}]}"),
                 "t.json:2: a machine has no 'name'");
    expect_fault(kHead + std::string("\"machines\": [{\"name\": \"a\"}]}"),
                 "t.json:2: machine 'a' has no 'fingerprint'");
    expect_fault(with_lists("{\"machine\": \"a\", \"rules\": []}"),
                 "t.json:2: machine 'a' is not in 'machines'");
}

TEST(TableFileTest, AnUnknownAlgorithmIsAFault)
{
    expect_fault(with_rules("\n{\"alg\": \"rings\"}"),
                 "t.json:3: 'alg': unknown algorithm 'rings', known are recursive_doubling, ");
    expect_fault(with_rules("{\"alg\": \"hierarchical\", \"between_nodes\": \"tree\"}"),
                 "t.json:2: 'between_nodes': unknown algorithm 'tree', known are "
                 "recursive_doubling, rabenseifner, ring, radix3, radix4, radix8, "
                 "recursive_multiplying;");
}

TEST(TableFileTest, SizesThatCannotBeAreFaults)
{
    expect_fault(with_rules("\n{\"alg\": \"ring\",\n\"msg_size_min\": -1}"),
                 "t.json:4: 'msg_size_min' is -1, a size is never negative");
    expect_fault(with_rules("{\"alg\": \"ring\", \"msg_size_min\": 5, \"msg_size_max\": 4}"),
                 "t.json:2: 'msg_size_min' is above 'msg_size_max'");
    expect_fault(with_lists("{\"nodes_min\": \"inf\", \"nodes_max\": 4, \"rules\": []}"),
                 "t.json:2: 'nodes_min' is above 'nodes_max'");
    for (const char *chunk : {"0", "8", "100", "524304"}) {
        expect_fault(with_rules(std::string("{\"alg\": \"ring\", \"chunk_bytes\": ") + chunk + "}"),
                     std::string("t.json:2: 'chunk_bytes' is ") + chunk + ", not a multiple of 16");
    }
}

TEST(TableFileTest, OverlappingMessageSizesAreAFault)
{
    expect_fault(with_rules("\n{\"alg\": \"ring\", \"msg_size_max\": 100},\n"
                            "{\"alg\": \"host\", \"msg_size_min\": 100}"),
                 "t.json:4: its message sizes overlap those of the rule in line 3");
    EXPECT_EQ(fault(with_rules("{\"alg\": \"ring\", \"msg_size_max\": 100},"
                               "{\"alg\": \"host\", \"msg_size_min\": 101}")),
              "no fault");
}

TEST(TableFileTest, OverlappingListsAreAFault)
{
    const std::string wide = "\n{\"comm_size_min\": 2, \"comm_size_max\": 8, \"rules\": []}";
    expect_fault(
        with_lists(wide + ",\n{\"comm_size_min\": 8, \"comm_size_max\": 9, \"rules\": []}"),
        "t.json:4: its ranges overlap those of the list in line 3");
    expect_fault(with_lists(wide + "," + wide), "t.json:4: its ranges overlap");
    expect_fault(
        with_lists(wide + ",\n{\"comm_size_min\": 4, \"comm_size_max\": 4, \"rules\": []}"),
        "t.json:4: its ranges overlap"); // never reached
    expect_fault(with_lists(wide + ",\n{\"nodes_min\": 2, \"rules\": []}"),
                 "t.json:4: its ranges overlap");
}

TEST(TableFileTest, AnExceptionBeforeItsRuleIsNone)
{
    EXPECT_EQ(fault(with_lists("{\"comm_size_min\": 4, \"comm_size_max\": 4, \"rules\": []},"
                               "{\"comm_size_min\": 2, \"comm_size_max\": 8, \"rules\": []}")),
              "no fault");
    EXPECT_EQ(
        fault(with_lists("{\"op\": \"sum\", \"rules\": []}, {\"op\": \"other\", \"rules\": []}")),
        "no fault");
    EXPECT_EQ(fault(with_lists("{\"op\": \"sum\", \"rules\": []}, {\"rules\": []}")), "no fault");
}

// ---- files ----

class TableOnDiskTest : public ::testing::Test {
protected:
    void SetUp() override
    {
        path_ = TempDir() + "hetcoll_table_" + std::to_string(::getpid()) + ".json";
    }
    void TearDown() override { std::filesystem::remove(path_); }
    [[nodiscard]] std::string fault_of_file() const
    {
        const Result<TableFile> table = read_table(path_);
        return table.ok() ? "no fault" : table.status().message().substr(path_.size());
    }
    void write(const std::string &text) const { std::ofstream(path_) << text; }

    std::string path_;
};

TEST_F(TableOnDiskTest, AFileIsRead)
{
    write(with_rules("{\"alg\": \"ring\"}"));
    EXPECT_EQ(fault_of_file(), "no fault");
}

TEST_F(TableOnDiskTest, AMissingFileIsAFault)
{
    EXPECT_EQ(fault_of_file().find(": cannot be opened: No such file or directory; make a new"), 0u)
        << fault_of_file();
}

TEST_F(TableOnDiskTest, AnUnreadableFileIsAFault)
{
    write("{}");
    ::chmod(path_.c_str(), 0);
    const uid_t user = ::geteuid();
    constexpr uid_t kNobody = 65534; // root reads everything
    if (user == 0) {
        ASSERT_EQ(::seteuid(kNobody), 0);
    }
    const std::string fault = fault_of_file();
    EXPECT_EQ(::seteuid(user), 0);
    EXPECT_EQ(fault.find(": cannot be opened: Permission denied"), 0u) << fault;
}

TEST_F(TableOnDiskTest, WhatIsNoFileIsAFaultAndDoesNotBlock)
{
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    EXPECT_EQ(fault_of_file().find(": it is not a file"), 0u) << fault_of_file();
    const Result<TableFile> folder = read_table(TempDir());
    ASSERT_FALSE(folder.ok());
    EXPECT_NE(folder.status().message().find("it is not a file"), std::string::npos);
}

TEST_F(TableOnDiskTest, AHundredMegabytesAreRefusedUnread)
{
    write("garbage");
    std::filesystem::resize_file(path_, 100'000'000); // sparse
    EXPECT_EQ(fault_of_file().find(": it has 100000000 bytes, a table has at most 1048576"), 0u)
        << fault_of_file();
    expect_fault(std::string(kMaxTableBytes + 1, ' '), "t.json: it has 1048577 bytes");
}

} // namespace
} // namespace hetcoll
