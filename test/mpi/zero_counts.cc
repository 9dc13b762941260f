// Right programs in which some ranks, or all, have nothing to send or to receive. Open MPI ends
// some of these calls itself, before hetcoll sees them. hetcoll numbers those that it sees, and
// compares the numbers whenever ranks meet, so no rank may see more of them than another one. An
// error ends the job.
#include "test/mpi/vector.h"

#include <functional>
#include <vector>

namespace hetcoll::test {
namespace {

using Elements = std::vector<int>; // or how many there are for each rank

constexpr int kUntouched = -1;

// Element `index` of what `rank` brings.
int value_of(int rank, int index) { return 100 * rank + index + 1; }

// One round: rank r has counts[r] elements.
class Round {
public:
    Round(Program &program, MPI_Comm comm, Memory memory, Elements counts, int root)
        : program_(program), comm_(comm), memory_(memory), counts_(std::move(counts)), root_(root),
          rank_(program.rank()), mine_(counts_[index(rank_)])
    {
        for (const int count : counts_) {
            equal_ = equal_ && count == mine_;
        }
    }

    void run()
    {
        bcast_and_reduce();
        gather_and_scatter();
        gatherv();
        scatterv();
        allgathers();
        alltoall();
        alltoallv();
        scans();
        reduce_scatters();
        MPI_Barrier(comm_);
        // The numbers are compared in this one.
        check_allreduce(
            program_, comm_,
            {{ElementKind::kInt32, ReduceOp::kSum, Values::kExact, 3}, 3, memory_, memory_});
        split();
    }

private:
    static std::size_t index(int number) { return static_cast<std::size_t>(number); }

    // What `rank` brings to each of `blocks`.
    [[nodiscard]] static Elements brought(int rank, int count, int blocks = 1)
    {
        Elements all;
        for (int block = 0; block < blocks; ++block) {
            for (int i = 0; i < count; ++i) {
                all.push_back(value_of(rank, i));
            }
        }
        return all;
    }
    // The contributions of all ranks, one behind the other.
    [[nodiscard]] static Elements brought_by_all(const Elements &counts)
    {
        Elements all;
        for (std::size_t rank = 0; rank < counts.size(); ++rank) {
            const Elements part = brought(static_cast<int>(rank), counts[rank]);
            all.insert(all.end(), part.begin(), part.end());
        }
        return all;
    }
    // The sums over the ranks before `end`, of `blocks` times `count` elements.
    [[nodiscard]] static Elements sums(int end, int count, int blocks = 1)
    {
        Elements all(index(blocks * count));
        for (int rank = 0; rank < end; ++rank) {
            const Elements part = brought(rank, count, blocks);
            for (std::size_t i = 0; i < all.size(); ++i) {
                all[i] += part[i];
            }
        }
        return all;
    }
    [[nodiscard]] static Elements offsets_of(const Elements &counts, int unit = 1)
    {
        Elements offsets;
        int end = 0;
        for (const int count : counts) {
            offsets.push_back(end);
            end += count * unit;
        }
        return offsets;
    }

    // Makes a call of these inputs, and checks its output: exactly `expected`.
    void check(const char *name, const Elements &in, const Elements &expected,
               const std::function<int(int *in, int *out)> &call)
    {
        const Vector<int> send(program_, in, memory_);
        const Vector<int> recv(program_, Elements(expected.size() + 1, kUntouched), memory_);
        call(send.data(), recv.data());
        recv.check([&](std::size_t i) { return i < expected.size() ? expected[i] : kUntouched; },
                   name);
    }
    // At the root alone.
    [[nodiscard]] Elements at_root(Elements values) const
    {
        return rank_ == root_ ? std::move(values) : Elements();
    }

    // ---- the same count on all ranks: of nothing all have nothing ----
    void bcast_and_reduce()
    {
        if (!equal_) {
            return;
        }
        const Vector<int> vector(program_, brought(rank_, mine_), memory_);
        MPI_Bcast(vector.data(), mine_, MPI_INT, root_, comm_);
        vector.check([&](std::size_t i) { return value_of(root_, static_cast<int>(i)); }, "Bcast");
        check("Reduce", brought(rank_, mine_), at_root(sums(program_.ranks(), mine_)),
              [&](int *in, int *out) {
                  return MPI_Reduce(in, out, mine_, MPI_INT, MPI_SUM, root_, comm_);
              });
        check("Allreduce", brought(rank_, mine_), sums(program_.ranks(), mine_),
              [&](int *in, int *out) {
                  return MPI_Allreduce(in, out, mine_, MPI_INT, MPI_SUM, comm_);
              });
    }
    void gather_and_scatter()
    {
        if (!equal_) {
            return;
        }
        check("Gather", brought(rank_, mine_), at_root(brought_by_all(counts_)),
              [&](int *in, int *out) {
                  // Arguments that count at the root alone are zero on the others.
                  return MPI_Gather(in, mine_, MPI_INT, out, rank_ == root_ ? mine_ : 0, MPI_INT,
                                    root_, comm_);
              });
        check("Scatter", at_root(brought_by_all(counts_)), brought(rank_, mine_),
              [&](int *in, int *out) {
                  return MPI_Scatter(in, rank_ == root_ ? mine_ : 0, MPI_INT, out, mine_, MPI_INT,
                                     root_, comm_);
              });
    }
    void alltoall()
    {
        if (!equal_) {
            return;
        }
        check("Alltoall", brought(rank_, mine_, program_.ranks()), brought_by_all(counts_),
              [&](int *in, int *out) {
                  return MPI_Alltoall(in, mine_, MPI_INT, out, mine_, MPI_INT, comm_);
              });
    }
    void scans()
    {
        if (!equal_) {
            return;
        }
        check("Scan", brought(rank_, mine_), sums(rank_ + 1, mine_),
              [&](int *in, int *out) { return MPI_Scan(in, out, mine_, MPI_INT, MPI_SUM, comm_); });
        check(
            "Exscan", brought(rank_, mine_), rank_ == 0 ? Elements() : sums(rank_, mine_),
            [&](int *in, int *out) { return MPI_Exscan(in, out, mine_, MPI_INT, MPI_SUM, comm_); });
    }

