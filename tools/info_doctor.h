// hetcoll_info doctor: whether an installation works here, and what to do where it does not.
#pragma once

#include "base/status.h"

#include <string>

namespace hetcoll {

class CommandLine;

struct DoctorRequest {
    bool json = false;
    std::string only;      // the checks, such as "component,table"; empty: all
    std::string mpirun;    // empty: the one on PATH
    std::string component; // the folder where it should be; empty: where make install has put it
};

void add_doctor_options(CommandLine &line, DoctorRequest &request);

[[nodiscard]] Status check_doctor(const DoctorRequest &request);

struct Diagnosis {
    std::string text; // for stdout: a line for each check, or JSON
    bool good;        // nothing is wrong
};
[[nodiscard]] Diagnosis show_doctor(const DoctorRequest &request);

} // namespace hetcoll
