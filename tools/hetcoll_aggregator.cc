// hetcoll_aggregator: a reduction server, which adds up what the ranks of MPI jobs send to it
// (docs/aggregators.md).
#include "aggregator/server.h"
#include "aggregator/tcp_wire.h"
#include "measure/command_line.h"
#include "measure/sizes.h"
#include "tools/limited_log.h"
#include "tools/supervise.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace {

constexpr const char *kFooter = R"(
Ranks find it by the parameters of their component:
  mpirun --mca coll_hetcoll_aggregators host:port --mca coll_hetcoll_aggregator_key FILE ...

One aggregator serves all ranks. Or leaves, one in each rack, add up the vectors of their ranks,
and a spine adds up the sums of the leaves:
  spine$ hetcoll_aggregator --listen spine:7470 --key key
  leaf1$ hetcoll_aggregator --listen leaf1:7470 --key key --spine spine:7470
  leaf2$ hetcoll_aggregator --listen leaf2:7470 --key key --spine spine:7470
  mpirun --mca coll_hetcoll_aggregators leaf1:7470,leaf2:7470 ...

Make the key with "umask 077; openssl rand -hex 32 >key", and copy it to all machines, closed to
others. Only ranks with the key are let in, and their messages are encrypted. Tenants that must not
meet get keys of their own, each with a name: --key a:FILE --key b:FILE, and
coll_hetcoll_aggregator_key a:FILE.

It runs in the foreground. With --supervise it starts again when it ends by an error. SIGUSR1
writes a line of statistics (JSON) to stdout. SIGTERM and SIGINT write the line too, and end it
with exit status 0. The status is 1 if it cannot start, and 2 for wrong arguments.)";

constexpr std::size_t kLeastMemory = std::size_t{1} << 20; // less holds no job's messages

struct Arguments {
    std::string listen, spine, rdma;
    std::vector<std::string> keys;
    hetcoll::ServerOptions options;
    std::uint64_t most_memory = 1u << 30;
    int silence_seconds = 30;
    bool supervised = false;
};

// Where its lines go, in its loop too: nobody waits for who reads them.
struct Outputs {
    hetcoll::LineOutput out{STDOUT_FILENO}, log{STDERR_FILENO};
};

void add_options(hetcoll::CommandLine &line, Arguments &to)
{
    line.add_option(
            "--listen", to.listen,
            "the address of this machine to listen at, where workers connect; port 0: a free one, "
            "which the first line on stderr names")
        .type_name("HOST:PORT")
        .required();
    line.add_option("--key", to.keys, "a file with a key, mode 0600; may be given several times")
        .type_name("[NAME:]FILE")
        .one_each()
        .required();
    line.add_option("--spine", to.spine,
                    "be a leaf: serve a part of a job's ranks, and send their sums there")
        .type_name("HOST:PORT");
    line.add_option(
            "--rdma", to.rdma,
            "a device, as UCX calls it (mlx5_0:1), or any: vectors of ranks and leaves that "
            "ask for it go by RDMA, not encrypted")
        .type_name("DEVICE");
    line.add_option("--window", to.options.most_window, "most messages of a communicator in flight")
        .type_name("N")
        .check(hetcoll::whole_number(1, hetcoll::kMostWindow))
        .show_default();
    line.add_option("--max-memory", to.most_memory,
                    "most memory for messages, all jobs together; jobs that need more are refused")
        .type_name("SIZE")
        .check(hetcoll::size(kLeastMemory, hetcoll::kLargestSize))
        .show_default();
    line.add_option("--join-seconds", to.options.group_seconds,
                    "how long the first rank of a communicator waits for the last")
        .type_name("S")
        .check(hetcoll::number(0.1, 86400))
        .show_default();
    line.add_option("--silence-seconds", to.silence_seconds,
                    "drop a peer that has not answered or read anything for this many seconds")
        .type_name("S")
        .check(hetcoll::whole_number(1, 86400))
        .show_default();
    line.add_flag("--supervise", to.supervised, "start again after a crash");
    line.set_footer(kFooter + 1);
}

void write_statistics(const hetcoll::Server &server, const hetcoll::TcpWire &wire, Outputs &outputs)
{
    char line[2048];
    const hetcoll::GuestCounters &guests = wire.guests();
    const hetcoll::ServerCounters &c = server.counters();
    const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
    std::snprintf(
        line, sizeof line,
        "{\"connections\": %llu, \"let_in\": %llu, \"wrong_key\": %llu, \"no_key\": %llu, "
        "\"late\": %llu, \"crowded_out\": %llu, \"no_descriptors\": %llu, \"by_rdma\": %llu, "
        "\"joined\": %llu, \"refused\": %llu, \"malformed\": %llu, \"groups\": %llu, "
        "\"groups_failed\": %llu, \"groups_now\": %zu, "
        "\"parts\": %llu, \"sums\": %llu, \"payload_bytes_in\": %llu, \"payload_bytes_out\": %llu, "
        "\"payload_bytes_up\": %llu, \"payload_bytes_down\": %llu, \"header_bytes_in\": %llu, "
        "\"header_bytes_out\": %llu, \"most_in_flight\": %d, \"memory_bytes\": %llu, "
        "\"most_memory_bytes\": %llu, "
        "\"lines_dropped\": %llu}",
        number(guests.accepted), number(guests.let_in), number(guests.wrong_key),
        number(guests.no_key), number(guests.late), number(guests.crowded_out),
        number(guests.no_descriptors), number(wire.by_rdma()), number(c.joined), number(c.refused),
        number(c.malformed), number(c.groups), number(c.groups_failed), server.group_count(),
        number(c.parts), number(c.sums), number(c.payload_bytes_in), number(c.payload_bytes_out),
        number(c.payload_bytes_up), number(c.payload_bytes_down), number(c.header_bytes_in),
        number(c.header_bytes_out), c.most_in_flight, number(c.memory_bytes),
        number(c.most_memory_bytes), number(outputs.out.dropped() + outputs.log.dropped()));
    outputs.out.write(line);
}

