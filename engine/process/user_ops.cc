#include "engine/process/user_ops.h"

#include "base/hash.h"
#include "cuda_kernels/reduction.h"
#include "cuda_kernels/user_op.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

namespace hetcoll {
namespace {

struct BuiltIn {
    const char *symbol;
    UserOp op;
};

// Horovod's sums of halves: the same symbols in its libraries for PyTorch, TensorFlow and MXNet.
// They take Open MPI's own MPI_Datatype, which is in their names.
constexpr BuiltIn kBuiltIn[] = {
    {"_ZN7horovod6common11float16_sumEPvS1_PiPP15ompi_datatype_t",
     {ReduceOp::kSum, ElementKind::kFloat16}},
    {"_ZN7horovod6common11float16_minEPvS1_PiPP15ompi_datatype_t",
     {ReduceOp::kMinFirst, ElementKind::kFloat16}},
    {"_ZN7horovod6common11float16_maxEPvS1_PiPP15ompi_datatype_t",
     {ReduceOp::kMaxFirst, ElementKind::kFloat16}},
    {"_ZN7horovod6common12float16_prodEPvS1_PiPP15ompi_datatype_t",
     {ReduceOp::kProd, ElementKind::kFloat16}},
};

std::optional<ElementKind> find_kind(std::string_view name)
{
    if (name == "half" || name == "float16") {
        return ElementKind::kFloat16;
    }
    return name == "bfloat16" ? std::optional(ElementKind::kBfloat16) : std::nullopt;
}

std::optional<ReduceOp> find_operation(std::string_view name)
{
    if (name == "sum") {
        return ReduceOp::kSum;
    }
    if (name == "prod") {
        return ReduceOp::kProd;
    }
    if (name == "min") {
        return ReduceOp::kMinFirst;
    }
    return name == "max" ? std::optional(ReduceOp::kMaxFirst) : std::nullopt;
}

std::string_view trim(std::string_view text)
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
        text.remove_prefix(1);
    }
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
        text.remove_suffix(1);
    }
    return text;
}

struct Named {
    std::string_view symbol;
    UserOp op;
};

// "symbol=half:sum".
std::optional<Named> read_entry(std::string_view entry)
{
    const std::size_t equals = entry.rfind('=');
    if (equals == entry.npos) {
        return std::nullopt;
    }
    const std::string_view symbol = trim(entry.substr(0, equals));
    const std::string_view meaning = trim(entry.substr(equals + 1));
    const std::size_t colon = std::min(meaning.find(':'), meaning.size());
    const auto kind = find_kind(meaning.substr(0, colon));
    const auto op = find_operation(meaning.substr(std::min(colon + 1, meaning.size())));
    return !symbol.empty() && kind && op ? std::optional(Named{symbol, {*op, *kind}})
                                         : std::nullopt;
}

std::vector<std::string_view> split(std::string_view entries)
{
    std::vector<std::string_view> all;
    while (!entries.empty()) {
        const std::size_t comma = std::min(entries.find(','), entries.size());
        if (const std::string_view entry = trim(entries.substr(0, comma)); !entry.empty()) {
            all.push_back(entry);
        }
        entries.remove_prefix(std::min(comma + 1, entries.size()));
    }
    return all;
}

// The name of a function that begins exactly here, if its library exports it.
const char *symbol_of(UserOps::Function function)
{
    void *const address = reinterpret_cast<void *>(function);
    Dl_info info{};
    return dladdr(address, &info) != 0 && info.dli_saddr == address ? info.dli_sname : nullptr;
}

using Numbers = std::vector<std::uint16_t>;

// Finite numbers of every exponent: powers of two, their neighbours, and what rounds to even.
Numbers finite_numbers(ElementKind kind)
{
    const int fraction_bits = kind == ElementKind::kFloat16 ? 10 : 7;
    const int infinity = 0x7fff >> fraction_bits; // as an exponent
    const int step = kind == ElementKind::kFloat16 ? 1 : 7;
    const int last = (1 << fraction_bits) - 1;
    Numbers numbers;
    for (int exponent = 0; exponent < infinity; exponent += step) {
        for (const int fraction : {0, 1, last / 3, last / 2 + 1, last}) {
            for (const int sign : {0, 0x8000}) {
                numbers.push_back(
                    static_cast<std::uint16_t>(sign | exponent << fraction_bits | fraction));
            }
        }
    }
    return numbers;
}

bool is_zero(std::uint16_t number) { return (number & 0x7fff) == 0; }

} // namespace

UserOps::UserOps(std::string_view entries, const Log &log, const Log &node_log)
    : log_(log), node_log_(node_log)
{
    for (const BuiltIn &known : kBuiltIn) {
        add(known.symbol, known.op);
    }
    for (const std::string_view entry : split(entries)) {
        if (const auto named = read_entry(entry)) {
            add(std::string(named->symbol), named->op);
        }
    }
}

void UserOps::add(std::string symbol, UserOp op)
{
    std::erase_if(entries_, [&](const Entry &known) { return known.symbol == symbol; });
    entries_.push_back({std::move(symbol), op});
}

