#include "bench/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace hetcoll {

namespace {

constexpr std::array<std::pair<std::string_view, TracedCall>, 5> kCalls = {{
    {"Allreduce", TracedCall::kAllreduce},
    {"Reduce_scatter", TracedCall::kReduceScatter},
    {"Bcast", TracedCall::kBcast},
    {"Allgatherv", TracedCall::kAllgatherv},
    {"Alltoallv", TracedCall::kAlltoallv},
}};

// The types of Horovod's tensors (message.h of Horovod names them, mpi_context.cc gives MPI's).
constexpr std::array<std::pair<std::string_view, ElementKind>, 11> kTypes = {{
    {"MPI_FLOAT", ElementKind::kFloat32},
    {"MPI_DOUBLE", ElementKind::kFloat64},
    {"unnamed(2)", ElementKind::kFloat16},
    {"MPI_INT32_T", ElementKind::kInt32},
    {"MPI_INT", ElementKind::kInt32},
    {"MPI_INT64_T", ElementKind::kInt64},
    {"MPI_UINT8_T", ElementKind::kUint8},
    {"MPI_INT8_T", ElementKind::kInt8},
    {"MPI_UINT16_T", ElementKind::kUint16},
    {"MPI_INT16_T", ElementKind::kInt16},
    {"MPI_C_BOOL", ElementKind::kBool},
}};

constexpr std::array<std::pair<std::string_view, ReduceOp>, 8> kOps = {{
    {"SUM", ReduceOp::kSum},
    {"PROD", ReduceOp::kProd},
    {"MIN", ReduceOp::kMin},
    {"MAX", ReduceOp::kMax},
    {"user:_ZN7horovod6common11float16_sumEPvS1_PiPP15ompi_datatype_t", ReduceOp::kSum},
    {"user:_ZN7horovod6common12float16_prodEPvS1_PiPP15ompi_datatype_t", ReduceOp::kProd},
    {"user:_ZN7horovod6common11float16_minEPvS1_PiPP15ompi_datatype_t", ReduceOp::kMin},
    {"user:_ZN7horovod6common11float16_maxEPvS1_PiPP15ompi_datatype_t", ReduceOp::kMax},
}};

template <class Table> auto find(const Table &table, std::string_view name)
{
    using Value = decltype(table.front().second);
    for (const auto &[known, value] : table) {
        if (known == name) {
            return std::optional<Value>(value);
        }
    }
    return std::optional<Value>();
}

// Limits of all rows together: hours of training, and of memory.
constexpr std::size_t kMostCalls = 1000000;

struct Row { // as in the file
    std::string call, type, op;
    bool in_place;
    std::size_t bytes, calls;
};

struct DataRow {
    DataCall data;
    std::size_t calls;
};

struct Parsed {
    std::vector<DataRow> data;
    std::vector<std::size_t> agreed_words, response_bytes; // one an Allreduce, one a Bcast
    std::size_t announcements = 0;
};

bool parse_number(std::string_view text, std::size_t &number)
{
    const char *const end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data(), end, number);
    return code == std::errc() && stop == end;
}

std::optional<Row> parse_row(const std::string &line)
{
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) {
        cells.push_back(std::move(cell));
    }
    Row row;
    std::size_t in_place = 0;
    if (cells.size() != 10 || !parse_number(cells[4], in_place) ||
        !parse_number(cells[5], row.bytes) || !parse_number(cells[7], row.calls)) {
        return std::nullopt;
    }
    row.call = cells[0], row.type = cells[1], row.op = cells[2], row.in_place = in_place != 0;
    return row;
}

// True if the row is part of a negotiation, and now in `parsed`.
bool take_negotiation(const Row &row, Parsed &parsed)
{
    if (row.call == "Allreduce" && (row.op == "BAND" || row.op == "BOR")) {
        parsed.agreed_words.insert(parsed.agreed_words.end(), row.calls, row.bytes / 8);
        return true;
    }
    if (row.call == "Bcast" && row.type == "MPI_BYTE") {
        parsed.response_bytes.insert(parsed.response_bytes.end(), row.calls, row.bytes);
        return true;
    }
    if (row.call == "Gatherv") {
        parsed.announcements += row.calls;
        return true;
    }
    return row.call == "Gather" || (row.call == "Bcast" && row.type == "MPI_INT");
}

