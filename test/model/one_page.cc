// transport/shared_page.h for ranks that are threads of one process: a page is ordinary memory, at
// the same address for all, because the explorer wants one address for one thing. Pages are never
// freed.
#include "transport/shared_page.h"

#include <cstring>
#include <map>
#include <new>

namespace hetcoll {
namespace {

std::map<std::uint64_t, void *> &pages()
{
    static std::map<std::uint64_t, void *> all;
    return all;
}

} // namespace

SharedPage::~SharedPage() { data_ = nullptr; } // the page stays

Result<SharedPage> SharedPage::create(const ProcessIdentity &self, std::size_t bytes, const char *)
{
    SharedPage page;
    page.data_ = ::operator new (bytes, std::align_val_t{kAlignment});
    std::memset(page.data_, 0, bytes);
    page.ticket_ = {.owner = self, .bytes = bytes, .nonce = pages().size(), .fd = 0, .reserved = 0};
    pages()[page.ticket_.nonce] = page.data_;
    return page;
}

Result<SharedPage> SharedPage::attach(const SharedPageTicket &ticket)
{
    SharedPage page;
    page.data_ = pages().at(ticket.nonce);
    page.ticket_ = ticket;
    return page;
}

void SharedPage::seal() noexcept {}

void SharedPage::swap(SharedPage &other) noexcept
{
    std::swap(data_, other.data_);
    std::swap(ticket_, other.ticket_);
    std::swap(file_, other.file_);
}

} // namespace hetcoll
