#include "base/counted.h"
#include "hetcoll_config.h"
#include "tools/doctor.h"

#include "engine/meeting/control_page.h"
#include "tools/kernel_code.h"
#include "tools/this_machine.h"
#include "topology_probe/peers.h"
#include "transport/node_identity.h"
#include "transport/shared_page.h"
#include "transport/shm_budget.h"
#include "tuning/table.h"

#if HETCOLL_WITH_UCX
#include "aggregator/uct_library.h"
#endif

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <thread>

namespace hetcoll {
namespace {

// Bytes of /dev/shm for a rank: much more than its control pages; Open MPI takes more.
constexpr std::size_t kSharedBytes = std::size_t{1} << 20;
constexpr double kGiB = 1 << 30;

std::string gib(double bytes)
{
    std::string text = std::to_string(bytes / kGiB);
    return text.substr(0, text.find('.') + 3) + " GiB";
}

// NVIDIA's GPUs, also where no driver knows of them.
int gpus_on_bus()
{
    int count = 0;
    std::error_code code;
    for (const auto &device : std::filesystem::directory_iterator("/sys/bus/pci/devices", code)) {
        std::string vendor, kind;
        std::ifstream(device.path() / "vendor") >> vendor;
        std::ifstream(device.path() / "class") >> kind;
        count += vendor == "0x10de" && kind.starts_with("0x03") ? 1 : 0; // display controllers
    }
    return count;
}

bool has_rdma()
{
    std::error_code code;
    return std::filesystem::directory_iterator("/sys/class/infiniband", code) !=
           std::filesystem::directory_iterator();
}

// Why no GPU can be used.
Finding no_gpu(const std::string &cause)
{
    const char *const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    const int gpus = gpus_on_bus();
    if (visible != nullptr && (*visible == '\0' || *visible == '-')) {
        return {"driver", Mark::kNote,
                std::string("CUDA_VISIBLE_DEVICES is '") + visible + "', which hides every GPU",
                "hetcoll still serves host memory, because a program may set it later"};
    }
    if (gpus == 0) {
        return {"driver", Mark::kNote, "no GPU: " + cause,
                "hetcoll leaves everything to Open MPI's components here; look at a node that has "
                "GPUs"};
    }
    return {"driver", Mark::kWrong,
            counted(gpus, "NVIDIA GPU") + " on the bus, but not one of them can be used: " + cause,
            "no CUDA program runs here, and hetcoll leaves everything to Open MPI's components: "
            "install NVIDIA's driver, or start the container with GPUs (docker run --gpus all)"};
}

struct Gpu {
    CUdevice device = 0;
    std::string name;
    int capability = 0; // 86 for 8.6
};

std::vector<Gpu> gpus_of(const Driver &driver)
{
    int count = 0;
    static_cast<void>(driver.cuDeviceGetCount(&count));
    std::vector<Gpu> gpus;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        Gpu gpu;
        char name[256] = "";
        int major = 0, minor = 0;
        if (driver.cuDeviceGet(&gpu.device, ordinal) != CUDA_SUCCESS) {
            continue;
        }
        static_cast<void>(driver.cuDeviceGetName(name, sizeof name, gpu.device));
        static_cast<void>(driver.cuDeviceGetAttribute(
            &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device));
        static_cast<void>(driver.cuDeviceGetAttribute(
            &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu.device));
        gpu.name = name;
        gpu.capability = major * 10 + minor;
        gpus.push_back(gpu);
    }
    return gpus;
}

Finding look_at_kernels(const std::vector<Gpu> &gpus, int driver_version)
{
    constexpr const char *kFlags = HETCOLL_KERNEL_FLAGS;
    const std::string built = "built by CUDA " + cuda_release(CUDA_VERSION);
    if (driver_version / 1000 < CUDA_VERSION / 1000) {
        return {"kernels", Mark::kWrong,
                built + ", and the driver is one of CUDA " + cuda_release(driver_version),
                "they do not load, so hetcoll stages device memory through the host: install a "
                "newer driver, or build hetcoll with a CUDA " +
                    std::to_string(driver_version / 1000) + " toolkit"};
    }
    std::string machine, ptx;
    for (const Gpu &gpu : gpus) {
        const std::string name = "sm_" + std::to_string(gpu.capability);
        std::string &list =
            kernel_code_for(kFlags, gpu.capability) == KernelCode::kPtx ? ptx : machine;
        if (kernel_code_for(kFlags, gpu.capability) == KernelCode::kNone) {
            return {"kernels", Mark::kWrong,
                    built + ", and none for " + gpu.name + " (" + name + ")",
                    "hetcoll stages its memory through the host: configure it with "
                    "--with-cuda-arch=" +
                        std::to_string(gpu.capability) + ", if the toolkit knows that one"};
        }
        if (list.find(name) == list.npos) {
            list += (list.empty() ? "" : ", ") + name;
        }
    }
    if (!ptx.empty()) {
        return {"kernels", Mark::kNote, built + ", as PTX for " + ptx,
                "the driver compiles them in each process's first call, unless its cache has "
                "them: configure hetcoll with --with-cuda-arch for this GPU"};
    }
    return {"kernels", Mark::kOk, built + ", for " + machine};
}

Finding look_at_peers(const Driver &driver, const std::vector<Gpu> &gpus)
{
    const std::size_t pairs = gpus.size() * (gpus.size() - 1);
    std::size_t denied = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        denied += ask_peers(driver, static_cast<int>(i)).denied.size();
    }
    if (denied == 0) {
        return {"peers", Mark::kOk,
                gpus.size() == 1 ? "one GPU" : "every GPU reads the memory of all others"};
    }
    return {
        "peers", Mark::kNote,
        std::to_string(pairs - denied) + " of " + std::to_string(pairs) +
            " ways from a GPU to another's memory are open",
        "where they are not, data goes through host memory and takes longer. Behind NVSwitches "
        "see whether nvidia-fabricmanager runs; behind PCIe an IOMMU, access control (ACS) or a "
        "virtual machine may be in the way; some models cannot. hetcoll_info topology shows "
        "the links"};
}

