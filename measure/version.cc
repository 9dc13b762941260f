// Apart from the rest, because it is compiled again for each commit.
#include "measure/version.h"

#include "hetcoll_config.h"
#include "measure/commit.h"

#include <string_view>

namespace hetcoll {

std::string version()
{
    const bool is_release = std::string_view(HETCOLL_COMMIT).starts_with("release ");
    return is_release ? HETCOLL_VERSION : HETCOLL_VERSION ", commit " HETCOLL_COMMIT;
}

} // namespace hetcoll
