// Whether a file or process belongs to the user that this process runs as.
#pragma once

#include <sys/types.h>

namespace hetcoll {

// `uid`: as the kernel tells it. False for the number that stands for every user who has none in
// this user namespace (65534), also if this process has no other: that may be anybody.
[[nodiscard]] bool is_own_user(uid_t uid) noexcept;

} // namespace hetcoll
