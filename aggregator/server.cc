#include "aggregator/server.h"

#include <algorithm>

namespace hetcoll {
namespace {

// How long a worker that was refused may take to read why.
constexpr double kReadSeconds = 2;
// How often a worker hears that the aggregator is there, when a sum takes long.
constexpr double kAliveSeconds = 5;

} // namespace

class Server::Room final : public Group::Output, public Session::Sums {
public:
    Room(Server &server, std::string key, const Member &shape, std::uint32_t window)
        : server_(server), key_(std::move(key)), group_(shape, window, *this),
          deadline_(server.now_ + server.options_.group_seconds)
    {
    }

    [[nodiscard]] const std::string &key() const noexcept { return key_; }
    Group &group() noexcept { return group_; }
    const Group &group() const noexcept { return group_; }
    Session *spine() noexcept { return spine_ ? &*spine_ : nullptr; }
    [[nodiscard]] bool is_ready() const noexcept { return ready_; }
    [[nodiscard]] bool is_late(double now) const noexcept { return !ready_ && now > deadline_; }
    [[nodiscard]] std::string name() const
    {
        const Member &shape = group_.shape();
        return "key " + key_ + " job " + std::to_string(shape.job) + " communicator " +
               std::to_string(shape.comm);
    }

    // Called when all have joined here. Answers why the group cannot go on, or nothing.
    std::string on_complete()
    {
        if (!group_.has_spine()) {
            open(group_.window());
            return {};
        }
        Member leaf = group_.shape();
        leaf.rank = leaf.first;
        leaf.span = leaf.count;
        leaf.first = 0;
        leaf.count = leaf.ranks;
        leaf.window = group_.window();
        const Endpoint &endpoint = *server_.options_.spine;
        spine_.emplace(server_.wire_, key_, leaf, endpoint.text(), *this);
        const Status status = spine_->connect(endpoint);
        server_.spines_[spine_->connection()] = this;
        return status.ok() ? std::string() : status.message();
    }
    // Answers why it cannot go on, or nothing.
    std::string take_failure() { return std::exchange(failure_, {}); }
    // Follows the session at the spine. Answers why it has failed, or nothing.
    std::string look_at_spine()
    {
        if (spine_->state() == SessionState::kFailed) {
            return spine_->status().message();
        }
        if (spine_->state() == SessionState::kJoined && !ready_) {
            open(spine_->window());
        }
        return take_failure();
    }

    void send_sum(Connection to, std::uint64_t sequence, SumPool::Buffer *sum) override
    {
        const HeaderBytes header = encode(PartSum{sequence});
        ++server_.counters_.sums;
        server_.counters_.payload_bytes_out += sum->view().size();
        server_.counters_.header_bytes_out += header.view().size();
        server_.wire_.send(to, header, sum->view(), sum);
        // One that keeps to the window has no more on the way to it.
        if (server_.wire_.waiting(to) > group_.window() + 1) {
            failure_ = "a rank does not read its sums, and sends more than the window allows";
        }
    }
    void send_up(const Reduction *first, SumPool::Buffer *sum) override
    {
        if (first != nullptr) {
            spine_->begin(first->op, first->kind, first->count);
        }
        server_.counters_.payload_bytes_up += sum->view().size();
        spine_->send(sum->view(), sum);
    }
    void on_sum(std::uint64_t sequence, Payload sum) override
    {
        server_.counters_.payload_bytes_down += sum.size();
        if (std::string why = group_.on_spine_sum(sequence, std::move(sum)); !why.empty()) {
            failure_ = std::move(why);
        }
    }

    std::uint64_t reserved_bytes = 0; // of the server's memory

private:
    void open(std::uint32_t window)
    {
        group_.limit_window(window);
        ready_ = true;
        for (const Connection member : group_.members()) {
            server_.wire_.allow_payload(member, group_.shape().message_bytes);
            server_.send(member, Ready{group_.window()});
        }
    }

