// Checks what a user can see of hetcoll's work. "variables": MPI_T performance variables of time,
// staged calls and memory; with --mca coll_hetcoll_algorithm ring. "trace FILE": the lines of --mca
// coll_hetcoll_trace FILE.%r, read while the job runs; "host FILE" without a GPU. "reasons": rank 1
// cannot pin memory. "bound BYTES": what is held stays within --mca coll_hetcoll_max_memory BYTES,
// whatever is reduced.
#include "test/mpi/check.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kCount = 50'001; // above the small limit

// One performance variable coll_hetcoll_NAME, from now on.
class Variable {
public:
    Variable(Program &program, const char *name, int its_class)
    {
        int index = 0, count = 0;
        MPI_T_pvar_session_create(&session_);
        const std::string full = std::string("coll_hetcoll_") + name;
        const bool found =
            MPI_T_pvar_get_index(full.c_str(), its_class, &index) == MPI_SUCCESS &&
            MPI_T_pvar_handle_alloc(session_, index, nullptr, &handle_, &count) == MPI_SUCCESS;
        program.check(found, "there is no %s of its class", full.c_str());
    }
    ~Variable()
    {
        if (handle_ != MPI_T_PVAR_HANDLE_NULL) {
            MPI_T_pvar_handle_free(session_, &handle_);
        }
        MPI_T_pvar_session_free(&session_);
    }
    Variable(const Variable &) = delete;
    Variable &operator=(const Variable &) = delete;

    [[nodiscard]] unsigned long long read() const
    {
        unsigned long long value = 0;
        if (handle_ != MPI_T_PVAR_HANDLE_NULL) {
            MPI_T_pvar_read(session_, handle_, &value);
        }
        return value;
    }

private:
    MPI_T_pvar_session session_ = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle handle_ = MPI_T_PVAR_HANDLE_NULL;
};

Call call_of(std::size_t count, Memory memory)
{
    return {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 1}, count, memory, memory};
}

void time_goes_to_algorithm_and_path(Program &program)
{
    check_allreduce(program, MPI_COMM_WORLD, call_of(kCount, Memory::kDevice));
    const Variable ring(program, "time_ring", MPI_T_PVAR_CLASS_TIMER);
    const Variable tree(program, "time_tree", MPI_T_PVAR_CLASS_TIMER);
    const Variable mapped(program, "time_path_mapped", MPI_T_PVAR_CLASS_TIMER);
    const Variable mixed(program, "time_path_mixed", MPI_T_PVAR_CLASS_TIMER);
    const Variable bounce(program, "time_path_bounce", MPI_T_PVAR_CLASS_TIMER);
    const double start_s = MPI_Wtime();
    check_allreduce(program, MPI_COMM_WORLD, call_of(kCount, Memory::kDevice));
    const auto passed_ns = static_cast<unsigned long long>((MPI_Wtime() - start_s) * 1e9);
    program.check(ring.read() > 0 && ring.read() <= passed_ns, "%llu ns in a ring, %llu passed",
                  ring.read(), passed_ns);
    program.check(tree.read() == 0, "%llu ns in trees", tree.read());
    program.check(mapped.read() + mixed.read() + bounce.read() == ring.read(),
                  "%llu ns by paths, %llu by algorithms",
                  mapped.read() + mixed.read() + bounce.read(), ring.read());
}

void small_calls_are_timed_on_request(Program &program)
{
    check_allreduce(program, MPI_COMM_WORLD, call_of(1, Memory::kHost));
    const Variable small(program, "time_small", MPI_T_PVAR_CLASS_TIMER);
    program.check(small.read() == 0, "%llu ns without a call", small.read());
    int value = 1;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    program.check(small.read() > 0, "a small call took no time");
}

void add_floats(void *in, void *inout, int *count, MPI_Datatype *)
{
    for (int i = 0; i < *count; ++i) {
        static_cast<float *>(inout)[i] += static_cast<const float *>(in)[i];
    }
}

