// Buffers that this process has described to peers: by what they were found for, the least recently
// used last.
#pragma once

#include "device/driver.h"
#include "transport/exporter.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hetcoll {

// The key of an entry: an allocation by its id, or the VMM range from an address on.
struct ExportKey {
    int device;
    int pieces; // 0: `what` is a BUFFER_ID, else the address of the first of these pieces
    std::uint64_t what;

    friend bool operator==(const ExportKey &, const ExportKey &) = default;
};

struct ExportKeyHash {
    std::size_t operator()(const ExportKey &key) const noexcept
    {
        std::uint64_t bits = key.what * 0x9e3779b97f4a7c15u;
        bits ^= static_cast<std::uint64_t>(key.pieces) << 32 | static_cast<unsigned>(key.device);
        return static_cast<std::size_t>(bits ^ bits >> 29);
    }
};

struct Exported {
    ExportKey key;
    SharedBuffer shared;                               // offset is not set
    std::vector<CUmemGenericAllocationHandle> handles; // retained
    std::vector<std::uint64_t> piece_bytes;
    bool own = false;        // asked for only when some was freed
    std::uint32_t known = 0; // the last round of questions in which it was known to be there
};

class ExportCache {
public:
    explicit ExportCache(std::size_t limit) : limit_(limit) {}

    Exported *find(const ExportKey &key)
    {
        const auto found = index_.find(key);
        if (found == index_.end()) {
            return nullptr;
        }
        entries_.splice(entries_.begin(), entries_, found->second);
        return &entries_.front();
    }
    // True if there are no more entries than the limit.
    [[nodiscard]] bool fits() const noexcept { return entries_.size() <= limit_; }
    Exported &add(Exported entry)
    {
        std::list<Exported> added; // nothing has changed where memory runs out
        added.push_front(std::move(entry));
        index_[added.front().key] = added.begin();
        entries_.splice(entries_.begin(), added);
        return entries_.front();
    }
    void move_out(const ExportKey &key, std::list<Exported> &to)
    {
        const auto found = index_.find(key);
        to.splice(to.end(), entries_, found->second);
        index_.erase(found);
    }
    Exported take(const ExportKey &key)
    {
        const auto found = index_.find(key);
        Exported taken = std::move(*found->second);
        entries_.erase(found->second);
        index_.erase(found);
        return taken;
    }
    [[nodiscard]] const Exported &oldest() const noexcept { return entries_.back(); }
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    [[nodiscard]] std::list<Exported> &entries() noexcept { return entries_; }

private:
    std::size_t limit_;
    std::list<Exported> entries_;
    std::unordered_map<ExportKey, std::list<Exported>::iterator, ExportKeyHash> index_;
};

} // namespace hetcoll
