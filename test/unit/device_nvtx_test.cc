// Ranges for profilers: this program brings NVTX a profiler of its own.
#include "device/nvtx.h"
#include "hetcoll_config.h"

#include <gtest/gtest.h>

#if HETCOLL_WITH_NVTX
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

namespace {

std::vector<std::string> started; // DOMAIN/NAME
std::vector<nvtxRangeId_t> ended;
std::string domain_name;
int domain = 0;

nvtxDomainHandle_t create_domain(const char *name)
{
    domain_name = name;
    return reinterpret_cast<nvtxDomainHandle_t>(&domain);
}

nvtxRangeId_t start_range(nvtxDomainHandle_t, const nvtxEventAttributes_t *event)
{
    started.push_back(domain_name + "/" + event->message.ascii);
    return started.size();
}

void end_range(nvtxDomainHandle_t, nvtxRangeId_t range) { ended.push_back(range); }

int inject(NvtxGetExportTableFunc_t get_table)
{
    const auto *callbacks =
        static_cast<const NvtxExportTableCallbacks *>(get_table(NVTX_ETID_CALLBACKS));
    NvtxFunctionTable table = nullptr;
    unsigned entries = 0;
    if (callbacks == nullptr ||
        callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &entries) == 0 ||
        entries <= NVTX_CBID_CORE2_DomainCreateA) {
        return 0;
    }
    *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(create_domain);
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = reinterpret_cast<NvtxFunctionPointer>(start_range);
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = reinterpret_cast<NvtxFunctionPointer>(end_range);
    return 1;
}

} // namespace

namespace hetcoll {
namespace {

TEST(Nvtx, RangeNamesCallAlgorithmAndBytes)
{
    InitializeInjectionNvtx2_fnptr = inject; // taken where the environment names no library
    const Nvtx nvtx;
    const std::uint64_t range = nvtx.start("allreduce", "ring", 4096);
    EXPECT_TRUE(ended.empty());
    nvtx.end(range);
    ASSERT_EQ(started.size(), 1u);
    EXPECT_EQ(started[0], "hetcoll/hetcoll allreduce ring 4096");
    EXPECT_EQ(ended, std::vector<nvtxRangeId_t>{1});
}

} // namespace
} // namespace hetcoll
#endif
