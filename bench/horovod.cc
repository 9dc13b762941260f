#include "bench/horovod.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <numeric>
#include <string>
#include <vector>

namespace hetcoll {

namespace {

struct Exported {
    ReduceOp op;
    const char *symbol;
};
constexpr std::array<Exported, 4> kExported = {{
    {ReduceOp::kSum, "_ZN7horovod6common11float16_sumEPvS1_PiPP15ompi_datatype_t"},
    {ReduceOp::kProd, "_ZN7horovod6common12float16_prodEPvS1_PiPP15ompi_datatype_t"},
    {ReduceOp::kMin, "_ZN7horovod6common11float16_minEPvS1_PiPP15ompi_datatype_t"},
    {ReduceOp::kMax, "_ZN7horovod6common11float16_maxEPvS1_PiPP15ompi_datatype_t"},
}};

std::string folder_of_this_program()
{
    std::array<char, PATH_MAX> path{};
    const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
    const std::string program(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    return program.substr(0, program.find_last_of('/') + 1);
}

// Every rank clears a bit of its own, or sets it.
std::uint64_t agree(MPI_Comm comm, std::size_t words, MPI_Op op)
{
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const bool clears = op == MPI_BAND;
    const auto bit = [](int of) { return 1ULL << (of % 64); };
    unsigned long long all = 0;
    for (int r = 0; r < ranks; ++r) {
        all |= bit(r);
    }
    std::vector<unsigned long long> word(words, clears ? ~bit(rank) : bit(rank));
    MPI_Allreduce(MPI_IN_PLACE, word.data(), static_cast<int>(words), MPI_LONG_LONG_INT, op, comm);
    std::uint64_t wrong = 0;
    for (const unsigned long long got : word) {
        wrong += got != (clears ? ~all : all) ? 1 : 0;
    }
    return wrong;
}

// Rank 0 hears of the others' new tensors and answers.
std::uint64_t announce(MPI_Comm comm, std::size_t response_bytes)
{
    constexpr int kRequestBytes = 64;
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const auto size = static_cast<std::size_t>(ranks);
    std::vector<int> lengths(size), first(size);
    int length = rank == 0 ? 0 : kRequestBytes;
    lengths[0] = length;
    MPI_Gather(rank == 0 ? MPI_IN_PLACE : &length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comm);
    std::exclusive_scan(lengths.begin(), lengths.end(), first.begin(), 0);
    const std::vector<char> request(static_cast<std::size_t>(length), static_cast<char>(rank));
    std::vector<char> requests(size * kRequestBytes);
    MPI_Gatherv(request.data(), length, MPI_BYTE, requests.data(), lengths.data(), first.data(),
                MPI_BYTE, 0, comm);
    int answer = static_cast<int>(response_bytes);
    MPI_Bcast(&answer, 1, MPI_INT, 0, comm);
    std::vector<char> response(response_bytes, static_cast<char>(rank == 0 ? 1 : 0));
    MPI_Bcast(response.data(), answer, MPI_BYTE, 0, comm);

    std::uint64_t wrong = answer != static_cast<int>(response_bytes) ? 1 : 0;
    for (const char byte : response) {
        wrong += byte != 1 ? 1 : 0;
    }
    for (int from = 1; rank == 0 && from < ranks; ++from) {
        const auto at = static_cast<std::size_t>(first[static_cast<std::size_t>(from)]);
        wrong += requests[at] != static_cast<char>(from) ? 1 : 0;
    }
    return wrong;
}

} // namespace

Result<std::unique_ptr<HorovodHalf>> HorovodHalf::create()
{
    const std::string path = folder_of_this_program() + "horovod_half.so";
    void *const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); // for good, as Horovod's is
    if (library == nullptr) {
        return error(Errc::kUnsupported, "no operations for half: %s", dlerror());
    }
    std::unique_ptr<HorovodHalf> half(new HorovodHalf);
    MPI_Type_contiguous(2, MPI_BYTE, &half->type_);
    MPI_Type_commit(&half->type_);
    for (std::size_t i = 0; i < kExported.size(); ++i) {
        void *const function = dlsym(library, kExported[i].symbol);
        if (function == nullptr) {
            return error(Errc::kUnsupported, "%s does not export %s", path.c_str(),
                         kExported[i].symbol);
        }
        MPI_Op_create(reinterpret_cast<MPI_User_function *>(function), 1, &half->ops_[i]);
    }
    return half;
}

HorovodHalf::~HorovodHalf()
{
    for (MPI_Op &op : ops_) {
        if (op != MPI_OP_NULL) {
            MPI_Op_free(&op);
        }
    }
    if (type_ != MPI_DATATYPE_NULL) {
        MPI_Type_free(&type_);
    }
}

MPI_Op HorovodHalf::op(ReduceOp op) const noexcept
{
    std::size_t i = 0;
    while (kExported[i].op != op) {
        ++i;
    }
    return ops_[i];
}

HorovodComms::HorovodComms()
{
    // Once for the job and once for the process set of all ranks.
    for (std::size_t set = 0; set < 2; ++set) {
        MPI_Comm *const made = &comms_[4 * set];
        MPI_Comm_dup(MPI_COMM_WORLD, &made[0]);
        MPI_Comm_split_type(made[0], MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made[1]);
        MPI_Comm_rank(made[1], &local_rank_);
        MPI_Comm_split(made[0], local_rank_, 0, &made[2]);
        MPI_Comm_dup(made[0], &made[3]);
    }
}

HorovodComms::~HorovodComms()
{
    for (MPI_Comm &comm : comms_) {
        MPI_Comm_free(&comm);
    }
}

std::uint64_t negotiate(MPI_Comm comm, const Negotiation &negotiation)
{
    std::uint64_t wrong = 0;
    for (const std::size_t words : negotiation.agreed_words) {
        wrong += agree(comm, words, MPI_BAND);
    }
    if (!negotiation.agreed_words.empty()) {
        wrong += agree(comm, negotiation.agreed_words.back(), MPI_BOR);
    }
    if (negotiation.response_bytes >= 0) {
        wrong += announce(comm, static_cast<std::size_t>(negotiation.response_bytes));
    }
    return wrong;
}

} // namespace hetcoll
