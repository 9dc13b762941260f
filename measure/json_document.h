// The JSON that programs print: a tree of values, and how the documents of all tools begin.
// json_document.cc alone includes nlohmann's header, which takes seconds to compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hetcoll {

class Json {
public:
    Json() = default; // null
    Json(std::nullptr_t) {}
    template <class Number>
    requires std::is_arithmetic_v<Number> Json(Number value)
    {
        if constexpr (std::same_as<Number, bool>) {
            kind_ = Kind::kBool;
            number_ = value;
        } else if constexpr (std::floating_point<Number>) {
            kind_ = Kind::kReal;
            real_ = value;
        } else {
            kind_ = std::signed_integral<Number> ? Kind::kInteger : Kind::kCount;
            number_ = static_cast<std::uint64_t>(value);
        }
    }
    Json(std::string text) : kind_(Kind::kText), text_(std::move(text)) {}
    Json(const char *text) : Json(std::string(text)) {}
    template <class Item> Json(const std::vector<Item> &items) : kind_(Kind::kArray)
    {
        items_.assign(items.begin(), items.end());
    }
    // An object, if all items are pairs of a name and a value: {{"name", 1}, {"other", 2}}; else an
    // array.
    Json(std::initializer_list<Json> items);
    [[nodiscard]] static Json array(std::initializer_list<Json> items = {});
    [[nodiscard]] static Json object();

    // The member of an object, null if it is new; of null, which becomes an object.
    Json &operator[](const std::string &name);
    // To an array, or to null, which becomes one.
    void push_back(Json item);

    [[nodiscard]] bool is_null() const noexcept { return kind_ == Kind::kNull; }
    // The items or members.
    [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
    [[nodiscard]] Json &back() noexcept { return items_.back(); } // requires that it is not empty
    void pop_back() { items_.pop_back(); }                        // of an array; requires the same

    // On one line. Names of machines and hosts may be no UTF-8: what is not is replaced.
    [[nodiscard]] std::string line() const { return print(-1); }
    // Indented by `indent` blanks.
    [[nodiscard]] std::string print(int indent) const;

private:
    friend struct JsonPrinter;
    enum class Kind : std::uint8_t {
        kNull,
        kBool,
        kInteger,
        kCount,
        kReal,
        kText,
        kArray,
        kObject
    };

    Kind kind_ = Kind::kNull;
    std::uint64_t number_ = 0; // all but kReal
    double real_ = 0;
    std::string text_;
    std::vector<Json> items_;        // of an array; values of an object
    std::vector<std::string> names_; // of the values
};

inline constexpr int kJsonSchema = 1;

// The file that describes it, which is installed, the number of its shape, and who wrote it. A
// shape that readers of the old one would misread gets a new number.
[[nodiscard]] Json json_document(const std::string &tool);

[[nodiscard]] inline std::string json_text(const Json &json) { return json.print(2) + "\n"; }

} // namespace hetcoll