std::optional<DataRow> find_data(const Row &row, TracedCall call)
{
    const auto kind = find(kTypes, row.type);
    const bool reduces = call == TracedCall::kAllreduce || call == TracedCall::kReduceScatter;
    const auto op = reduces ? find(kOps, row.op) : std::optional(ReduceOp::kSum);
    if (!kind || !op) {
        return std::nullopt;
    }
    return DataRow{{call, *kind, *op, row.op.starts_with("user:"), row.in_place,
                    row.bytes / element_bytes(*kind)},
                   row.calls};
}

std::vector<PlayedCall> put_in_order(const Parsed &parsed)
{
    std::vector<PlayedCall> played;
    std::size_t total = 0;
    for (const DataRow &row : parsed.data) {
        total += row.calls;
    }
    for (std::size_t round = 0; played.size() < total; ++round) {
        for (const DataRow &row : parsed.data) {
            const bool all_at_once = row.data.call == TracedCall::kBcast;
            const std::size_t calls =
                all_at_once ? (round == 0 ? row.calls : 0) : (round < row.calls ? 1 : 0);
            played.insert(played.end(), calls, PlayedCall{{}, row.data});
        }
    }
    std::size_t agreed = 0, announced = 0;
    for (std::size_t i = 0; i < played.size(); ++i) {
        Negotiation &before = played[i].before;
        for (; agreed < parsed.agreed_words.size() * (i + 1) / played.size(); ++agreed) {
            before.agreed_words.push_back(parsed.agreed_words[agreed]);
        }
        if (announced < parsed.announcements * (i + 1) / played.size()) {
            const bool known = announced < parsed.response_bytes.size();
            before.response_bytes = known ? static_cast<long>(parsed.response_bytes[announced]) : 0;
            ++announced;
        }
    }
    return played;
}

} // namespace

const char *traced_call_name(TracedCall call) noexcept
{
    return kCalls[static_cast<std::size_t>(call)].first.data();
}

Result<std::vector<PlayedCall>> read_trace(const std::string &path)
{
    std::ifstream file(path);
    if (!file) {
        return error(Errc::kInvalid, "cannot read the trace %s", path.c_str());
    }
    Parsed parsed;
    std::string line;
    std::size_t calls = 0;
    std::getline(file, line); // the names of the columns
    for (int number = 2; std::getline(file, line); ++number) {
        const std::optional<Row> row = parse_row(line);
        if (!row) {
            return error(Errc::kInvalid,
                         "%s:%d: not a line of a trace (bench/traces/README.md): '%s'",
                         path.c_str(), number, line.c_str());
        }
        if (row->calls > kMostCalls - calls) {
            return error(Errc::kInvalid,
                         "%s:%d: more than %zu calls in all, which would take too much memory: "
                         "record fewer steps",
                         path.c_str(), number, kMostCalls);
        }
        calls += row->calls;
        if (take_negotiation(*row, parsed)) {
            continue;
        }
        const auto call = find(kCalls, row->call);
        if (!call) {
            continue;
        }
        const std::optional<DataRow> data = find_data(*row, *call);
        if (!data) {
            return error(Errc::kUnsupported, "%s:%d: cannot play %s of type %s, operation '%s'",
                         path.c_str(), number, row->call.c_str(), row->type.c_str(),
                         row->op.c_str());
        }
        parsed.data.push_back(*data);
    }
    if (parsed.data.empty()) {
        return error(Errc::kInvalid, "the trace %s has no collective on tensors", path.c_str());
    }
    return put_in_order(parsed);
}

void shrink(std::vector<PlayedCall> &calls, std::size_t divisor)
{
    for (PlayedCall &call : calls) {
        call.data.count = std::max<std::size_t>(1, call.data.count / divisor);
    }
}

} // namespace hetcoll
