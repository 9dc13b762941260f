#include "aggregator/endpoint.h"

#include "base/own_user.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace hetcoll {
namespace {

constexpr std::size_t kLeastKeyBytes = 16, kMostKeyBytes = 4096;

class File {
public:
    explicit File(const std::string &path)
        : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK))
    {
    }
    ~File()
    {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    File(const File &) = delete;
    File &operator=(const File &) = delete;
    [[nodiscard]] int fd() const noexcept { return fd_; }

private:
    int fd_;
};

Status check_key_file(const std::string &path, const struct stat &info)
{
    if (!S_ISREG(info.st_mode)) {
        return error(Errc::kInvalid, "key file %s is not a regular file: name one that is",
                     path.c_str());
    }
    if (!is_own_user(info.st_uid) && info.st_uid != 0) {
        return error(Errc::kInvalid,
                     "key file %s belongs to user %u, who could change it: make a copy of your own",
                     path.c_str(), static_cast<unsigned>(info.st_uid));
    }
    if ((info.st_mode & 077) != 0) {
        return error(Errc::kInvalid,
                     "key file %s has mode %04o, so others may know the key: make a new key and "
                     "chmod 600 its file",
                     path.c_str(), static_cast<unsigned>(info.st_mode & 07777));
    }
    return {};
}

} // namespace

std::string Endpoint::text() const
{
    const bool ipv6 = host.find(':') != std::string::npos;
    return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t least_port)
{
    const std::string shown(text.substr(0, 200));
    const auto wrong = [&](const char *why) {
        return error(Errc::kInvalid, "aggregator '%s' %s: write host:port or [IPv6 address]:port",
                     shown.c_str(), why);
    };
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos) {
        return wrong("has no port");
    }
    std::string_view host = text.substr(0, colon);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        return wrong("has several colons");
    }
    if (host.empty() || host.find_first_of(" \t[]/") != std::string_view::npos) {
        return wrong("has no host");
    }
    const std::string_view digits = text.substr(colon + 1);
    unsigned port = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (code != std::errc() || end != digits.data() + digits.size() || port < least_port ||
        port > 65535) {
        return wrong("has no port from 1 to 65535");
    }
    return Endpoint{std::string(host), static_cast<std::uint16_t>(port)};
}

Result<std::vector<Endpoint>> parse_endpoints(std::string_view text)
{
    std::vector<Endpoint> all;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        Result<Endpoint> one = parse_endpoint(text.substr(begin, comma - begin));
        if (!one.ok()) {
            return one.take_status();
        }
        all.push_back(std::move(*one));
        begin = comma + 1;
    }
    return all;
}

Result<std::string> read_key_file(const std::string &path)
{
    const File file(path);
    struct stat info;
    if (file.fd() < 0 || fstat(file.fd(), &info) != 0) {
        return error(
            Errc::kInvalid,
            "key file %s cannot be read: %s: make one with: umask 077; openssl rand -hex 32",
            path.c_str(), std::strerror(errno));
    }
    if (Status status = check_key_file(path, info); !status.ok()) {
        return status;
    }
    std::string key(kMostKeyBytes + 1, '\0');
    const ssize_t length = read(file.fd(), key.data(), key.size());
    if (length < 0) {
        return error(Errc::kInvalid, "key file %s cannot be read: %s", path.c_str(),
                     std::strerror(errno));
    }
    key.resize(static_cast<std::size_t>(length));
    while (!key.empty() && std::strchr(" \t\r\n", key.back()) != nullptr) {
        key.pop_back();
    }
    if (key.size() < kLeastKeyBytes || key.size() > kMostKeyBytes) {
        return error(
            Errc::kInvalid,
            "key file %s holds %zu bytes, a key has %zu to %zu: make one with: openssl rand "
            "-hex 32",
            path.c_str(), key.size(), kLeastKeyBytes, kMostKeyBytes);
    }
    return key;
}

// A file whose name looks like NAME:FILE can be written ./NAME:FILE.
Result<AggregatorKey> read_key(const std::string &text)
{
    constexpr std::size_t kMostNameBytes = 64;
    constexpr const char *kAllowed =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const std::size_t colon = text.find(':');
    const bool named = colon != std::string::npos && colon >= 1 && colon <= kMostNameBytes &&
                       text.find_first_not_of(kAllowed) == colon;
    Result<std::string> secret = read_key_file(named ? text.substr(colon + 1) : text);
    if (!secret.ok()) {
        return secret.take_status();
    }
    return AggregatorKey{named ? text.substr(0, colon) : kDefaultKeyName, std::move(*secret)};
}

} // namespace hetcoll
