// Every number is little-endian, whatever the machine.
#include "aggregator/protocol.h"

#include <algorithm>
#include <cstring>

namespace hetcoll {
namespace {

constexpr std::uint16_t kMagic = 0x4148;
constexpr std::uint8_t kVersion = 2;

enum class Type : std::uint8_t {
    kJoin = 1,
    kReady,
    kRefused,
    kFirstPart,
    kPart,
    kSum,
    kAlive,
    kOffer,
};

class Writer {
public:
    Writer(HeaderBytes &to, Type type) : to_(to)
    {
        number(kMagic);
        number(kVersion);
        number(static_cast<std::uint8_t>(type));
    }
    template <class T> void number(T value)
    {
        std::byte bytes[sizeof(T)];
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            bytes[i] = static_cast<std::byte>(value >> (8 * i));
        }
        to_.append(bytes, sizeof bytes);
    }
    void text(const std::string &bytes) // at most 255
    {
        number(static_cast<std::uint8_t>(bytes.size()));
        to_.append(bytes.data(), bytes.size());
    }

private:
    HeaderBytes &to_;
};

// Reads past the end give zeros; whole() tells.
class Reader {
public:
    explicit Reader(std::span<const std::byte> from) : from_(from) {}
    template <class T> T number()
    {
        T value = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            value = static_cast<T>(value | static_cast<T>(T{next()} << (8 * i)));
        }
        return value;
    }
    [[nodiscard]] std::string rest()
    {
        std::string text;
        while (at_ < from_.size()) {
            text.push_back(static_cast<char>(next()));
        }
        return text;
    }
    [[nodiscard]] std::string text(std::size_t most)
    {
        const auto size = number<std::uint8_t>();
        if (size > most || size > from_.size() - std::min(at_, from_.size())) {
            at_ = from_.size() + 1; // not whole any more
            return {};
        }
        std::string bytes;
        while (bytes.size() < size) {
            bytes.push_back(static_cast<char>(next()));
        }
        return bytes;
    }
    // All was there, and nothing is left.
    [[nodiscard]] bool whole() const noexcept { return at_ == from_.size(); }

private:
    std::uint8_t next() noexcept
    {
        const bool there = at_ < from_.size();
        const std::uint8_t value = there ? std::to_integer<std::uint8_t>(from_[at_]) : 0;
        ++at_;
        return value;
    }
    std::span<const std::byte> from_;
    std::size_t at_ = 0;
};

bool is_printable(char c) { return c >= ' ' && c <= '~'; }

void write_member(Writer &to, const Member &m)
{
    to.number(m.job);
    for (const std::uint32_t n :
         {m.comm, m.rank, m.span, m.first, m.count, m.ranks, m.window, m.message_bytes}) {
        to.number(n);
    }
}

Member read_member(Reader &from)
{
    Member m;
    m.job = from.number<std::uint64_t>();
    for (std::uint32_t *n :
         {&m.comm, &m.rank, &m.span, &m.first, &m.count, &m.ranks, &m.window, &m.message_bytes}) {
        *n = from.number<std::uint32_t>();
    }
    return m;
}

bool is_valid(std::uint32_t window, std::uint32_t message_bytes)
{
    return window >= 1 && window <= kMostWindow && message_bytes >= 1 &&
           message_bytes <= kMostMessageBytes;
}

// The limit on ranks keeps the sums below from wrapping.
bool is_valid(const Member &m)
{
    return m.ranks >= 1 && m.ranks <= kMostRanks && m.first < m.ranks && m.count >= 1 &&
           m.count <= m.ranks - m.first && m.rank >= m.first && m.rank < m.first + m.count &&
           m.span >= 1 && m.span <= m.first + m.count - m.rank &&
           is_valid(m.window, m.message_bytes);
}

struct Encoder {
    HeaderBytes header;

    void operator()(const Join &m)
    {
        Writer to(header, Type::kJoin);
        write_member(to, m.member);
    }
    void operator()(const Ready &m) { Writer(header, Type::kReady).number(m.window); }
    void operator()(const Refused &m)
    {
        Writer to(header, Type::kRefused);
        for (const char c : m.why.substr(0, kMostRefusalBytes)) {
            to.number(static_cast<std::uint8_t>(is_printable(c) ? c : '?'));
        }
    }
    void operator()(const Part &m)
    {
        Writer to(header, m.reduction ? Type::kFirstPart : Type::kPart);
        to.number(m.sequence);
        if (m.reduction) {
            const Reduction &r = *m.reduction;
            to.number(r.job);
            to.number(r.comm);
            to.number(static_cast<std::uint8_t>(r.op));
            to.number(static_cast<std::uint8_t>(r.kind));
            to.number(r.window);
            to.number(r.message_bytes);
            to.number(r.count);
        }
    }
    void operator()(const PartSum &m)
    {
        Writer to(header, Type::kSum);
        to.number(m.sequence);
    }
    void operator()(const Alive & /*m*/) { Writer(header, Type::kAlive); }
};

