#include "base/hash.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

template <class... Parts> constexpr std::uint64_t hash_of(const Parts &...parts)
{
    Hash hash;
    (hash.add(parts), ...);
    return hash.value();
}

TEST(HashTest, IsThatOfTheBytes) // of FNV-1a, in tuning tables
{
    EXPECT_EQ(Hash().value(), 0xcbf29ce484222325u);
    EXPECT_EQ(hash_of(std::uint64_t{0x6f6f66}), 0x378e2f2abb59d305u);
    EXPECT_EQ(hash_of(std::string_view("")), hash_of(std::uint64_t{0}));
}

TEST(HashTest, TextsThatAreDividedInAnotherPlaceDiffer)
{
    EXPECT_NE(hash_of(std::string_view("a"), std::string_view("bc")),
              hash_of(std::string_view("ab"), std::string_view("c")));
}

} // namespace
} // namespace hetcoll
