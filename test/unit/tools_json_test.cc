// The tree of JSON values that tools print.
#include "measure/json_document.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

TEST(JsonTest, ListsOfNamesWithValuesAreObjectsAndOthersAreArrays)
{
    EXPECT_EQ((Json{{"a", 1}, {"b", {1, 2}}}).line(), R"({"a":1,"b":[1,2]})");
    EXPECT_EQ((Json{{"a", {{"b", "c"}}}}).line(), R"({"a":{"b":"c"}})");
    EXPECT_EQ((Json{"a", "b"}).line(), R"(["a","b"])");
    EXPECT_EQ((Json{{"a", 1}, {2, 3}}).line(), R"([["a",1],[2,3]])");
    EXPECT_EQ(Json(std::vector<int>{1, 2}).line(), "[1,2]");
}

TEST(JsonTest, NumbersKeepTheirKindAndAllTheirDigits)
{
    EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).line(), "18446744073709551615");
    EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()).line(), "-9223372036854775808");
    EXPECT_EQ(Json(-1).line(), "-1");
    EXPECT_EQ(Json(1.0).line(), "1.0");
    EXPECT_EQ(Json(0.1).line(), "0.1");
    EXPECT_EQ(Json(true).line(), "true");
    EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).line(), "null");
}

TEST(JsonTest, MembersKeepTheirOrderAndMayBeReplaced)
{
    Json json = Json::object();
    json["z"] = 1;
    json["a"].push_back({{"b", nullptr}});
    json["z"] = "two";
    EXPECT_EQ(json.line(), R"({"z":"two","a":[{"b":null}]})");
    EXPECT_EQ(json_text(json),
              "{\n  \"z\": \"two\",\n  \"a\": [\n    {\n      \"b\": null\n    }\n  ]\n}\n");
    EXPECT_EQ(Json::array().line() + Json::object().line() + Json().line(), "[]{}null");
}

TEST(JsonTest, TextThatIsNoUtf8IsReplaced)
{
    EXPECT_EQ(Json(std::string("a\xff\"\n")).line(), "\"a\xef\xbf\xbd\\\"\\n\"");
}

} // namespace
} // namespace hetcoll
