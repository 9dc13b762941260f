// Is the explorer right? Small programs whose outcomes are known from the standard, [intro.races]
// and [atomics.order], and from the papers that explorer.h names: it has to find exactly those.
#include "explorer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>

namespace model {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kSeqCst = std::memory_order_seq_cst;

std::atomic<int> x, y;
int data;
int r[4]; // what the threads have read

using Outcomes = std::set<std::string>; // r[0], r[1] and so on, as digits

struct Found {
    Report report;
    Outcomes outcomes;
};

Found run(const Threads &threads, int registers, Mode mode)
{
    Found found;
    found.report = explore(threads, {.mode = mode, .turns = true, .at_end = [&] {
                                         std::string digits;
                                         for (int i = 0; i < registers; ++i) {
                                             digits += std::to_string(r[i]);
                                         }
                                         found.outcomes.insert(digits);
                                     }});
    return found;
}

void expect(const Found &found, const Outcomes &allowed)
{
    EXPECT_TRUE(found.report.ok) << found.report.what;
    EXPECT_TRUE(found.report.complete);
    EXPECT_EQ(found.outcomes, allowed);
}

void expect_wrong(const Found &found, const std::string &what)
{
    EXPECT_FALSE(found.report.ok);
    EXPECT_NE(found.report.what.find(what), std::string::npos) << found.report.what;
}

class Litmus : public ::testing::TestWithParam<Mode> {
public:
    Litmus()
    {
        forget_shares();
        share(&data, sizeof data, "data");
    }
};
INSTANTIATE_TEST_SUITE_P(Modes, Litmus,
                         ::testing::Values(Mode::kGraphs, Mode::kStates, Mode::kInterleavings),
                         [](const auto &one) {
                             return one.param == Mode::kGraphs   ? "Graphs"
                                    : one.param == Mode::kStates ? "States"
                                                                 : "Interleavings";
                         });

TEST_P(Litmus, ReleaseAndAcquirePassAMessage)
{
    expect(run({[] {
                    data = 1;
                    x.store(1, kRelease);
                },
                [] {
                    r[0] = x.load(kAcquire);
                    r[1] = r[0] != 0 ? data : 0;
                }},
               2, GetParam()),
           {"00", "11"});
}

TEST_P(Litmus, ARelaxedLoadPassesNoMessage)
{
    expect_wrong(run({[] {
                          data = 1;
                          x.store(1, kRelease);
                      },
                      [] { r[0] = x.load(kRelaxed) != 0 ? data : 0; }},
                     1, GetParam()),
                 "data race");
}

TEST_P(Litmus, ARelaxedStorePassesNoMessage)
{
    expect_wrong(run({[] {
                          data = 1;
                          x.store(1, kRelaxed);
                      },
                      [] { r[0] = x.load(kAcquire) != 0 ? data : 0; }},
                     1, GetParam()),
                 "data race");
}

TEST_P(Litmus, RelaxedStoresAreSeenInAnyOrder)
{
    expect(run({[] {
                    x.store(1, kRelaxed);
                    y.store(1, kRelaxed);
                },
                [] {
                    r[0] = y.load(kRelaxed);
                    r[1] = x.load(kRelaxed);
                }},
               2, GetParam()),
           {"00", "01", "10", "11"});
}

TEST_P(Litmus, AReleaseStoreIsSeenAfterThoseBeforeIt)
{
    expect(run({[] {
                    x.store(1, kRelaxed);
                    y.store(1, kRelease);
                },
                [] {
                    r[0] = y.load(kAcquire);
                    r[1] = x.load(kRelaxed);
                }},
               2, GetParam()),
           {"00", "01", "11"});
}

TEST_P(Litmus, FencesPassAMessage)
{
    expect(run({[] {
                    x.store(1, kRelaxed);
                    std::atomic_thread_fence(kRelease);
                    y.store(1, kRelaxed);
                },
                [] {
                    r[0] = y.load(kRelaxed);
                    std::atomic_thread_fence(kAcquire);
                    r[1] = x.load(kRelaxed);
                }},
               2, GetParam()),
           {"00", "01", "11"});
}

TEST_P(Litmus, StoresAreBufferedInSpiteOfReleaseAndAcquire)
{
    expect(run({[] {
                    x.store(1, kRelease);
                    r[0] = y.load(kAcquire);
                },
                [] {
                    y.store(1, kRelease);
                    r[1] = x.load(kAcquire);
                }},
               2, GetParam()),
           {"00", "01", "10", "11"});
}

TEST_P(Litmus, OneLocationIsNeverReadBackwards)
{
    expect(run({[] {
                    x.store(1, kRelaxed);
                    x.store(2, kRelaxed);
                },
                [] {
                    r[0] = x.load(kRelaxed);
                    r[1] = x.load(kRelaxed);
                }},
               2, GetParam()),
           {"00", "01", "02", "11", "12", "22"});
}

TEST_P(Litmus, TwoReadersMaySeeTwoStoresInDifferentOrders)
{
    expect(run({[] { x.store(1, kRelease); }, [] { y.store(1, kRelease); },
                [] {
                    r[0] = x.load(kAcquire);
                    r[1] = y.load(kAcquire);
                },
                [] {
                    r[2] = y.load(kAcquire);
                    r[3] = x.load(kAcquire);
                }},
               4, GetParam()),
           {"0000", "0001", "0010", "0011", "0100", "0101", "0110", "0111", "1000", "1001", "1010",
            "1011", "1100", "1101", "1110", "1111"});
}

TEST_P(Litmus, AMessageGoesOnThroughAThirdThread)
{
    expect(run({[] {
                    data = 1;
                    x.store(1, kRelease);
                },
                [] {
                    r[0] = x.load(kAcquire);
                    y.store(r[0], kRelease);
                },
                [] {
                    r[1] = y.load(kAcquire);
                    r[2] = r[1] != 0 ? data : 0;
                }},
               3, GetParam()),
           {"000", "100", "111"});
}

TEST_P(Litmus, AFlagThatNobodySetsIsWaitedForForEver)
{
    expect_wrong(run({[] { x.store(1, kRelease); },
                      [] {
                          while (y.load(kAcquire) == 0) {
                              wait_for_last();
                          }
                      }},
                     0, GetParam()),
                 "wait forever");
}

TEST_P(Litmus, AFlagThatSomebodySetsIsWaitedFor)
{
    expect(run({[] {
                    data = 7;
                    x.store(1, kRelease);
                },
                [] {
                    while (x.load(kAcquire) == 0) {
                        wait_for_last();
                    }
                    r[0] = data;
                }},
               1, GetParam()),
           {"7"});
}

TEST_P(Litmus, SoItIsByTheDearerWait)
{
    expect(run({[] {
                    data = 7;
                    x.store(1, kRelease);
                },
                [] {
                    while (x.load(kAcquire) == 0) {
                        wait();
                    }
                    r[0] = data;
                }},
               1, GetParam()),
           {"7"});
}

TEST(LitmusOfInterleavings, SequentiallyConsistentFencesForbidBufferedStores)
{
    expect(run({[] {
                    x.store(1, kRelaxed);
                    std::atomic_thread_fence(kSeqCst);
                    r[0] = y.load(kRelaxed);
                },
                [] {
                    y.store(1, kRelaxed);
                    std::atomic_thread_fence(kSeqCst);
                    r[1] = x.load(kRelaxed);
                }},
               2, Mode::kInterleavings),
           {"01", "10", "11"});
}

TEST(LitmusOfInterleavings, SequentiallyConsistentFencesPassNoMessage)
{
    forget_shares();
    share(&data, sizeof data, "data");
    expect_wrong(run({[] {
                          data = 1;
                          std::atomic_thread_fence(kSeqCst);
                      },
                      [] {
                          std::atomic_thread_fence(kSeqCst);
                          r[0] = data;
                      }},
                     1, Mode::kInterleavings),
                 "data race");
}

TEST_P(Litmus, SequentiallyConsistentAccessesForbidBufferedStores)
{
    expect(run({[] {
                    x.store(1, kSeqCst);
                    r[0] = y.load(kSeqCst);
                },
                [] {
                    y.store(1, kSeqCst);
                    r[1] = x.load(kSeqCst);
                }},
               2, GetParam()),
           {"01", "10", "11"});
}

TEST_P(Litmus, SequentiallyConsistentAccessesOfOneSideAloneDoNot)
{
    expect(run({[] {
                    x.store(1, kSeqCst);
                    r[0] = y.load(kSeqCst);
                },
                [] {
                    y.store(1, kRelaxed);
                    r[1] = x.load(kRelaxed);
                }},
               2, GetParam()),
           {"00", "01", "10", "11"});
}

TEST_P(Litmus, SequentiallyConsistentReadersSeeOneOrder)
{
    const Found found = run({[] { x.store(1, kSeqCst); }, [] { y.store(1, kSeqCst); },
                             [] {
                                 r[0] = x.load(kSeqCst);
                                 r[1] = y.load(kSeqCst);
                             },
                             [] {
                                 r[2] = y.load(kSeqCst);
                                 r[3] = x.load(kSeqCst);
                             }},
                            4, GetParam());
    EXPECT_TRUE(found.report.complete) << found.report.what;
    EXPECT_EQ(found.outcomes.size(), 15u);
    EXPECT_FALSE(found.outcomes.contains("1010"));
}

TEST(LitmusOfInterleavings, IncrementsAreNotLost)
{
    expect(run({[] { r[0] = x.fetch_add(1, kRelaxed); }, [] { r[1] = x.fetch_add(1, kRelaxed); }},
               2, Mode::kInterleavings),
           {"01", "10"});
}

TEST(LitmusOfInterleavings, AMessagePassesThroughAnIncrement)
{
    forget_shares();
    share(&data, sizeof data, "data");
    expect(run({[] {
                    data = 1;
                    x.store(1, kRelease);
                },
                [] { r[0] = x.fetch_add(1, kRelaxed); },
                [] {
                    r[1] = x.load(kAcquire) == 2 ? 1 : 0;
                    r[2] = r[0] == 1 && r[1] == 1 ? data : 9;
                }},
               3, Mode::kInterleavings),
           {"009", "109", "111"});
}

TEST(LitmusOfInterleavings, ASecondStoreEndsWhatTheFirstHasReleased)
{
    forget_shares();
    share(&data, sizeof data, "data");
    expect_wrong(run({[] {
                          data = 1;
                          x.store(1, kRelease);
                      },
                      [] {
                          if (x.load(kRelaxed) == 1) {
                              x.store(2, kRelaxed);
                          }
                      },
                      [] { r[0] = x.load(kAcquire) == 2 ? data : 0; }},
                     1, Mode::kInterleavings),
                 "data race");
}

TEST(LitmusOfGraphs, TwoWritersAreRefused)
{
    expect_wrong(
        run({[] { x.store(1, kRelaxed); }, [] { x.store(2, kRelaxed); }}, 0, Mode::kGraphs),
        "two writers");
}

TEST(LitmusOfGraphs, ReadModifyWritesAreRefused)
{
    expect_wrong(run({[] { x.fetch_add(1, kRelaxed); }}, 0, Mode::kGraphs), "read-modify-write");
}

} // namespace
} // namespace model
