// One rank has no memory for an allocation of hetcoll's own, at each in turn: in the making of a
// communicator, its first call, and later ones, of every kind. Either all ranks have the right
// result, or all get an error; and then they have right results again. "once": that allocation
// alone fails; "short": all from there on, until hetcoll gives up its reserve; "none": all, from
// the first to the call's end, of those whose ranks meet. With HETCOLL_EVERY_ALLOCATION in the
// environment at each indeed, else at some, and of plain calls alone. With words: of calls whose
// names have one. "process": once, at the allocation of that number from MPI_Init on, because much
// is made by the first calls of a process.
#include "test/mpi/check.h"
#include "test/mpi/collective_calls.h"
#include "test/mpi/own_allocations.h"

#include "engine/hetcoll.h"
#include "engine/process/memory_reserve.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll::test {
namespace {

long left = 0; // allocations until the one that fails
bool have_failed = false;
enum class Lack { kOnce, kShort, kNone } lack = Lack::kOnce;

bool has_memory()
{
    if (left > 0 && --left > 0) {
        return true;
    }
    const bool fails = lack == Lack::kNone ||
                       (lack == Lack::kOnce ? !have_failed : largest_freed() < kReserveBytes);
    have_failed = have_failed || fails;
    return !fails;
}

// While one lives the rank is short of memory from its nth allocation on.
class Shortage {
public:
    Shortage(bool is_here, long nth)
    {
        left = nth;
        have_failed = false;
        watch_own_allocations(is_here ? has_memory : nullptr);
    }
    ~Shortage() { watch_own_allocations(nullptr); }
    Shortage(const Shortage &) = delete;
    Shortage &operator=(const Shortage &) = delete;
};

// Lists of calls, the same on every rank.
std::vector<Collective> of_ints(MPI_Comm comm, int count)
{
    return calls_of(comm, count, "ints", MPI_INT, sizeof(int), MPI_SUM);
}

void add_pairs(void *in, void *inout, int *count, MPI_Datatype *)
{
    for (int i = 0; i < 2 * *count; ++i) {
        static_cast<int *>(inout)[2 * i] += static_cast<const int *>(in)[2 * i];
    }
}

// With a hole behind each int, so that nobody but the program can add them.
std::vector<Collective> of_pairs(MPI_Comm comm, int count)
{
    static MPI_Datatype type = MPI_DATATYPE_NULL;
    static MPI_Op op = MPI_OP_NULL;
    if (type == MPI_DATATYPE_NULL) {
        MPI_Datatype pair = MPI_DATATYPE_NULL;
        MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
        MPI_Type_create_resized(pair, 0, 4 * sizeof(int), &type);
        MPI_Type_commit(&type);
        MPI_Type_free(&pair);
        MPI_Op_create(add_pairs, 1, &op);
    }
    return calls_of(comm, count, "pairs", type, 4 * sizeof(int), op);
}

enum class On { kDevices, kHosts, kDevicesOfSome };

struct Kind {
    std::vector<Collective> (*list)(MPI_Comm comm, int count);
    std::size_t place; // in the list
    int count;
    How how;
    On on;

