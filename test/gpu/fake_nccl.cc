// An NCCL that sums small vectors in a shared file: the calls that bench/nccl_library.cc makes, on
// the emulated GPU, where NCCL itself cannot run. FAKE_NCCL_VERSION is what it says that it is;
// with FAKE_NCCL_DIES its second rank ends the process.
#include <cuda.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#define FAKE_NCCL_TEXT(name) #name
#define FAKE_NCCL_CALL(name)             \
    reinterpret_cast<decltype(&::name)>( \
        dlsym(dlopen("libcuda.so.1", RTLD_NOW), FAKE_NCCL_TEXT(name)))

namespace {

constexpr std::size_t kMostFloats = 1 << 18;
constexpr int kMostRanks = 16;

struct Id {
    char path[128];
};
struct Shared {
    std::atomic<int> arrived, round;
    float vector[kMostRanks][kMostFloats];
};
struct Comm {
    Shared *shared;
    int rank, ranks;

    void barrier() const
    {
        const int round = shared->round.load();
        if (shared->arrived.fetch_add(1) + 1 == ranks) {
            shared->arrived.store(0);
            shared->round.store(round + 1);
            return;
        }
        while (shared->round.load() == round) {
            sched_yield();
        }
    }
};

} // namespace

#pragma GCC visibility push(default)
extern "C" {
int ncclGetVersion(int *version);
int ncclGetUniqueId(Id *id);
int ncclCommInitRank(Comm **comm, int ranks, Id id, int rank);
int ncclCommDestroy(Comm *comm);
const char *ncclGetErrorString(int result);
int ncclAllReduce(const void *send, void *recv, std::size_t count, int kind, int op, Comm *comm,
                  CUstream stream);
}
#pragma GCC visibility pop

int ncclGetVersion(int *version)
{
    const char *text = std::getenv("FAKE_NCCL_VERSION");
    *version = text != nullptr ? std::atoi(text) : 23000;
    return 0;
}

int ncclGetUniqueId(Id *id)
{
    std::strcpy(id->path, "/tmp/fake_nccl.XXXXXX");
    const int file = mkstemp(id->path);
    const bool made = file >= 0 && ftruncate(file, sizeof(Shared)) == 0;
    close(file);
    return made ? 0 : 2;
}

int ncclCommInitRank(Comm **comm, int ranks, Id id, int rank)
{
    if (rank == 1 && std::getenv("FAKE_NCCL_DIES") != nullptr) {
        unlink(id.path);
        std::_Exit(9);
    }
    const int file = open(id.path, O_RDWR | O_CLOEXEC);
    void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED || ranks > kMostRanks) {
        return 2;
    }
    *comm = new Comm{static_cast<Shared *>(memory), rank, ranks};
    (*comm)->barrier();
    if (rank == 0) {
        unlink(id.path);
    }
    return 0;
}

int ncclCommDestroy(Comm *comm)
{
    munmap(comm->shared, sizeof(Shared));
    delete comm;
    return 0;
}

const char *ncclGetErrorString(int) { return "something fake"; }

int ncclAllReduce(const void *send, void *recv, std::size_t count, int kind, int op, Comm *comm,
                  CUstream)
{
    const std::size_t bytes = count * sizeof(float);
    if (kind != 7 || op != 0 || count > kMostFloats) { // ncclFloat32, ncclSum
        return 4;
    }
    Shared &shared = *comm->shared;
    const CUresult read = FAKE_NCCL_CALL(cuMemcpyDtoH)(shared.vector[comm->rank],
                                                       reinterpret_cast<CUdeviceptr>(send), bytes);
    comm->barrier();
    float *sum = static_cast<float *>(std::calloc(count, sizeof(float)));
    for (std::size_t i = 0; i < count; ++i) {
        for (int rank = 0; rank < comm->ranks; ++rank) {
            sum[i] += shared.vector[rank][i];
        }
    }
    comm->barrier();
    const CUresult written =
        FAKE_NCCL_CALL(cuMemcpyHtoD)(reinterpret_cast<CUdeviceptr>(recv), sum, bytes);
    std::free(sum);
    return read == CUDA_SUCCESS && written == CUDA_SUCCESS ? 0 : 1;
}
