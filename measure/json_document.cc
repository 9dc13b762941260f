#include "measure/json_document.h"

#include "hetcoll_config.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>

namespace hetcoll {

struct JsonPrinter {
    static nlohmann::ordered_json convert(const Json &json)
    {
        switch (json.kind_) {
        case Json::Kind::kNull: break;
        case Json::Kind::kBool: return json.number_ != 0;
        case Json::Kind::kInteger: return static_cast<std::int64_t>(json.number_);
        case Json::Kind::kCount: return json.number_;
        case Json::Kind::kReal: return json.real_;
        case Json::Kind::kText: return json.text_;
        case Json::Kind::kArray: {
            auto array = nlohmann::ordered_json::array();
            for (const Json &item : json.items_) {
                array.push_back(convert(item));
            }
            return array;
        }
        case Json::Kind::kObject: {
            auto object = nlohmann::ordered_json::object();
            for (std::size_t i = 0; i < json.items_.size(); ++i) {
                object.push_back({json.names_[i], convert(json.items_[i])});
            }
            return object;
        }
        }
        return nullptr;
    }
};

Json::Json(std::initializer_list<Json> items) : kind_(Kind::kArray)
{
    const bool is_object = std::all_of(items.begin(), items.end(), [](const Json &item) {
        return item.kind_ == Kind::kArray && item.items_.size() == 2 &&
               item.items_[0].kind_ == Kind::kText;
    });
    if (!is_object) {
        items_ = items;
        return;
    }
    kind_ = Kind::kObject;
    for (const Json &item : items) {
        (*this)[item.items_[0].text_] = item.items_[1];
    }
}

Json Json::array(std::initializer_list<Json> items)
{
    Json json;
    json.kind_ = Kind::kArray;
    json.items_ = items;
    return json;
}

Json Json::object()
{
    Json json;
    json.kind_ = Kind::kObject;
    return json;
}

Json &Json::operator[](const std::string &name)
{
    kind_ = Kind::kObject;
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) {
        return items_[static_cast<std::size_t>(found - names_.begin())];
    }
    names_.push_back(name);
    return items_.emplace_back();
}

void Json::push_back(Json item)
{
    kind_ = Kind::kArray;
    items_.push_back(std::move(item));
}

std::string Json::print(int indent) const
{
    return JsonPrinter::convert(*this).dump(indent, ' ', false,
                                            nlohmann::ordered_json::error_handler_t::replace);
}

Json json_document(const std::string &tool)
{
    return {{"$schema", tool + ".schema.json"},
            {"schema", kJsonSchema},
            {"tool", tool},
            {"version", HETCOLL_VERSION}};
}

} // namespace hetcoll