    [[nodiscard]] Collective call(MPI_Comm comm) const { return list(comm, count)[place]; }
    // Collective: it may be in place on some ranks only.
    [[nodiscard]] bool is_in_place(const Collective &call) const
    {
        int here = call.send_bytes < 0 || call.recv_bytes < 0 ? 1 : 0, anywhere = 0;
        MPI_Allreduce(&here, &anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        return anywhere != 0;
    }
    [[nodiscard]] std::string name(const Collective &call, bool in_place) const
    {
        constexpr std::array kNames = {"devices", "hosts", "devices of some"};
        return std::string(how_name(how)) + " " + call.name + (in_place ? " in place" : "") +
               " of " + std::to_string(count) + " " + call.detail + " on " +
               kNames[static_cast<std::size_t>(on)];
    }
    // All ranks learn whether one has no memory at all; otherwise that one ends the job.
    [[nodiscard]] bool meets(const Collective &call) const
    {
        const std::string_view of = call.name;
        const bool is_own =
            of == "Bcast" || of == "Reduce" || of == "Allgather" || of == "Reduce_scatter_block";
        return list == of_ints &&
               (of == "Allreduce" || (is_own && how == How::kBlocking &&
                                      count * sizeof(int) >= HETCOLL_LEAST_COLLECTIVE));
    }
};

// One side of a call: its buffer, or MPI_IN_PLACE.
class Side {
public:
    Side(Program &program, Memory memory, std::ptrdiff_t bytes, int seed)
        : program_(program), in_place_(bytes < 0),
          image_(static_cast<std::size_t>(std::max<std::ptrdiff_t>(bytes, 0)) / sizeof(int) + 1)
    {
        for (std::size_t i = 0; i < image_.size(); ++i) {
            image_[i] = static_cast<int>((7 * i + 31 * static_cast<std::size_t>(seed)) % 1000);
        }
        auto made = Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(), memory,
                                     image_.size() * sizeof(int));
        if (!made.ok()) {
            program.require(made.status());
        }
        buffer_ = std::move(*made);
    }
    void fill() const { program_.require(buffer_.write(0, image_.data(), buffer_.bytes())); }
    [[nodiscard]] void *pointer() const { return in_place_ ? MPI_IN_PLACE : buffer_.data(); }
    [[nodiscard]] std::vector<int> found() const
    {
        std::vector<int> values(image_.size());
        program_.require(buffer_.read(0, values.data(), buffer_.bytes()));
        return values;
    }

private:
    Program &program_;
    const bool in_place_;
    std::vector<int> image_;
    Buffer buffer_;
};

class Vectors {
public:
    Vectors(Program &program, const Kind &kind, const Collective &call)
        : program_(program), kind_(kind),
          send_(program, memory(program, kind), call.send_bytes, program.rank() + 1),
          recv_(program, memory(program, kind), call.recv_bytes, program.rank() + 100)
    {
    }
    // The right result is what a call on the host has with memory.
    void expect(const Collective &call, const char *name)
    {
        const Side send(program_, Memory::kHost, call.send_bytes, program_.rank() + 1),
            recv(program_, Memory::kHost, call.recv_bytes, program_.rank() + 100);
        send.fill();
        recv.fill();
        const int code = run(call, kind_.how, send.pointer(), recv.pointer(), kRounds);
        program_.check(code == MPI_SUCCESS, "%s: error %d", name, code);
        want_ = result(recv, call);
    }
    int start(const Collective &call)
    {
        send_.fill();
        recv_.fill();
        code_ = run(call, kind_.how, send_.pointer(), recv_.pointer(), kRounds);
        return code_;
    }
    // MPI's code of the last one; or that of a success with a wrong result.
    [[nodiscard]] int code(const Collective &call) const
    {
        return code_ == MPI_SUCCESS && result(recv_, call) != want_ ? kWrong : code_;
    }
    int make(const Collective &call)
    {
        start(call);
        return code(call);
    }
    static constexpr int kWrong = -1;

private:
    static constexpr int kRounds = 2; // of persistent calls
    static Memory memory(const Program &program, const Kind &kind)
    {
        const bool has_device =
            kind.on == On::kDevices || (kind.on == On::kDevicesOfSome && program.rank() % 2 == 0);
        return has_device ? Memory::kDevice : Memory::kHost;
    }
    // Where the call defines it.
    static std::vector<int> result(const Side &recv, const Collective &call)
    {
        std::vector<int> values = recv.found();
        if (call.result_bytes >= 0) {
            values.resize(static_cast<std::size_t>(call.result_bytes) / sizeof(int));
        }
        return values;
    }

