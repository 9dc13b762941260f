// Where hetcoll's own files lie. An installation may be moved as a whole, so the component and the
// programs go by where they lie themselves; where make install was told to put things comes last.
#pragma once

#include <string>

namespace hetcoll {

struct InstalledFolders {
    std::string topologies; // shipped topologies and clusters
    std::string config;     // sysconfdir's: what was made on this machine
    std::string data;       // what was shipped
    std::string component;  // where Open MPI should find the component; empty: nobody knows
};

// Where the component or the program lies that this code is a part of. Empty: the loader does not
// know.
[[nodiscard]] std::string own_folder();

// The folder of that component or program. In a build folder: its topologies,
// all else where it will be installed.
[[nodiscard]] InstalledFolders installed_folders();

// The same for a file that lies in `folder`: for tests.
[[nodiscard]] InstalledFolders installed_folders_of(const std::string &folder);

// The tuning table of coll_hetcoll_tuning_table=auto: sysconfdir's, else the data folder's. Empty:
// neither is there.
[[nodiscard]] std::string installed_table(const InstalledFolders &folders);
inline constexpr const char *kTableName = "tuning_table.json";

} // namespace hetcoll
