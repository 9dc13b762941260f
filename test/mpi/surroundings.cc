// A program changes what hetcoll has found around the process, after MPI_Init and on some ranks
// alone: what the ranks go by must stay what they told each other. The arguments are the variable's
// name, its value, and which ranks set it: "odd" or "all". VALUE "-" unsets it. With "device" all
// memory is on devices, else on the host, and where a GPU can be seen on some ranks mixed, too.
#include "test/mpi/check.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

using Vector = std::vector<int>;

Vector filled(std::size_t count, int rank)
{
    Vector values(count);
    for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<int>(i % 1000) * (rank + 1);
    }
    return values;
}

class Calls {
public:
    Calls(Program &program, Memory memory, int count)
        : program_(program), memory_(memory), count_(count),
          all_(static_cast<std::size_t>(count * program.ranks()))
    {
    }

    void run()
    {
        const Vector sum = filled(size(), program_.ranks() * (program_.ranks() + 1) / 2 - 1);
        const Buffer in = made(filled(size(), program_.rank())), out = made(Vector(size()));
        MPI_Allreduce(in.data(), out.data(), count_, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        expect(out, sum, "Allreduce");
        MPI_Request request = MPI_REQUEST_NULL;
        const Buffer later = made(Vector(size()));
        MPI_Iallreduce(in.data(), later.data(), count_, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(later, sum, "Iallreduce");
        const Buffer at_root = made(Vector(size()));
        MPI_Reduce(in.data(), at_root.data(), count_, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        expect(at_root, program_.rank() == 0 ? sum : Vector(size()), "Reduce");
        const Buffer vector = made(filled(size(), program_.rank()));
        MPI_Bcast(vector.data(), count_, MPI_INT, 0, MPI_COMM_WORLD);
        expect(vector, filled(size(), 0), "Bcast");
        gather(in);
    }

private:
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(count_); }
    void gather(const Buffer &in) const
    {
        Vector want;
        for (int rank = 0; rank < program_.ranks(); ++rank) {
            const Vector share = filled(size(), rank);
            want.insert(want.end(), share.begin(), share.end());
        }
        const Buffer shares = made(Vector(all_));
        MPI_Allgather(in.data(), count_, MPI_INT, shares.data(), count_, MPI_INT, MPI_COMM_WORLD);
        expect(shares, want, "Allgather");
    }
    [[nodiscard]] Buffer made(const Vector &values) const
    {
        auto buffer = Buffer::allocate(memory_ == Memory::kHost ? nullptr : &program_.gpu(),
                                       memory_, values.size() * sizeof(int));
        if (!buffer.ok()) {
            program_.require(buffer.status());
        }
        program_.require(buffer->write(0, values.data(), values.size() * sizeof(int)));
        return std::move(*buffer);
    }
    void expect(const Buffer &buffer, const Vector &want, const char *what) const
    {
        Vector got(want.size());
        program_.require(buffer.read(0, got.data(), got.size() * sizeof(int)));
        program_.check(got == want, "%s of %d elements on %s memory", what, count_,
                       memory_name(memory_));
    }

    Program &program_;
    const Memory memory_;
    const int count_;
    const std::size_t all_;
};

void change(const char *name, std::string_view value)
{
    if (value == "-") {
        unsetenv(name);
    } else {
        setenv(name, std::string(value).c_str(), 1);
    }
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll;
    using namespace hetcoll::test;
    Program program(argc, argv, "surroundings");
    if (argc < 5) {
        program.check(false, "usage: surroundings NAME VALUE odd|all host|mixed|device");
        return program.finish();
    }
    const std::string_view where = argv[4];
    const bool odd = program.rank() % 2 != 0;
    if (odd || std::string_view(argv[3]) == "all") {
        change(argv[1], argv[2]);
    }
    const bool on_device = where == "device" || (where == "mixed" && !odd);
    for (const int count : {2, 1'000, 40'000, 100'000}) {
        Calls(program, on_device ? Memory::kDevice : Memory::kHost, count).run();
    }
    program.close_gpu();
    return program.finish();
}
