// The version of hetcoll.
#pragma once

#include <string>

namespace hetcoll {

// "0.1.0, commit 35406d0abcde": configure.ac's version, and the commit unless it is a release.
[[nodiscard]] std::string version();

} // namespace hetcoll
