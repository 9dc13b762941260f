// What the boundary's functions are given for a process.
#pragma once

#include "engine/process/process.h"

#include <memory>

struct hetcoll_process {
    std::unique_ptr<hetcoll::Process> process;
};