    // ---- each rank its own ----
    void gatherv()
    {
        const Elements offsets = offsets_of(counts_);
        check("Gatherv", brought(rank_, mine_), at_root(brought_by_all(counts_)),
              [&](int *in, int *out) {
                  const bool is_root = rank_ == root_;
                  return MPI_Gatherv(in, mine_, MPI_INT, out, is_root ? counts_.data() : nullptr,
                                     is_root ? offsets.data() : nullptr, MPI_INT, root_, comm_);
              });
    }
    void scatterv()
    {
        const Elements offsets = offsets_of(counts_);
        check("Scatterv", at_root(brought_by_all(counts_)), brought(rank_, mine_),
              [&](int *in, int *out) {
                  const bool is_root = rank_ == root_;
                  return MPI_Scatterv(in, is_root ? counts_.data() : nullptr,
                                      is_root ? offsets.data() : nullptr, MPI_INT, out, mine_,
                                      MPI_INT, root_, comm_);
              });
    }
    void allgathers()
    {
        const Elements offsets = offsets_of(counts_);
        check("Allgatherv", brought(rank_, mine_), brought_by_all(counts_), [&](int *in, int *out) {
            return MPI_Allgatherv(in, mine_, MPI_INT, out, counts_.data(), offsets.data(), MPI_INT,
                                  comm_);
        });
        if (equal_) {
            check("Allgather", brought(rank_, mine_), brought_by_all(counts_),
                  [&](int *in, int *out) {
                      return MPI_Allgather(in, mine_, MPI_INT, out, mine_, MPI_INT, comm_);
                  });
        }
    }
    // Who has nothing gets nothing, either, so all its counts are zero.
    void alltoallv()
    {
        Elements send, recv, got;
        for (int peer = 0; peer < program_.ranks(); ++peer) {
            const int theirs = counts_[index(peer)];
            send.push_back(theirs != 0 ? mine_ : 0);
            recv.push_back(mine_ != 0 ? theirs : 0);
            const Elements part = brought(peer, recv.back());
            got.insert(got.end(), part.begin(), part.end());
        }
        const Elements in_offsets(send.size()), out_offsets = offsets_of(recv);
        check("Alltoallv", brought(rank_, mine_), got, [&](int *in, int *out) {
            return MPI_Alltoallv(in, send.data(), in_offsets.data(), MPI_INT, out, recv.data(),
                                 out_offsets.data(), MPI_INT, comm_);
        });
        const std::vector<MPI_Datatype> types(send.size(), MPI_INT);
        const Elements out_bytes = offsets_of(recv, static_cast<int>(sizeof(int)));
        check("Alltoallw", brought(rank_, mine_), got, [&](int *in, int *out) {
            return MPI_Alltoallw(in, send.data(), in_offsets.data(), types.data(), out, recv.data(),
                                 out_bytes.data(), types.data(), comm_);
        });
    }
    void reduce_scatters()
    {
        int all = 0;
        for (const int count : counts_) {
            all += count;
        }
        const int first = offsets_of(counts_)[index(rank_)];
        const Elements sum = sums(program_.ranks(), all);
        check("Reduce_scatter", brought(rank_, all),
              {sum.begin() + first, sum.begin() + first + mine_}, [&](int *in, int *out) {
                  return MPI_Reduce_scatter(in, out, counts_.data(), MPI_INT, MPI_SUM, comm_);
              });
        if (equal_) {
            check("Reduce_scatter_block", brought(rank_, all),
                  {sum.begin() + first, sum.begin() + first + mine_}, [&](int *in, int *out) {
                      return MPI_Reduce_scatter_block(in, out, mine_, MPI_INT, MPI_SUM, comm_);
                  });
        }
    }

    // Open MPI's own collectives on the communicator.
    void split()
    {
        MPI_Comm part = MPI_COMM_NULL;
        MPI_Comm_split(comm_, mine_ != 0 ? 0 : MPI_UNDEFINED, rank_, &part);
        program_.check((part == MPI_COMM_NULL) == (mine_ == 0), "Comm_split");
        if (part != MPI_COMM_NULL) {
            MPI_Comm_free(&part);
        }
    }

    Program &program_;
    MPI_Comm comm_;
    const Memory memory_;
    const Elements counts_;
    const int root_, rank_, mine_;
    bool equal_ = true; // all ranks have as many
};

// Nobody has nothing, everybody has, one has, all but one have.
void run_all(Program &program, MPI_Comm comm)
{
    const auto ranks = static_cast<std::size_t>(program.ranks());
    std::vector<Elements> counts = {Elements(ranks, 3), Elements(ranks, 0)};
    for (std::size_t one = 0; one < ranks; ++one) {
        for (const int its : {0, 3}) {
            counts.emplace_back(ranks, its == 0 ? 2 : 0)[one] = its;
        }
    }
    for (const Elements &round : counts) {
        for (int root = 0; root < program.ranks(); ++root) {
            Round(program, comm, Memory::kHost, round, root).run();
            Round(program, comm, Memory::kDevice, round, root).run();
        }
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "zero_counts");
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    run_all(program, comm);
    MPI_Comm_free(&comm);
    return program.finish();
}