const UserOps::Answer *UserOps::find(Function function) const noexcept
{
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
        if (answers_[i].function == function) {
            return &answers_[i];
        }
    }
    return nullptr;
}

std::optional<UserOp> UserOps::recognize(Function function, const Caller &caller)
{
    if (const Answer *known = find(function)) {
        return known->op;
    }
    const std::lock_guard lock(mutex_); // a function is called once, however many ask
    if (const Answer *known = find(function)) {
        return known->op;
    }
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == kMostFunctions) {
        return std::nullopt;
    }
    const std::optional<UserOp> op = look_up(function, caller);
    // Programs that make functions by the hundred leave room for those that are known.
    if (op || count < kMostFunctions / 2) {
        answers_[count] = {function, op};
        count_.store(count + 1, std::memory_order_release);
    }
    return op;
}

std::optional<UserOp> UserOps::look_up(Function function, const Caller &caller) const
{
    int op = 0, kind = 0;
    if (hetcoll_user_op(function, &op, &kind) != 0) {
        return UserOp{static_cast<ReduceOp>(op), static_cast<ElementKind>(kind)};
    }
    const char *const symbol = symbol_of(function);
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [symbol](const Entry &known) {
        return symbol != nullptr && known.symbol == symbol;
    });
    if (entry == entries_.end()) {
        return std::nullopt;
    }
    if (const auto why = refute(entry->op, caller)) {
        hetcoll::log(node_log_.write != nullptr ? node_log_ : log_,
                     node_log_.write != nullptr ? 0 : 1,
                     "hetcoll: the reduction function %s is not %s of %s, as its name says, but "
                     "answers %s: hetcoll leaves its operations to Open MPI",
                     symbol, op_name(entry->op.op), element_name(entry->op.kind), why->c_str());
        return std::nullopt;
    }
    hetcoll::log(node_log_, 1, "hetcoll: reduces the operations of function %s as %s of %s", symbol,
                 op_name(entry->op.op), element_name(entry->op.kind));
    return entry->op;
}

std::uint64_t UserOps::hash() const noexcept
{
    std::uint64_t all = 1;
    for (const Entry &entry : entries_) { // a sum: the order does not matter
        Hash one;
        one.add(entry.symbol);
        one.add(static_cast<std::uint64_t>(entry.op.op));
        one.add(static_cast<std::uint64_t>(entry.op.kind));
        all += one.value();
    }
    return std::max<std::uint64_t>(all, 1);
}

Status check_user_ops(std::string_view entries)
{
    constexpr std::size_t kRoom = 300, kMostOfOne = 200; // of a line of 512
    std::string wrong;
    std::size_t named = 0, unnamed = 0;
    for (const std::string_view entry : split(entries)) {
        if (read_entry(entry)) {
            continue;
        }
        const std::string_view shown = entry.substr(0, kMostOfOne);
        if (unnamed > 0 || wrong.size() + shown.size() > kRoom) {
            ++unnamed;
            continue;
        }
        wrong.append(wrong.empty() ? "'" : ", '").append(shown).append("'");
        ++named;
    }
    if (wrong.empty()) {
        return {};
    }
    if (unnamed > 0) {
        wrong += " and " + std::to_string(unnamed) + " more";
    }
    return error(Errc::kInvalid,
                 "coll_hetcoll_user_ops: %s %s not SYMBOL=TYPE:OP with TYPE half or bfloat16 and "
                 "OP sum, prod, min or max",
                 wrong.c_str(), named + unnamed == 1 ? "is" : "are");
}

std::optional<std::string> refute(UserOp op, const UserOps::Caller &caller)
{
    constexpr std::uint16_t kGuard = 0x5a17;
    constexpr std::size_t kShifts = 24;
    const Numbers numbers = finite_numbers(op.kind);
    Numbers in, inout;
    for (std::size_t shift = 0; shift < kShifts; ++shift) { // near each other, and far
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            in.push_back(numbers[i]);
            inout.push_back(numbers[(i + shift * shift) % numbers.size()]);
        }
    }
    in.push_back(numbers[2]); // not a multiple of anything
    inout.push_back(numbers[3]);
    const std::size_t count = in.size();
    const Numbers a = in, b = inout;
    Numbers wanted(count);
    host_reduce(op.op, op.kind)(wanted.data(), a.data(), b.data(), count);
    inout.push_back(kGuard);
    caller.call(caller.context, in.data(), inout.data(), static_cast<int>(count));
    if (in != a || inout[count] != kGuard) {
        return "in memory that is not its result";
    }
    // Which of two zeros is the larger one depends on the instructions that a function uses.
    const bool ordered = op.op == ReduceOp::kMinFirst || op.op == ReduceOp::kMaxFirst;
    for (std::size_t i = 0; i < count; ++i) {
        if (inout[i] != wanted[i] && !(ordered && is_zero(inout[i]) && is_zero(wanted[i]))) {
            char text[64];
            std::snprintf(text, sizeof text, "0x%04x for 0x%04x and 0x%04x", inout[i], a[i], b[i]);
            return text;
        }
    }
    return std::nullopt;
}

} // namespace hetcoll