    Program &program_;
    const Kind kind_;
    const Side send_, recv_;
    std::vector<int> want_;
    int code_ = MPI_SUCCESS;
};

enum class When { kFirst, kLater };

class Test {
public:
    Test(Program &program, int victim, std::vector<std::string_view> words)
        : program_(program), victim_(victim), words_(std::move(words))
    {
    }

    void run(const Kind &kind)
    {
        const Collective call = kind.call(MPI_COMM_WORLD);
        const bool in_place = kind.is_in_place(call),
                   is_plain = !in_place && kind.list != of_pairs && kind.on != On::kDevicesOfSome;
        const std::string name = kind.name(call, in_place);
        if (!is_asked_for(name) || (lack == Lack::kNone && !kind.meets(call)) ||
            (!every_ && !is_plain)) {
            return;
        }
        Vectors vectors(program_, kind, call);
        vectors.expect(call, name.c_str());
        for (const When when : {When::kFirst, When::kLater}) {
            bool more = true;
            for (long nth = 1; more && (lack != Lack::kNone || nth == 1);
                 nth += every_ ? 1 : (nth + 2) / 2) {
                const std::string what = name + (when == When::kFirst ? ", first" : "") +
                                         ", allocation " + std::to_string(nth);
                more = run_one(kind, vectors, when, nth, what.c_str());
            }
        }
    }
    // The first calls of this process. `shortage` is since MPI_Init.
    void run_first(const std::vector<Kind> &kinds, std::optional<Shortage> &shortage)
    {
        std::vector<Collective> calls;
        std::vector<std::string> names;
        std::deque<Vectors> vectors;
        for (const Kind &kind : kinds) {
            const Collective call = kind.call(MPI_COMM_WORLD);
            const std::string name = kind.name(call, false); // without a call of its own
            if (is_asked_for(name)) {
                calls.push_back(call);
                names.push_back(name);
                vectors.emplace_back(program_, kind, call).start(call);
            }
        }
        shortage.reset();
        shortages_ = program_.rank() == victim_ && have_failed ? 1 : 0;
        MPI_Bcast(&shortages_, 1, MPI_INT, victim_, MPI_COMM_WORLD);
        for (std::size_t i = 0; i < calls.size(); ++i) {
            vectors[i].expect(calls[i], names[i].c_str());
            check(vectors[i].code(calls[i]), names[i].c_str(), true);
            check(vectors[i].make(calls[i]), names[i].c_str(), false);
        }
    }
    [[nodiscard]] int shortages() const { return shortages_; }

private:
    [[nodiscard]] bool is_asked_for(std::string_view name) const
    {
        return words_.empty() ||
               std::any_of(words_.begin(), words_.end(), [name](std::string_view word) {
                   return name.find(word) != std::string_view::npos;
               });
    }
    // False: there was no such allocation, or a check has failed.
    bool run_one(const Kind &kind, Vectors &vectors, When when, long nth, const char *what)
    {
        fill_reserve();
        MPI_Comm comm = MPI_COMM_NULL;
        std::optional<Collective> call;
        const auto begin = [&] {
            program_.check(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS, "no communicator");
            MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
            call = kind.call(comm);
        };
        if (when == When::kLater) {
            begin();
            // The second small call on device memory finds the peers, as a first large one does.
            for (int before = 0; before < (lack == Lack::kNone ? 3 : 1); ++before) {
                check(vectors.make(*call), what, false);
            }
        }
        int code = MPI_SUCCESS;
        {
            const Shortage shortage(program_.rank() == victim_, nth);
            if (when == When::kFirst) {
                begin();
            }
            code = vectors.make(*call);
        }
        int reached = program_.rank() == victim_ && have_failed ? 1 : 0;
        const bool was_right = check(code, what, true);
        // A rank that has ended a call by itself meets the others in its next one, which fails too.
        const bool is_level = check(vectors.make(*call), what, true);
        const bool is_right = check(vectors.make(*call), what, false);
        MPI_Comm_free(&comm);
        MPI_Bcast(&reached, 1, MPI_INT, victim_, MPI_COMM_WORLD);
        shortages_ += reached;
        return reached != 0 && was_right && is_level && is_right;
    }
    // The last shortage may have taken it.
    static void fill_reserve()
    {
        const std::array<int, 2> in{};
        std::array<int, 2> out{};
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(in.data(), out.data(), 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    // All succeed with right results, or, if they may, all fail. The same on all ranks.
    bool check(int code, const char *what, bool may_fail)
    {
        const int mine = code == Vectors::kWrong ? 4 : code == MPI_SUCCESS ? 1 : 2;
        std::vector<int> of_rank(static_cast<std::size_t>(program_.ranks()));
        MPI_Allgather(&mine, 1, MPI_INT, of_rank.data(), 1, MPI_INT, MPI_COMM_WORLD);
        int all = 0;
        for (const int one : of_rank) {
            all |= one;
        }
        return program_.check(all == 1 || (may_fail && all == 2), "%s: rank %d %s", what,
                              program_.rank(),
                              mine == 4   ? "has a wrong result"
                              : mine == 1 ? "succeeds, others do not"
                                          : "fails");
    }

    Program &program_;
    const int victim_;
    const std::vector<std::string_view> words_;
    const bool every_ = std::getenv("HETCOLL_EVERY_ALLOCATION") != nullptr;
    int shortages_ = 0;
};

} // namespace
} // namespace hetcoll::test

namespace {

using namespace hetcoll::test;

using List = std::vector<Collective> (*)(MPI_Comm comm, int count);

std::vector<Kind> kinds_of(std::span<const List> lists, std::span<const On> places)
{
    std::vector<Kind> kinds;
    for (const List list : lists) {
        const std::size_t calls = list(MPI_COMM_WORLD, 1).size();
        for (std::size_t place = 0; place < calls; ++place) {
            for (const int count : {12, 60'000}) {
                for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
                    for (const On on : places) {
                        kinds.push_back({list, place, count, how, on});
                    }
                }
            }
        }
    }
    return kinds;
}

// The component, before Open MPI opens it: it can be watched from there on.
bool open_component()
{
    const char *const folders = std::getenv("OMPI_MCA_mca_base_component_path");
    const std::string all = folders == nullptr ? "" : folders;
    const std::string path = all.substr(0, all.find(':')) + "/hetcoll_component.so";
    return dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

} // namespace

int main(int argc, char **argv)
{
    const std::string_view way = argc > 2 ? argv[2] : "";
    const int victim = argc > 2 ? std::atoi(argv[1]) : 0;
    const bool first = way == "process" && argc > 3;
    std::optional<Shortage> since_init;
    if (first && open_component()) {
        const char *const rank = std::getenv("OMPI_COMM_WORLD_RANK");
        since_init.emplace(rank != nullptr && std::atoi(rank) == victim, std::atol(argv[3]));
    }
    Program program(argc, argv, "no_memory");
    if (argc < 3 || since_init.has_value() != first) {
        program.check(false, "usage: no_memory VICTIM once|short|none [WORD...], or no_memory "
                             "VICTIM process ALLOCATION [WORD...], by the build's component");
        return program.finish();
    }
    lack = way == "short" ? Lack::kShort : way == "none" ? Lack::kNone : Lack::kOnce;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); // of requests in Open MPI 4.1
    Test test(program, victim, {argv + (first ? 4 : 3), argv + argc});
    if (first) {
        test.run_first(kinds_of(std::array{of_ints}, std::array{On::kDevices}), since_init);
    } else {
        for (const Kind &kind :
             kinds_of(std::array{of_ints, of_pairs, neighbor_calls},
                      std::array{On::kDevices, On::kHosts, On::kDevicesOfSome})) {
            test.run(kind);
        }
    }
    if (program.rank() == 0) {
        std::printf("note no_memory: %d shortages\n", test.shortages());
    }
    program.close_gpu();
    return program.finish();
}
