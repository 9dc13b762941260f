// The expected result of a Job.
#pragma once

#include "engine_job.h"

#include <gtest/gtest.h>

namespace hetcoll::test {

inline void expect_sums(const Job &job, std::size_t count)
{
    const int size = static_cast<int>(job.output.size());
    for (int rank = 0; rank < size && size > 1; ++rank) {
        for (std::size_t i = 0; i < count; ++i) {
            ASSERT_EQ(job.output[rank][i], size * (size + 1) / 2 * static_cast<double>(i % 97 + 1))
                << "rank " << rank << " of " << size << ", element " << i;
        }
    }
}

} // namespace hetcoll::test
