// The file that the component loads where aggregators are used. That it can be loaded is for the
// MPI tests: there is none next to this program.
#include "aggregator/client_library.h"
#include "base/installed.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

TEST(ClientLibraryTest, AFileThatIsNotThereIsNamedWithTheWayOut)
{
    const auto clients = load_aggregator_clients();
    ASSERT_FALSE(clients.ok());
    const std::string &message = clients.status().message(),
                      file = own_folder() + "/hetcoll_aggregators.so";
    EXPECT_EQ(message.find("the ranks' side of aggregators cannot be loaded: " + file + ": "), 0u)
        << message;
    EXPECT_NE(message.find("No such file or directory. The file belongs next to the component: "
                           "install hetcoll again, or leave coll_hetcoll_aggregators empty"),
              std::string::npos)
        << message;
}

} // namespace
} // namespace hetcoll