double now()
{
    using Seconds = std::chrono::duration<double>;
    return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The signals come as bytes of a file. They are blocked.
int open_signals()
{
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
        sigaddset(&signals, signal);
    }
    if (sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) {
        return -1;
    }
    return signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
}

// False: it is time to end.
bool look_at_signals(int fd, const hetcoll::Server &server, const hetcoll::TcpWire &wire,
                     Outputs &outputs)
{
    signalfd_siginfo info;
    while (read(fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
        if (info.ssi_signo != SIGUSR1) {
            return false;
        }
        write_statistics(server, wire, outputs);
    }
    return true;
}

void serve(hetcoll::TcpWire &wire, hetcoll::Server &server, int signals, hetcoll::LimitedLog &log,
           Outputs &outputs)
{
    constexpr int kRounds = 64, kWaitMs = 500;
    while (look_at_signals(signals, server, wire, outputs)) {
        bool moved = true;
        for (int i = 0; i < kRounds && moved; ++i) {
            moved = server.progress(now());
        }
        log.tell_of(wire.guests(), now());
        if (const std::string note = wire.take_note(); !note.empty()) {
            log.say(note, now());
        }
        if (!moved) {
            wire.wait(kWaitMs, signals);
        }
    }
}

hetcoll::Status check_endpoints(const Arguments &arguments)
{
    auto listen = hetcoll::parse_endpoint(arguments.listen, 0);
    if (!listen.ok() || arguments.spine.empty()) {
        return listen.ok() ? hetcoll::Status() : listen.take_status();
    }
    auto spine = hetcoll::parse_endpoint(arguments.spine);
    return spine.ok() ? hetcoll::Status() : spine.take_status();
}

hetcoll::Status run(Arguments &arguments, Outputs &outputs)
{
    using namespace hetcoll;
    Result<Endpoint> listen = parse_endpoint(arguments.listen, 0);
    if (!listen.ok()) {
        return listen.take_status();
    }
    if (!arguments.spine.empty()) {
        Result<Endpoint> spine = parse_endpoint(arguments.spine);
        if (!spine.ok()) {
            return spine.take_status();
        }
        arguments.options.spine = *spine;
    }
    arguments.options.most_memory_bytes = arguments.most_memory;
    TcpOptions network{
        .listen = *listen, .silence_seconds = arguments.silence_seconds, .rdma = arguments.rdma};
    for (const std::string &text : arguments.keys) {
        Result<AggregatorKey> key = read_key(text);
        if (!key.ok()) {
            return key.take_status();
        }
        for (const AggregatorKey &other : network.keys) {
            if (other.name == key->name) {
                return error(Errc::kInvalid,
                             "two keys have the name %s: give each one of its own, --key NAME:FILE",
                             key->name.c_str());
            }
        }
        network.keys.push_back(std::move(*key));
    }
    const int signals = open_signals();
    if (signals < 0) {
        return error(Errc::kUnsupported, "signalfd failed: %s, so nobody could end it",
                     std::strerror(errno));
    }
    Result<std::unique_ptr<TcpWire>> wire = open_tcp_wire(network);
    if (!wire.ok()) {
        return wire.take_status();
    }
    static LimitedLog log(outputs.log, "hetcoll_aggregator: ");
    Server server(**wire, arguments.options, [](const std::string &line) { log.say(line, now()); });
    listen->port = (*wire)->port(); // the system may have chosen it
    outputs.log.write("hetcoll_aggregator: listening at " + listen->text() +
                      (arguments.spine.empty() ? "" : ", a leaf of ") + arguments.spine);
    serve(**wire, server, signals, log, outputs);
    write_statistics(server, **wire, outputs);
    if (const int problem = outputs.out.problem(); problem != 0) {
        return error(Errc::kUnsupported, "what it printed is not all on stdout (%s)",
                     std::strerror(problem));
    }
    return {};
}

} // namespace

int main(int argc, char **argv)
{
    hetcoll::CommandLine line(
        "hetcoll_aggregator",
        "Adds up vectors that the ranks of MPI jobs send, and sends the sum to all: a "
        "reduction server for hetcoll.");
    Arguments arguments;
    add_options(line, arguments);
    int exit_code = 0;
    if (!line.parse(argc, argv, exit_code)) {
        return exit_code;
    }
    if (const hetcoll::Status status = check_endpoints(arguments); !status.ok()) {
        return line.usage_error(status.message());
    }
    std::signal(SIGPIPE, SIG_IGN); // else whoever reads the log ends it
    static Outputs outputs;
    (void)prctl(PR_SET_DUMPABLE, 0); // its memory will hold the keys: no core file, no debugger
    const auto serve_once = [](void *context) {
        const hetcoll::Status status = run(*static_cast<Arguments *>(context), outputs);
        if (!status.ok()) {
            outputs.log.write("hetcoll_aggregator: " + status.message());
        }
        return status.ok() ? 0 : 1;
    };
    return arguments.supervised ? hetcoll::supervise(serve_once, &arguments, outputs.log)
                                : serve_once(&arguments);
}
