#include "tuning/json_reader.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#define HETCOLL_HAVE_JSON 1
#endif

namespace hetcoll {

const JsonNode *find_member(const JsonNode &object, std::string_view key) noexcept
{
    const auto at = std::find(object.keys.begin(), object.keys.end(), key);
    return at == object.keys.end() ? nullptr : &object.items[at - object.keys.begin()];
}

const char *kind_name(JsonNode::Kind kind) noexcept
{
    switch (kind) {
    case JsonNode::Kind::kNull: return "null";
    case JsonNode::Kind::kBool: return "true or false";
    case JsonNode::Kind::kInteger: return "a whole number";
    case JsonNode::Kind::kReal: return "a fraction or a number too large";
    case JsonNode::Kind::kString: return "a string";
    case JsonNode::Kind::kArray: return "a list";
    case JsonNode::Kind::kObject: return "an object";
    }
    return "";
}

#ifdef HETCOLL_HAVE_JSON
namespace {

constexpr std::size_t kMaxDepth = 16;
constexpr int kMaxNodes = 100000;
constexpr std::size_t kMaxCause = 200;

// The line of the last character that is not a blank. The token that the parser has just read ends
// there, even if the parser looked one character ahead.
struct Position {
    int line = 1;
    int token_line = 1;
};

class CountingIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char *;
    using reference = const char &;

    CountingIterator(const char *at, Position *position) : at_(at), position_(position) {}
    reference operator*() const { return *at_; }
    CountingIterator &operator++()
    {
        if (*at_ == '\n') {
            ++position_->line;
        } else if (*at_ != ' ' && *at_ != '\t' && *at_ != '\r') {
            position_->token_line = position_->line;
        }
        ++at_;
        return *this;
    }
    CountingIterator operator++(int)
    {
        CountingIterator before = *this;
        ++*this;
        return before;
    }
    bool operator==(const CountingIterator &other) const { return at_ == other.at_; }
    bool operator!=(const CountingIterator &other) const { return at_ != other.at_; }

private:
    const char *at_;
    Position *position_;
};

// The parser's message, without its own prefixes and without what must not be printed.
std::string cause_of(std::string text)
{
    for (const char *marker : {"] ", "parse error", ": "}) {
        const std::size_t found = text.find(marker);
        if (found != std::string::npos) {
            text.erase(0, found + std::string_view(marker).size());
        }
    }
    std::replace_if(
        text.begin(), text.end(),
        [](char c) { return std::isprint(static_cast<unsigned char>(c)) == 0; }, '?');
    if (text.size() > kMaxCause) {
        text.resize(kMaxCause);
        text += "...";
    }
    return "not JSON: " + text;
}

// Builds the tree from the parser's events; false stops the parser.
class TreeBuilder {
public:
    using Json = nlohmann::json;

    TreeBuilder(const Position &position, JsonNode &root, JsonError &error)
        : position_(position), root_(root), error_(error)
    {
    }

    bool null() { return add(JsonNode::Kind::kNull) != nullptr; }
    bool boolean(bool) { return add(JsonNode::Kind::kBool) != nullptr; }
    bool number_integer(Json::number_integer_t value)
    {
        JsonNode *node = add(JsonNode::Kind::kInteger);
        if (node != nullptr) {
            node->integer = value;
            node->real = static_cast<double>(value);
        }
        return node != nullptr;
    }
    bool number_unsigned(Json::number_unsigned_t value)
    {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            return add_real(static_cast<double>(value));
        }
        return number_integer(static_cast<Json::number_integer_t>(value));
    }
    bool number_float(Json::number_float_t value, const Json::string_t &)
    {
        return add_real(value);
    }
    bool string(Json::string_t &value)
    {
        JsonNode *node = add(JsonNode::Kind::kString);
        if (node != nullptr) {
            node->string = std::move(value);
        }
        return node != nullptr;
    }
    bool binary(Json::binary_t &) { return fail("not JSON: binary data"); }
    bool start_object(std::size_t) { return open(JsonNode::Kind::kObject); }
    bool end_object() { return close(); }
    bool start_array(std::size_t) { return open(JsonNode::Kind::kArray); }
    bool end_array() { return close(); }
    bool key(Json::string_t &value)
    {
        std::vector<std::string> &keys = open_.back()->keys;
        if (std::find(keys.begin(), keys.end(), value) != keys.end()) {
            return fail("key '" + value + "' is there twice");
        }
        keys.push_back(std::move(value));
        return true;
    }
    bool parse_error(std::size_t, const std::string &, const Json::exception &problem)
    {
        return fail(cause_of(problem.what()));
    }

private:
    bool fail(std::string cause)
    {
        error_ = {position_.token_line, std::move(cause)};
        return false;
    }
    bool add_real(double value)
    {
        JsonNode *node = add(JsonNode::Kind::kReal);
        if (node != nullptr) {
            node->real = value;
        }
        return node != nullptr;
    }
    // A pointer stays valid until its sibling is added, and then it is closed.
    JsonNode *add(JsonNode::Kind kind)
    {
        if (++nodes_ > kMaxNodes) {
            fail("more than " + std::to_string(kMaxNodes) + " values");
            return nullptr;
        }
        JsonNode *node = &root_;
        if (!open_.empty()) {
            node = &open_.back()->items.emplace_back();
        }
        node->kind = kind;
        node->line = position_.token_line;
        return node;
    }
    bool open(JsonNode::Kind kind)
    {
        if (open_.size() == kMaxDepth) {
            return fail("nested deeper than " + std::to_string(kMaxDepth));
        }
        JsonNode *node = add(kind);
        if (node != nullptr) {
            open_.push_back(node);
        }
        return node != nullptr;
    }
    bool close()
    {
        open_.pop_back();
        return true;
    }

    const Position &position_;
    JsonNode &root_;
    JsonError &error_;
    std::vector<JsonNode *> open_;
    int nodes_ = 0;
};

} // namespace

bool read_json(std::string_view text, JsonNode *root, JsonError *error)
{
    Position position;
    TreeBuilder builder(position, *root, *error);
    const CountingIterator begin(text.data(), &position);
    const CountingIterator end(text.data() + text.size(), &position);
    return nlohmann::json::sax_parse(begin, end, &builder);
}

#else

bool read_json(std::string_view, JsonNode *, JsonError *error)
{
    *error = {1, "this hetcoll was built without a JSON parser: install the Debian package "
                 "nlohmann-json3-dev and build it again"};
    return false;
}

#endif

} // namespace hetcoll
