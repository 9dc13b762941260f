// The MPI_T event ompi.coll_hetcoll_call, in an Open MPI that has events: a tool gets one for each
// call that ends while it listens, and can tell what served it by the name of a performance
// variable.
#include "test/mpi/check.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#ifndef MPI_T_EVENT_REGISTRATION_NULL

int main(int argc, char **argv)
{
    hetcoll::test::Program program(argc, argv, "events");
    program.check(OMPI_MAJOR_VERSION < 6, "Open MPI %d has no events", OMPI_MAJOR_VERSION);
    return program.finish();
}

#else

namespace hetcoll::test {
namespace {

struct Seen {
    unsigned long long bytes = 0, ns = 0;
    int counter = -1, path = -1, failed = -1;
};

void take(MPI_T_event_instance event, MPI_T_event_registration, MPI_T_cb_safety, void *seen)
{
    Seen one;
    MPI_T_event_read(event, 0, &one.bytes);
    MPI_T_event_read(event, 1, &one.ns);
    MPI_T_event_read(event, 2, &one.counter);
    MPI_T_event_read(event, 3, &one.path);
    MPI_T_event_read(event, 4, &one.failed);
    static_cast<std::vector<Seen> *>(seen)->push_back(one);
}

std::string counter_name(int index)
{
    std::array<char, 128> name{};
    int name_size = name.size(), verbosity = 0, var_class = 0, bind = 0, flag = 0, desc_size = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum values = MPI_T_ENUM_NULL;
    MPI_T_pvar_get_info(index, name.data(), &name_size, &verbosity, &var_class, &type, &values,
                        nullptr, &desc_size, &bind, &flag, &flag, &flag);
    return name.data();
}

void the_event_says_what_it_has(Program &program, int index)
{
    std::array<MPI_Datatype, 8> types{};
    std::array<MPI_Aint, 8> offsets{};
    int verbosity = 0, elements = types.size(), bind = -1;
    MPI_T_enum names = MPI_T_ENUM_NULL;
    MPI_Info info = MPI_INFO_NULL;
    const int result =
        MPI_T_event_get_info(index, nullptr, nullptr, &verbosity, types.data(), offsets.data(),
                             &elements, &names, &info, nullptr, nullptr, &bind);
    program.check(result == MPI_SUCCESS && elements == 5, "result %d, %d elements", result,
                  elements);
    program.check(bind == MPI_T_BIND_NO_OBJECT, "bound to %d", bind);
    constexpr const char *kNames[] = {"bytes", "ns", "counter", "path", "failed"};
    for (int i = 0; i < 5; ++i) {
        std::array<char, 32> name{};
        int value = -1, name_size = name.size();
        MPI_T_enum_get_item(names, i, &value, name.data(), &name_size);
        program.check(std::strcmp(name.data(), kNames[i]) == 0, "element %d is called '%s'", i,
                      name.data());
    }
    program.check(types[0] == MPI_UNSIGNED_LONG_LONG && types[2] == MPI_INT,
                  "bytes or counter have another type");
    MPI_Info_free(&info);
}

// Calls of a rank, with the counter that each is counted by.
void calls(Program &program, const std::vector<Seen> &seen)
{
    struct Case {
        std::size_t count;
        Memory memory;
    };
    for (const auto &[count, memory] :
         {Case{300'000, Memory::kDevice}, Case{16, Memory::kDevice}, Case{16, Memory::kHost}}) {
        Buffers buffers(
            program, MPI_COMM_WORLD,
            {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 3}, count, memory, memory});
        buffers.fill();
        const std::size_t before = seen.size();
        buffers.reduce();
        const std::size_t bytes = count * sizeof(float);
        if (!program.check(seen.size() == before + 1, "%zu events of a call with %zu bytes",
                           seen.size() - before, bytes)) {
            continue;
        }
        const Seen &one = seen.back();
        const std::string name = counter_name(one.counter);
        program.check(one.bytes == bytes, "%llu bytes of %zu", one.bytes, bytes);
        program.check(one.ns > 0 && one.failed == 0, "%llu ns, failed %d", one.ns, one.failed);
        program.check(name.starts_with("coll_hetcoll_calls_"), "counted by '%s', %d", name.c_str(),
                      one.counter);
        program.check(one.path >= 0 && one.path <= 7, "path %d", one.path);
        if (program.rank() == 0) {
            std::printf("note %zu bytes of %s memory: %s, path %d, %llu ns\n", bytes,
                        memory_name(memory), name.c_str(), one.path, one.ns);
        }
        buffers.check();
    }
}

void run(Program &program)
{
    int provided = 0, index = -1;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (!program.check(MPI_T_event_get_index("ompi.coll_hetcoll_call", &index) == MPI_SUCCESS,
                       "no such event")) {
        return;
    }
    the_event_says_what_it_has(program, index);
    std::vector<Seen> seen;
    MPI_T_event_registration handle = MPI_T_EVENT_REGISTRATION_NULL;
    MPI_T_event_handle_alloc(index, nullptr, MPI_INFO_NULL, &handle);
    MPI_T_event_register_callback(handle, MPI_T_CB_REQUIRE_THREAD_SAFE, MPI_INFO_NULL, &seen, take);
    calls(program, seen);
    MPI_T_event_handle_free(handle, nullptr, nullptr);
    const std::size_t before = seen.size();
    check_allreduce(program, MPI_COMM_WORLD,
                    {{ElementKind::kFloat32, ReduceOp::kSum, Values::kExact, 3}, 1000});
    program.check(seen.size() == before, "an event when nobody listens");
    MPI_T_finalize();
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "events");
    run(program);
    return program.finish();
}

#endif
