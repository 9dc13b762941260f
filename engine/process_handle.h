// The handle of a process in the boundary's functions.
#pragma once

#include "engine/process/process.h"

#include <memory>

struct hetcoll_process {
    std::unique_ptr<hetcoll::Process> process;
};
