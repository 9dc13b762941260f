// Vectors by RDMA, where both sides have it.
#include "aggregator/tcp_connections.h"

#if HETCOLL_WITH_OPENSSL

#include "aggregator/frame.h"

#include <utility>

namespace hetcoll {

namespace {

Outgoing no_rdma() { return Outgoing(encode(RdmaOffer{}), {}, nullptr, Outgoing::What::kOffer); }

} // namespace

void TcpConnections::ask_for_rdma(TcpConnection &tcp)
{
    if (queue_pairs_ == nullptr) {
        return;
    }
    const Result<RdmaOffer> offer = queue_pairs_->add(tcp.id);
    if (!offer.ok()) {
        note_ = "no RDMA, vectors go over TLS: " + offer.status().message();
        return;
    }
    tcp.by = TcpConnection::PayloadPath::kAsked;
    push(tcp, Outgoing(encode(*offer), {}, nullptr, Outgoing::What::kOffer));
}

void TcpConnections::on_offer(TcpConnection &tcp, std::span<const std::byte> header)
{
    const std::optional<RdmaOffer> offer = decode_offer(header);
    const bool refuses = offer && offer->address.kind.empty();
    if (offer && !refuses && tcp.may_ask) {
        tcp.may_ask = false;
        answer(tcp, *offer);
    } else if (refuses && tcp.by != TcpConnection::PayloadPath::kTls) {
        go_by_tls(tcp, tcp.by == TcpConnection::PayloadPath::kAsked
                           ? "the aggregator offers no fitting device: start it with --rdma"
                           : "a rank cannot reach this device");
    } else if (offer && !refuses && tcp.by == TcpConnection::PayloadPath::kAsked) {
        if (Status connected = queue_pairs_->connect(tcp.id, *offer); connected.ok()) {
            tcp.by = TcpConnection::PayloadPath::kRdma;
        } else {
            push(tcp, no_rdma());
            go_by_tls(tcp, connected.message());
        }
    } else {
        lose(tcp, "it has sent an offer of RDMA that is none, or out of turn");
    }
}

// Vectors go this way when the first one has come this way: the other side is connected then.
void TcpConnections::answer(TcpConnection &tcp, const RdmaOffer &offer)
{
    if (queue_pairs_ == nullptr) {
        push(tcp, no_rdma());
        return;
    }
    Result<RdmaOffer> own = queue_pairs_->add(tcp.id);
    Status status = own.ok() ? queue_pairs_->connect(tcp.id, offer) : own.take_status();
    if (!status.ok()) {
        push(tcp, no_rdma());
        go_by_tls(tcp, status.message());
        return;
    }
    tcp.by = TcpConnection::PayloadPath::kRdma;
    queue_pairs_->allow_payload(tcp.id, tcp.most_payload);
    push(tcp, Outgoing(encode(*own), {}, nullptr, Outgoing::What::kOffer));
}

void TcpConnections::go_by_tls(TcpConnection &tcp, const std::string &why)
{
    note_ = "no RDMA, vectors go over TLS: " + why;
    tcp.by = TcpConnection::PayloadPath::kTls;
    for (const Outgoing &message : queue_pairs_->remove(tcp.id)) {
        push(tcp, message);
    }
}

bool TcpConnections::progress_queue_pairs(WireEvents &events)
{
    std::vector<RdmaQueuePairs::Arrived> arrived;
    std::vector<RdmaQueuePairs::Lost> lost;
    const bool moved = queue_pairs_->progress(arrived, lost);
    for (RdmaQueuePairs::Arrived &one : arrived) {
        if (const TcpConnection *const tcp = find(one.connection); tcp != nullptr && !tcp->lost) {
            events.on_message(one.connection, one.message.header(),
                              one.message.take_payload(*this));
        }
    }
    for (RdmaQueuePairs::Lost &one : lost) {
        if (TcpConnection *const tcp = find(one.connection); tcp != nullptr) {
            lose(*tcp, std::move(one.why));
        }
    }
    return moved;
}

} // namespace hetcoll

#endif