std::optional<Message> decode_refused(Reader &from)
{
    Refused m{from.rest()};
    if (m.why.size() > kMostRefusalBytes ||
        !std::all_of(m.why.begin(), m.why.end(), is_printable)) {
        return std::nullopt;
    }
    return m;
}

std::optional<Message> decode_part(Reader &from, Type type)
{
    Part m{.sequence = from.number<std::uint64_t>(), .reduction = std::nullopt};
    if (type != Type::kFirstPart) {
        return m;
    }
    Reduction r;
    r.job = from.number<std::uint64_t>();
    r.comm = from.number<std::uint32_t>();
    const auto op = from.number<std::uint8_t>(), kind = from.number<std::uint8_t>();
    r.window = from.number<std::uint32_t>();
    r.message_bytes = from.number<std::uint32_t>();
    r.count = from.number<std::uint64_t>();
    if (op >= kReduceOpCount || kind >= kElementKindCount || r.count == 0 ||
        r.count > UINT64_MAX / 16 || !is_valid(r.window, r.message_bytes)) {
        return std::nullopt;
    }
    r.op = static_cast<ReduceOp>(op);
    r.kind = static_cast<ElementKind>(kind);
    if (!is_defined(r.op, r.kind)) {
        return std::nullopt;
    }
    m.reduction = r;
    return m;
}

std::optional<Message> decode_body(Type type, Reader &from)
{
    switch (type) {
    case Type::kJoin: {
        const Join m{read_member(from)};
        return is_valid(m.member) ? std::optional<Message>(m) : std::nullopt;
    }
    case Type::kReady: {
        const Ready m{from.number<std::uint32_t>()};
        return m.window >= 1 && m.window <= kMostWindow ? std::optional<Message>(m) : std::nullopt;
    }
    case Type::kRefused: return decode_refused(from);
    case Type::kFirstPart:
    case Type::kPart: return decode_part(from, type);
    case Type::kSum: return PartSum{from.number<std::uint64_t>()};
    case Type::kAlive: return Alive{};
    case Type::kOffer: break; // the wire's: decode_offer()
    }
    return std::nullopt;
}

} // namespace

void HeaderBytes::append(const void *bytes, std::size_t count) noexcept
{
    count = std::min(count, bytes_.size() - size_);
    if (count > 0) {
        std::memcpy(bytes_.data() + size_, bytes, count);
        size_ += count;
    }
}

HeaderBytes encode(const Message &message)
{
    Encoder encoder;
    std::visit(encoder, message);
    return encoder.header;
}

std::optional<Message> decode(std::span<const std::byte> header, std::size_t payload_bytes)
{
    if (header.size() > kMostHeaderBytes) {
        return std::nullopt;
    }
    Reader from(header);
    const auto magic = from.number<std::uint16_t>();
    const auto version = from.number<std::uint8_t>();
    const auto type = static_cast<Type>(from.number<std::uint8_t>());
    if (magic != kMagic || version != kVersion) {
        return std::nullopt;
    }
    const std::optional<Message> message = decode_body(type, from);
    const bool wants_payload =
        type == Type::kFirstPart || type == Type::kPart || type == Type::kSum;
    if (!message || !from.whole() || wants_payload != (payload_bytes > 0) ||
        payload_bytes > kMostMessageBytes) {
        return std::nullopt;
    }
    return message;
}

HeaderBytes encode(const RdmaOffer &offer)
{
    HeaderBytes header;
    Writer to(header, Type::kOffer);
    to.number(offer.token.connection);
    to.number(offer.token.secret);
    to.text(offer.address.kind);
    to.text(offer.address.device);
    to.text(offer.address.queue);
    return header;
}

std::optional<RdmaOffer> decode_offer(std::span<const std::byte> header)
{
    Reader from(header);
    const bool ours = from.number<std::uint16_t>() == kMagic &&
                      from.number<std::uint8_t>() == kVersion &&
                      from.number<std::uint8_t>() == static_cast<std::uint8_t>(Type::kOffer);
    RdmaOffer offer;
    offer.token.connection = from.number<std::uint64_t>();
    offer.token.secret = from.number<std::uint64_t>();
    offer.address.kind = from.text(kMostRdmaKindBytes);
    offer.address.device = from.text(kMostRdmaAddressBytes);
    offer.address.queue = from.text(kMostRdmaAddressBytes);
    const std::string &kind = offer.address.kind;
    if (!ours || !from.whole() || !std::all_of(kind.begin(), kind.end(), is_printable)) {
        return std::nullopt;
    }
    return offer;
}

} // namespace hetcoll