void staged_calls_have_a_reason(Program &program)
{
    const Variable user_op(program, "staged_user_op", MPI_T_PVAR_CLASS_COUNTER);
    const Variable type(program, "staged_type", MPI_T_PVAR_CLASS_COUNTER);
    const Variable time(program, "time_staged", MPI_T_PVAR_CLASS_TIMER);
    Result<Buffer> buffer = Buffer::allocate(&program.gpu(), Memory::kDevice, 4096);
    program.require(buffer.status());
    const std::vector<char> zeros(4096);
    program.require(buffer->write(0, zeros.data(), zeros.size()));
    const auto reduce = [&](MPI_Datatype datatype, MPI_Op op) {
        MPI_Allreduce(MPI_IN_PLACE, buffer->data(), 8, datatype, op, MPI_COMM_WORLD);
    };
    MPI_Op op = MPI_OP_NULL;
    MPI_Op_create(add_floats, 1, &op);
    reduce(MPI_FLOAT, op);
    program.check(user_op.read() == 1, "%llu calls with a user-defined op", user_op.read());
    reduce(MPI_LONG_DOUBLE, MPI_SUM);
    program.check(type.read() == 1, "%llu calls of a type without kernels", type.read());
    program.check(time.read() > 0, "staged calls took no time");
    MPI_Op_free(&op);
}

void held_memory_is_counted(Program &program)
{
    const Variable pinned(program, "held_pinned", MPI_T_PVAR_CLASS_LEVEL);
    check_allreduce(program, MPI_COMM_WORLD, call_of(kCount, Memory::kDevice));
    program.check(pinned.read() > kCount, "%llu bytes pinned", pinned.read());
}

void variables(Program &program)
{
    time_goes_to_algorithm_and_path(program);
    small_calls_are_timed_on_request(program);
    staged_calls_have_a_reason(program);
    held_memory_is_counted(program);
}

std::vector<std::string> lines_of(const std::string &path)
{
    std::vector<std::string> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line) && line.front() == '{';) {
        lines.push_back(line);
    }
    return lines;
}

void trace(Program &program, const std::string &path)
{
    const std::string mine = path + "." + std::to_string(program.rank());
    const auto last_line_of = [&](auto work) {
        const std::size_t before = lines_of(mine).size();
        work();
        const auto lines = lines_of(mine);
        program.check(lines.size() == before + 1, "%zu lines of one call", lines.size() - before);
        return lines.empty() ? std::string() : lines.back();
    };
    const auto has = [&](const std::string &line, const std::string &part) {
        program.check(line.find(part) != std::string::npos, "'%s' is not in %s", part.c_str(),
                      line.c_str());
    };
    Buffers device(program, MPI_COMM_WORLD, call_of(kCount, Memory::kDevice));
    device.fill();
    device.reduce();
    const std::string large = last_line_of([&] { device.reduce(); });
    has(large, "\"rank\":" + std::to_string(program.rank()) + ",");
    has(large, "\"ranks\":" + std::to_string(program.ranks()) + ",\"call\":\"allreduce\"");
    has(large, "\"bytes\":200004,\"kind\":\"float32\",\"op\":\"sum\",\"memory\":\"device\"");
    has(large, program.ranks() == 1 ? "\"algorithm\":\"host\"" : "\"algorithm\":\"ring\"");
    int value = 1;
    const std::string small = last_line_of(
        [&] { MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); });
    has(small, "\"bytes\":4,\"kind\":\"int32\",\"op\":\"sum\",\"memory\":\"host\"");
    if (program.ranks() == 1) {
        return;
    }
    has(small, "\"path\":\"small\"");
    Result<Buffer> buffer = Buffer::allocate(&program.gpu(), Memory::kDevice, 64);
    program.require(buffer.status());
    const std::string staged = last_line_of([&] {
        MPI_Allreduce(MPI_IN_PLACE, buffer->data(), 1, MPI_LONG_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    });
    has(staged, "\"path\":\"staged\"");
    has(staged, ",\"staged\":\"type\"}");
    const bool odd = program.rank() % 2 == 1;
    Buffers mixed(program, MPI_COMM_WORLD, call_of(kCount, odd ? Memory::kHost : Memory::kDevice));
    mixed.fill();
    has(last_line_of([&] { mixed.reduce(); }), "\"memory\":\"mixed\"");

    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "hetcoll_tag", "layer 3");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    Buffers tagged(program, comm, call_of(kCount, Memory::kDevice));
    tagged.fill();
    has(last_line_of([&] { tagged.reduce(); }), ",\"tag\":\"layer 3\"}");
    MPI_Comm_free(&comm);
}