Finding describe_table(const TableFile &file, const ThisMachine &machine)
{
    const std::string named = std::to_string(file.machines.size()) +
                              (file.machines.size() == 1 ? " machine" : " machines");
    if (machine.gpus == 0) {
        return {"table", Mark::kNote, file.path + ", with rules for " + named,
                "whether it is for this machine cannot be said, as no GPU can be used here"};
    }
    const Result<Table> table = Table::select(file, machine.fingerprint);
    if (!table.ok()) {
        return {"table", Mark::kWrong, table.status().message(),
                "hetcoll chooses algorithms by prices, and says so at each start: hetcoll_tune "
                "measures this machine"};
    }
    return {"table", Mark::kOk,
            file.path + ": " + std::to_string(table->rule_count()) + " rules" +
                (table->machine().empty() ? "" : " for " + table->machine()) +
                ", which is this machine"};
}

} // namespace

const char *mark_name(Mark mark) noexcept
{
    return mark == Mark::kOk ? "ok" : mark == Mark::kNote ? "note" : "wrong";
}

std::vector<Finding> check_gpus()
{
    const DriverLibrary library;
    const Driver *const driver = library.get();
    const Status status =
        driver == nullptr ? library.load_error()
                          : driver_status(*driver, driver->cuInit(0), "cuInit", "looking for GPUs");
    if (!status.ok()) {
        return {no_gpu(status.message())};
    }
    const std::vector<Gpu> gpus = gpus_of(*driver);
    if (gpus.empty()) {
        return {no_gpu("the driver shows none")};
    }
    int version = 0;
    static_cast<void>(driver->cuDriverGetVersion(&version));
    const std::string found = "CUDA " + cuda_release(version) + ", " + std::to_string(gpus.size()) +
                              (gpus.size() == 1 ? " GPU: " : " GPUs: ") + gpus.front().name;
    std::vector<Finding> findings;
    if (library.is_emulated()) {
        findings.push_back({"driver", Mark::kNote, "the emulated GPU, " + found,
                            "results are right, and no time is a GPU's: for real GPUs take it off "
                            "LD_LIBRARY_PATH"});
    } else {
        findings.push_back({"driver", Mark::kOk, found});
    }
    findings.push_back(look_at_kernels(gpus, version));
    findings.push_back(look_at_peers(*driver, gpus));
    return findings;
}