    Server &server_;
    std::string key_;
    Group group_;
    std::optional<Session> spine_;
    std::string failure_;
    bool ready_ = false;
    double deadline_;
};

Server::Server(Wire &wire, ServerOptions options, void (*log)(const std::string &line))
    : wire_(wire), options_(std::move(options)), log_(log)
{
}

Server::~Server() = default;

bool Server::progress(double now)
{
    now_ = now;
    const bool moved = wire_.progress(*this);
    if (now - looked_ >= 0.5) {
        looked_ = now;
        look_at_clock();
    }
    return moved;
}

void Server::send(Connection to, const Message &message)
{
    const HeaderBytes header = encode(message);
    counters_.header_bytes_out += header.view().size();
    wire_.send(to, header);
}

// ---- who comes in ----

void Server::on_accepted(Connection connection, const std::string &key)
{
    Worker worker;
    worker.key = key;
    worker.deadline = now_ + options_.join_seconds;
    workers_[connection] = std::move(worker);
}

void Server::enter(Connection connection, Worker &worker, const Member &member)
{
    Room &room = room_of(worker.key, member);
    Group &group = room.group();
    const std::string why = room.is_ready() ? "all ranks of this communicator have joined already"
                                            : group.check(member);
    if (!why.empty()) {
        refuse(connection, why);
        return;
    }
    ++counters_.joined;
    worker.room = &room;
    group.add(connection, member);
    if (group.has_spine() && !options_.spine) {
        fail(room, "it serves a part of the ranks only and has no spine: start it with --spine, or "
                   "name one aggregator for all ranks");
        return;
    }
    const std::uint64_t bytes =
        Group::memory_bytes(group.shape(), group.window(), group.member_count());
    counters_.memory_bytes += bytes - std::exchange(room.reserved_bytes, bytes);
    if (counters_.memory_bytes > options_.most_memory_bytes) {
        fail(room, "its memory is used up: start it with a larger --max-memory, or use a smaller "
                   "window or smaller messages");
        return;
    }
    counters_.most_memory_bytes = std::max(counters_.most_memory_bytes, counters_.memory_bytes);
    if (group.complete()) {
        ++counters_.groups;
        if (const std::string wrong = room.on_complete(); !wrong.empty()) {
            fail(room, wrong);
        }
    }
}

Server::Room &Server::room_of(const std::string &key, const Member &member)
{
    std::unique_ptr<Room> &room =
        rooms_[{key, member.job, member.comm, member.first, member.count, member.ranks}];
    if (room == nullptr) {
        room = std::make_unique<Room>(*this, key, member,
                                      std::min(member.window, options_.most_window));
    }
    return *room;
}

// ---- what they send ----

void Server::on_message(Connection connection, std::span<const std::byte> header, Payload payload)
{
    if (const auto spine = spines_.find(connection); spine != spines_.end()) {
        Room &room = *spine->second;
        room.spine()->on_message(header, std::move(payload));
        look_at_spine(room);
        return;
    }
    Worker &worker = workers_.at(connection);
    counters_.header_bytes_in += header.size();
    const std::optional<Message> message = decode(header, payload.size());
    if (message && worker.stage == Worker::Stage::kNew && std::holds_alternative<Join>(*message)) {
        worker.stage = Worker::Stage::kJoined;
        enter(connection, worker, std::get<Join>(*message).member);
        return;
    }
    const Part *const part = message ? std::get_if<Part>(&*message) : nullptr;
    if (part != nullptr && worker.stage == Worker::Stage::kRefused) {
        return; // it was on its way when the group came to its end
    }
    if (part == nullptr || worker.room == nullptr || !worker.room->is_ready()) {
        ++counters_.malformed;
        return;
    }
    Room &room = *worker.room;
    ++counters_.parts;
    counters_.payload_bytes_in += payload.size();
    const std::uint64_t dropped = room.group().counters().dropped;
    std::string why = room.group().on_part(connection, *part, std::move(payload));
    if (why.empty()) {
        why = room.take_failure();
    }
    counters_.malformed += room.group().counters().dropped - dropped;
    counters_.most_in_flight =
        std::max(counters_.most_in_flight, room.group().counters().most_in_flight);
    if (!why.empty()) {
        fail(room, why);
    }
}

void Server::look_at_spine(Room &room)
{
    if (const std::string why = room.look_at_spine(); !why.empty()) {
        fail(room, why);
    }
}

// ---- who goes ----

void Server::on_lost(Connection connection, const std::string &why)
{
    if (const auto spine = spines_.find(connection); spine != spines_.end()) {
        Room &room = *spine->second;
        room.spine()->on_lost(why);
        spines_.erase(spine);
        spines_[room.spine()->connection()] = &room;
        look_at_spine(room);
        return;
    }
    const auto found = workers_.find(connection);
    Room *const room = found->second.room;
    workers_.erase(found);
    if (room != nullptr) {
        leave(*room, connection, why);
    }
}

// A worker that leaves while nothing is on its way is done with the communicator; a part that
// another worker sends after that ends the group. One that does not read lacks a sum that the
// others have. One that leaves before all have joined may come back.
void Server::leave(Room &room, Connection connection, const std::string &why)
{
    Group &group = room.group();
    const bool waited_for = room.is_ready() ? group.is_busy() : group.complete();
    const bool lacks_sum = room.is_ready() && why.find(kDoesNotRead) != std::string::npos;
    group.remove(connection, why);
    if (waited_for || lacks_sum) {
        fail(room, group.gone());
    } else if (group.member_count() == 0) {
        remove(room);
    }
}

void Server::refuse(Connection connection, const std::string &why)
{
    Worker &worker = workers_.at(connection);
    ++counters_.refused;
    worker.stage = Worker::Stage::kRefused;
    worker.room = nullptr;
    worker.deadline = now_ + kReadSeconds;
    send(connection, Refused{why});
}

// All workers of the group hear why; the server goes on.
void Server::fail(Room &room, const std::string &why)
{
    ++counters_.groups_failed;
    log_(room.name() + ": " + why);
    for (const Connection member : room.group().members()) {
        refuse(member, why);
    }
    remove(room);
}

void Server::remove(Room &room)
{
    counters_.memory_bytes -= room.reserved_bytes;
    if (room.spine() != nullptr) {
        spines_.erase(room.spine()->connection());
    }
    const Member &shape = room.group().shape();
    rooms_.erase(
        {std::string(room.key()), shape.job, shape.comm, shape.first, shape.count, shape.ranks});
}

void Server::look_at_clock()
{
    std::vector<Connection> late;
    for (const auto &[connection, worker] : workers_) {
        if (worker.room == nullptr && now_ > worker.deadline) {
            late.push_back(connection);
        }
    }
    for (const Connection connection : late) {
        wire_.close(connection);
        workers_.erase(connection);
    }
    const bool tells = now_ - told_ >= kAliveSeconds;
    told_ = tells ? now_ : told_;
    std::vector<Room *> failed;
    for (const auto &[key, room] : rooms_) {
        if (room->is_late(now_)) {
            failed.push_back(room.get());
        } else if (tells && room->is_ready()) {
            for (const Connection worker : room->group().waiting()) {
                if (wire_.waiting(worker) == 0) {
                    send(worker, Alive{});
                }
            }
        }
    }
    for (Room *const room : failed) {
        fail(*room, "not all ranks have joined in time");
    }
}

} // namespace hetcoll
