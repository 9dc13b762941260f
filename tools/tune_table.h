// The files that hetcoll_tune writes.
#pragma once

#include "base/installed.h"
#include "base/status.h"
#include "tuning/measurements.h"

#include <string>
#include <vector>

namespace hetcoll {

// The path of the measurements next to a table: "DIR/NAME.MACHINE.measurements" for
// "DIR/NAME.json".
[[nodiscard]] std::string measurements_path(const std::string &table, const std::string &machine);

// The table that hetcoll_tune brings up to date without --output, so that
// coll_hetcoll_tuning_table=auto reads it afterwards: sysconfdir's table; the data folder's only
// where sysconfdir cannot be written and has none.
[[nodiscard]] std::string table_to_install(const InstalledFolders &folders);

// Whether a table could be written there, and nothing that is there would be lost: before the
// measuring, which takes minutes.
[[nodiscard]] Status check_output(const std::string &path);

// Writes all of it or nothing: a reader sees the old file or the new one.
[[nodiscard]] Status write_file(const std::string &path, const std::string &text);
[[nodiscard]] Result<std::string> read_file(const std::string &path);

struct WrittenTable {
    int rules = 0;
    std::vector<std::string> notes; // for a person, a line each
};

// Puts the rules for this machine into the table, which is made if there is none. An error if what
// is there is not understood, or if the new table has more than one may have; it stays then.
// A table that it will hide, because it is the installed one of sysconfdir, hands over what it has
// for other machines.
[[nodiscard]] Result<WrittenTable> update_table(const std::string &path,
                                                const Measurements &measurements);

} // namespace hetcoll
