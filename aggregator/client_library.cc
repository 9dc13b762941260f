#include "aggregator/client_library.h"

#include "base/installed.h"
#include "base/library.h"

namespace hetcoll {
namespace {

#define HETCOLL_TEXT_OF_(name) #name
#define HETCOLL_TEXT_OF(name) HETCOLL_TEXT_OF_(name)

constexpr const char *kFile = "hetcoll_aggregators.so";
constexpr const char *kFunction = HETCOLL_TEXT_OF(HETCOLL_AGGREGATOR_CLIENTS);

} // namespace

Result<std::unique_ptr<AggregatorClients>> load_aggregator_clients()
{
    const std::string file = own_folder() + "/" + kFile;
    decltype(&HETCOLL_AGGREGATOR_CLIENTS) make = nullptr;
    Status loaded = load_functions("the ranks' side of aggregators", file.c_str(),
                                   [&](auto look_up) { look_up(kFunction, make); });
    if (!loaded.ok()) {
        return error(loaded.code(),
                     "%s. The file belongs next to the component: install hetcoll again, or leave "
                     "coll_hetcoll_aggregators empty",
                     loaded.message().c_str());
    }
    return std::unique_ptr<AggregatorClients>(make());
}

} // namespace hetcoll
