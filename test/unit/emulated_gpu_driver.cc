#include "test/unit/emulated_gpu_driver.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#define HETCOLL_TEST_STRING(name) HETCOLL_TEST_STRING_OF(name)
#define HETCOLL_TEST_STRING_OF(name) #name

namespace hetcoll::test {
namespace {

void *symbol(void *library, const char *name)
{
    void *found = library != nullptr ? dlsym(library, name) : nullptr;
    if (found == nullptr) {
        std::fprintf(stderr, "no emulated GPU on the library path: %s\n", dlerror());
        std::abort();
    }
    return found;
}

DriverTable load()
{
    setenv("EMU_HOSTILE", "1", 0); // unless a test says otherwise
    DriverTable table;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    // The name as cuda.h's macros leave it matches the prototype.
#define HETCOLL_TEST_LOAD(name) \
    table.name = reinterpret_cast<decltype(table.name)>(symbol(library, HETCOLL_TEST_STRING(name)));
    HETCOLL_TEST_DRIVER_CALLS(HETCOLL_TEST_LOAD)
    HETCOLL_TEST_EMULATOR_CALLS(HETCOLL_TEST_LOAD)
    HETCOLL_TEST_LOAD(cuGraphInstantiateWithFlags)
    HETCOLL_TEST_LOAD(cuCtxCreate_v2)
    HETCOLL_TEST_LOAD(cuDeviceGetUuid_v2)
#undef HETCOLL_TEST_LOAD
    return table;
}

std::string read_all(int fd)
{
    std::string text;
    char part[4096];
    for (ssize_t bytes = 0; (bytes = read(fd, part, sizeof part)) > 0;) {
        text.append(part, static_cast<std::size_t>(bytes));
    }
    return text;
}

} // namespace

const DriverTable &cu()
{
    static const DriverTable table = [] {
        const DriverTable loaded = load();
        if (loaded.cuInit(0) != CUDA_SUCCESS) {
            std::fprintf(stderr, "cuInit of the emulated GPU failed\n");
            std::abort();
        }
        return loaded;
    }();
    return table;
}

PrimaryContext::PrimaryContext(CUdevice device) : device_(device)
{
    EXPECT_EQ(cu().cuDevicePrimaryCtxRetain(&context_, device), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxPushCurrent(context_), CUDA_SUCCESS);
}

PrimaryContext::~PrimaryContext()
{
    cu().cuCtxPopCurrent(nullptr);
    cu().cuDevicePrimaryCtxRelease(device_);
}

CUdeviceptr allocate(std::size_t bytes)
{
    CUdeviceptr memory = 0;
    EXPECT_EQ(cu().cuMemAlloc(&memory, bytes), CUDA_SUCCESS);
    return memory;
}

std::size_t free_bytes()
{
    std::size_t free = 0, total = 0;
    EXPECT_EQ(cu().cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
}

void free_memory(CUdeviceptr memory) { EXPECT_EQ(cu().cuMemFree(memory), CUDA_SUCCESS); }

void fill(CUdeviceptr memory, unsigned value, std::size_t words)
{
    EXPECT_EQ(cu().cuMemsetD32(memory, value, words), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
}

unsigned read_word(CUdeviceptr memory)
{
    unsigned word = 0;
    EXPECT_EQ(cu().cuMemcpyDtoH(&word, memory, sizeof word), CUDA_SUCCESS);
    return word;
}

namespace {

// SUITE.TEST is one of this program's.
bool is_a_test(const std::string &name)
{
    const auto &all = *::testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const ::testing::TestSuite &suite = *all.GetTestSuite(i);
        for (int k = 0; k < suite.total_test_count(); ++k) {
            if (suite.name() + ("." + std::string(suite.GetTestInfo(k)->name())) == name) {
                return true;
            }
        }
    }
    return false;
}

} // namespace

ChildResult run_in_child(const std::string &test, const std::vector<std::string> &environment)
{
    if (!is_a_test(test)) { // GoogleTest would run none, and end well
        return {-1, "there is no test " + test};
    }
    int ends[2];
    if (pipe(ends) != 0) {
        return {-1, "pipe failed"};
    }
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        for (const std::string &variable : environment) {
            putenv(const_cast<char *>(variable.c_str()));
        }
        const std::string filter = "--gtest_filter=" + test;
        execl("/proc/self/exe", "test", filter.c_str(), "--gtest_also_run_disabled_tests",
              "--gtest_brief=1", static_cast<char *>(nullptr));
        _exit(127);
    }
    close(ends[1]);
    const std::string errors = read_all(ends[0]);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), errors};
}

} // namespace hetcoll::test
