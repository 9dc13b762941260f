#include "engine/communicator/adapters.h"

#include "base/lost.h"
#include "engine/process/call_record.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hetcoll {

Result<std::unique_ptr<Adapters>> Adapters::create(Pool &pool,
                                                   const std::shared_ptr<Device> &device,
                                                   const AdapterMessages::Options &options)
{
    const ContextScope scope(device->driver(), device->context());
    auto messages = AdapterMessages::create(options);
    if (!messages.ok()) {
        return messages.take_status();
    }
    auto made = pool.make_for_adapters(device);
    if (!made.ok()) {
        return made.take_status();
    }
    const auto *const slot = static_cast<const std::byte *>((*made)->landing(0));
    if (Status known = (*messages)->check({slot, (*made)->slot_bytes()}); !known.ok()) {
        pool.give_back(std::move(*made));
        return known;
    }
    return std::unique_ptr<Adapters>(
        new Adapters(pool, device, std::move(*made), std::move(*messages)));
}

Adapters::Adapters(Pool &pool, std::shared_ptr<Device> device, std::unique_ptr<DeviceBounce> slots,
                   std::unique_ptr<AdapterMessages> messages)
    : pool_(pool), device_(std::move(device)), bounce_(std::move(slots)),
      messages_(std::move(messages))
{
    bounce = bounce_.get();
}

// What UCX has made in a context that is gone cannot be given back, nor used.
Adapters::~Adapters()
{
    if (!device_->is_alive()) {
        lose(std::move(messages_));
        return;
    }
    if (trial_ != nullptr) { // it has not come to an end everywhere
        abandon();
    }
    const ContextScope scope(device_->driver(), device_->context());
    messages_.reset();
    pool_.give_back(std::move(bounce_));
}

// UCX works with CUDA in the current context, if a message takes it.
void Adapters::progress() noexcept
{
    if (device_->is_alive()) {
        const ContextScope scope(device_->driver(), device_->context());
        messages_->progress();
    }
}

std::string Adapters::problem() const
{
    const char *const problem = messages_->problem();
    return problem != nullptr ? std::string("a message by adapters: ") + problem : std::string();
}

Adapters::Address Adapters::address() const
{
    const std::span<const std::byte> own = messages_->address();
    Address address{.bytes = static_cast<std::uint16_t>(own.size())};
    std::copy(own.begin(), own.end(), address.text.begin());
    return address;
}

Status Adapters::start_trial(std::span<const Address> addresses, int rank)
{
    std::vector<std::span<const std::byte>> texts;
    for (const Address &address : addresses) {
        texts.emplace_back(address.text.data(),
                           std::min<std::size_t>(address.bytes, address.text.size()));
    }
    const ContextScope scope(device_->driver(), device_->context());
    if (Status connected = messages_->connect(texts, rank); !connected.ok()) {
        return connected;
    }
    p2p = messages_->table(); // which the connections make
    const int size = static_cast<int>(addresses.size());
    trial_ = std::make_unique<MessageTrial>(device_, p2p, 0, (rank + 1) % size,
                                            (rank + size - 1) % size);
    return {};
}

std::optional<bool> Adapters::step_trial()
{
    trial_ends_ns_ = trial_ends_ns_ != 0 ? trial_ends_ns_ : now_ns() + kMostTrialNs;
    const MessageTrial::Answer answer = trial_->step();
    if (answer == MessageTrial::Answer::kUnknown && now_ns() < trial_ends_ns_) {
        return std::nullopt;
    }
    return answer == MessageTrial::Answer::kYes;
}

void Adapters::abandon() noexcept
{
    if (!device_->is_alive()) {
        return;
    }
    bounce_->finish();
    bounce_->leave();
    const ContextScope scope(device_->driver(), device_->context());
    messages_->abandon();
}

} // namespace hetcoll