Finding check_shared_memory()
{
    const Result<NodeIdentity> identity = node_identity("");
    if (!identity.ok()) {
        return {"shm", Mark::kWrong, identity.status().message(),
                "ranks share no memory with each other: everything goes by messages"};
    }
    const Result<SharedPage> page = SharedPage::create(identity->process, kSharedBytes);
    if (!page.ok()) {
        return {"shm", Mark::kWrong, page.status().message(),
                "ranks of this node share no memory: everything goes by messages, and Open MPI "
                "may not start"};
    }
    struct statvfs space {};
    if (statvfs("/dev/shm", &space) != 0) {
        return {"shm", Mark::kOk, "/dev/shm can be written"};
    }
    const double unit = static_cast<double>(space.f_frsize);
    const int ranks = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
    const std::size_t fit =
        ShmBudget(ranks).limit() / ShmBudget::part(ControlPage::bytes(ranks), ranks);
    return {"shm", fit == 0 ? Mark::kNote : Mark::kOk,
            "/dev/shm has " + gib(unit * static_cast<double>(space.f_bavail)) + " of " +
                gib(unit * static_cast<double>(space.f_blocks)) +
                " free, half of which holds the pages of " + std::to_string(fit) +
                " communicators of " + std::to_string(ranks) + " ranks here",
            fit == 0 ? "ranks exchange messages instead: enlarge /dev/shm (docker run --shm-size)"
                     : ""};
}

Finding check_locked_memory()
{
    constexpr rlim_t kLittle = rlim_t{1} << 30;
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return {"locked_memory", Mark::kOk, "not limited"};
    }
    const std::string found = "limited to " + std::to_string(limit.rlim_cur >> 10U) + " KiB";
    if (!has_rdma()) {
        return {"locked_memory", Mark::kOk, found + ", and no RDMA adapter needs any"};
    }
    return {"locked_memory", limit.rlim_cur < kLittle ? Mark::kWrong : Mark::kOk,
            found + ", and there are RDMA adapters",
            limit.rlim_cur < kLittle
                ? "messages between nodes are slow or fail: ulimit -l unlimited, memlock in "
                  "/etc/security/limits.conf, LimitMEMLOCK=infinity for the scheduler's daemon"
                : ""};
}

Finding check_ucx(std::optional<bool> open_mpi_has_it)
{
    const std::string open_mpi = !open_mpi_has_it   ? ""
                                 : *open_mpi_has_it ? "; Open MPI has it"
                                                    : "; Open MPI was built without it";
#if HETCOLL_WITH_UCX
    const Result<UctCalls> ucx = load_uct();
    if (ucx.ok()) {
        return {"ucx", Mark::kOk,
                std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR) + open_mpi};
    }
    return {"ucx", Mark::kNote, ucx.status().message() + open_mpi,
            "vectors to aggregators go by TCP, not by RDMA; nothing else needs it"};
#else
    return {"ucx", Mark::kNote, "hetcoll was built without its headers" + open_mpi,
            "vectors to aggregators go by TCP, not by RDMA; nothing else needs it"};
#endif
}

Finding check_table(const std::string &setting, const InstalledFolders &folders)
{
    if (setting == "none") {
        return {"table", Mark::kNote, "coll_hetcoll_tuning_table is none",
                "hetcoll chooses algorithms by prices"};
    }
    const bool installed = setting.empty() || setting == "auto";
    const std::string path = installed ? installed_table(folders) : setting;
    if (path.empty()) {
        return {"table", Mark::kNote, "none in " + folders.config + ", nor in " + folders.data,
                "hetcoll chooses algorithms by prices: hetcoll_tune measures this machine"};
    }
    const Result<TableFile> file = read_table(path);
    if (!file.ok()) {
        return {"table", Mark::kWrong, file.status().message(),
                "hetcoll ignores it, says so at each start, and chooses algorithms by prices"};
    }
    const Result<ThisMachine> machine = look_at_machine();
    if (!machine.ok()) {
        return {"table", Mark::kWrong, path + ": " + machine.status().message(),
                "whether it is for this machine cannot be said"};
    }
    return describe_table(*file, *machine);
}

} // namespace hetcoll