// Without a GPU in the job, where hetcoll is called only because there is a trace.
void trace_of_host(Program &program, const std::string &path)
{
    const std::string mine = path + "." + std::to_string(program.rank());
    int value = 1;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    program.check(value == program.ranks(), "%d of %d ranks", value, program.ranks());
    const auto lines = lines_of(mine);
    const std::string line = lines.empty() ? std::string() : lines.back();
    const char *wanted = "\"bytes\":4,\"kind\":\"int32\",\"op\":\"sum\",\"memory\":\"host\","
                         "\"algorithm\":\"open_mpi\",\"path\":\"host\"";
    program.check(line.find(wanted) != std::string::npos, "'%s' is not in '%s'", wanted,
                  line.c_str());
}

// Rank 1 cannot pin memory: EMU_FAIL.
void one_rank_without_its_gpu(Program &program)
{
    const Variable gpu(program, "staged_gpu", MPI_T_PVAR_CLASS_COUNTER);
    const Variable other(program, "staged_other_rank", MPI_T_PVAR_CLASS_COUNTER);
    check_allreduce(program, MPI_COMM_WORLD, call_of(kCount, Memory::kDevice));
    const bool failing = program.rank() == 1;
    program.check(gpu.read() == (failing ? 1u : 0u), "%llu calls staged for this rank's GPU",
                  gpu.read());
    program.check(other.read() == (failing ? 0u : 1u), "%llu calls staged for another rank's",
                  other.read());
}

// R25: memory does not grow with the vector.
void bound(Program &program, unsigned long long most)
{
    const Variable pinned(program, "held_pinned", MPI_T_PVAR_CLASS_LEVEL);
    const Variable device(program, "held_device", MPI_T_PVAR_CLASS_LEVEL);
    for (const std::size_t count : {std::size_t{100}, kCount, 20 * kCount}) {
        check_allreduce(program, MPI_COMM_WORLD, call_of(count, Memory::kDevice));
        check_allreduce(program, MPI_COMM_WORLD,
                        call_of(count, program.rank() == 0 ? Memory::kHost : Memory::kDevice));
        Result<Buffer> buffer = Buffer::allocate(&program.gpu(), Memory::kDevice, 16 * count);
        program.require(buffer.status());
        MPI_Allreduce(MPI_IN_PLACE, buffer->data(), static_cast<int>(count), MPI_LONG_DOUBLE,
                      MPI_MAX, MPI_COMM_WORLD);
        program.check(pinned.read() + device.read() <= most,
                      "%llu bytes pinned and %llu of device memory are held after %zu elements",
                      pinned.read(), device.read(), count);
    }
    const Call call = call_of(kCount, Memory::kDevice);
    Buffers buffers(program, MPI_COMM_WORLD, call);
    buffers.fill();
    buffers.reduce();
    const CounterValues before = program.counters().read();
    buffers.reduce();
    const CounterValues used = program.counters().read() - before;
    program.check(used[HETCOLL_ALLOCATIONS] == 0, "a repeated call allocates");
}

void run(Program &program, const std::string &what, const std::string &argument)
{
    int provided = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (what == "variables") {
        variables(program);
    } else if (what == "trace") {
        trace(program, argument);
    } else if (what == "host") {
        trace_of_host(program, argument);
    } else if (what == "reasons") {
        one_rank_without_its_gpu(program);
    } else {
        bound(program, std::strtoull(argument.c_str(), nullptr, 10));
    }
    MPI_T_finalize();
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "observed");
    run(program, argc > 1 ? argv[1] : "variables", argc > 2 ? argv[2] : "");
    return program.finish();
}
