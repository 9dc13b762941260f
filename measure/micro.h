// Shared by the micro-benchmarks: how they end on an error, and the header without which a number
// is no result.
#pragma once

#include "measure/buffer.h"

#include <utility>
#include <vector>

namespace hetcoll {

// Ends the program with a message unless the result or the status is good.
void require(CUresult result, const char *call);
void require(const Status &status);
template <class T> T require(Result<T> result)
{
    if (!result.ok()) {
        require(result.take_status());
    }
    return std::move(*result);
}

// "# key value" lines: when, on what machine and GPU, under what load, with what code.
void print_header(const Gpu &gpu, const char *what);
void print_header(const char *what); // where no GPU takes part

// The middle value, the lower one of two. Requires at least one.
[[nodiscard]] double median(std::vector<double> values);

} // namespace hetcoll
