// libhetcoll_wsp over real messages: how stale weights get under random delays, that distance 0 and
// deterministic runs have the bits they promise, flushes, and what wrong calls answer.
// wsp host|device|device_fails|no_threads|no_device|forget|killed
#include "include/hetcoll_types.h"
#include "include/hetcoll_wsp.h"
#include "test/mpi/check.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace hetcoll::test {
namespace {

// Weights and update of one rank, and a handle on them.
class Model {
public:
    Model(Program &program, Memory memory, const std::vector<double> &initial,
          const hetcoll_wsp_options &options)
        : program_(program), count_(initial.size()), weights_(make(memory)), update_(make(memory))
    {
        program_.require(weights_.write(0, initial.data(), bytes()));
        const int code = hetcoll_wsp_create(MPI_COMM_WORLD, weights_.data(), count_,
                                            HETCOLL_WSP_DOUBLE, &options, &wsp_);
        succeeded(code, "create");
    }
    ~Model() { succeeded(hetcoll_wsp_free(&wsp_), "free"); }
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;

    void step(const std::vector<double> &update)
    {
        program_.require(update_.write(0, update.data(), bytes()));
        succeeded(hetcoll_wsp_step(wsp_, update_.data()), "step");
    }
    void flush() { succeeded(hetcoll_wsp_flush(wsp_), "flush"); }
    [[nodiscard]] std::vector<double> weights() const
    {
        std::vector<double> values(count_);
        program_.require(weights_.read(0, values.data(), bytes()));
        return values;
    }
    [[nodiscard]] hetcoll_wsp_statistics statistics() const
    {
        hetcoll_wsp_statistics all{};
        succeeded(hetcoll_wsp_get_statistics(wsp_, &all), "statistics");
        return all;
    }
    [[nodiscard]] hetcoll_wsp *handle() const { return wsp_; }

private:
    Buffer make(Memory memory)
    {
        auto made =
            Buffer::allocate(memory == Memory::kHost ? nullptr : &program_.gpu(), memory, bytes());
        program_.require(made.status());
        return std::move(*made);
    }
    [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(double); }
    void succeeded(int code, const char *what) const
    {
        program_.check(code == HETCOLL_WSP_SUCCESS, "%s failed: %s", what,
                       hetcoll_wsp_error_message());
    }

    Program &program_;
    std::size_t count_;
    Buffer weights_, update_;
    hetcoll_wsp *wsp_ = nullptr;
};

hetcoll_wsp_options rules(int distance, int steps_per_wave, int in_flight = 1,
                          bool deterministic = false)
{
    hetcoll_wsp_options options = HETCOLL_WSP_OPTIONS;
    options.distance = distance;
    options.steps_per_wave = steps_per_wave;
    options.in_flight = in_flight;
    options.deterministic = deterministic ? 1 : 0;
    options.progress_us = 200;
    return options;
}

void random_delay(std::mt19937 &random)
{
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4 == 0 ? random() % 2000 : 0));
}

// Rank r adds 1 to element r in every step, so weights tell whose steps they have. The program
// keeps `in_flight` steps under way, as a pipeline does.
void staleness(Program &program, Memory memory, int in_flight, int distance, bool deterministic)
{
    const int waves = distance + 6, steps = waves * in_flight, ranks = program.ranks();
    const auto bound = static_cast<std::uint64_t>((distance + 1) * in_flight + (in_flight - 1) - 1);
    std::mt19937 random(static_cast<unsigned>(1000 * program.rank() + 10 * in_flight + distance));
    Model model(program, memory, std::vector<double>(static_cast<std::size_t>(ranks)),
                rules(distance, in_flight, in_flight, deterministic));
    std::vector<double> update(static_cast<std::size_t>(ranks));
    update[program.rank()] = 1;
    std::uint64_t worst = 0, own_worst = 0;
    const auto begin = [&](int step) { // from 1 on
        const std::vector<double> weights = model.weights();
        for (int rank = 0; rank < ranks; ++rank) {
            const auto lacking = static_cast<std::uint64_t>(std::max(0., step - 1 - weights[rank]));
            std::uint64_t &most = rank == program.rank() ? own_worst : worst;
            most = std::max(most, lacking);
        }
    };
    for (int step = 1; step <= in_flight; ++step) {
        begin(step);
    }
    for (int ended = 1; ended <= steps; ++ended) {
        random_delay(random);
        model.step(update);
        if (ended + in_flight <= steps) {
            begin(ended + in_flight);
        }
    }
    const hetcoll_wsp_statistics seen = model.statistics();
    program.check(worst <= bound && own_worst <= static_cast<std::uint64_t>(in_flight - 1),
                  "%d in flight, distance %d: weights lacked %llu steps, the bound is %llu",
                  in_flight, distance, static_cast<unsigned long long>(worst),
                  static_cast<unsigned long long>(bound));
    program.check(seen.staleness_bound == bound && worst <= seen.max_staleness &&
                      seen.max_staleness <= bound,
                  "%d in flight, distance %d: statistics say %llu of %llu, weights lacked %llu",
                  in_flight, distance, static_cast<unsigned long long>(seen.max_staleness),
                  static_cast<unsigned long long>(seen.staleness_bound),
                  static_cast<unsigned long long>(worst));
    program.check(!deterministic || seen.max_staleness == bound || ranks == 1,
                  "%d in flight, distance %d: deterministic, but at most %llu steps were lacking",
                  in_flight, distance, static_cast<unsigned long long>(seen.max_staleness));
    program.check(seen.max_lead <= static_cast<std::uint64_t>(distance), "lead %llu, distance %d",
                  static_cast<unsigned long long>(seen.max_lead), distance);
    model.flush();
    const std::vector<double> all(static_cast<std::size_t>(ranks), steps);
    program.check(model.weights() == all, "%d in flight, distance %d: wrong weights after flush",
                  in_flight, distance);
}

std::vector<double> noise(std::size_t count, unsigned seed)
{
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> number(-1, 1);
    std::vector<double> values(count);
    std::generate(values.begin(), values.end(), [&] { return number(random); });
    return values;
}

// Distance 0 against the program that people write with MPI_Allreduce.
void same_bits_as_allreduce(Program &program, Memory memory, std::size_t count, int steps_per_wave)
{
    std::vector<double> expected = noise(count, 1), sum(count), total(count);
    Model model(program, memory, expected, rules(0, steps_per_wave));
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    auto made = Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(), memory,
                                 count * sizeof(double));
    program.require(made.status());
    const Buffer buffer = std::move(*made);
    for (unsigned wave = 0; wave < 5; ++wave) {
        std::fill(sum.begin(), sum.end(), 0);
        for (int i = 0; i < steps_per_wave; ++i) {
            const std::vector<double> update =
                noise(count, 100 * wave + 10 * static_cast<unsigned>(program.rank()) +
                                 static_cast<unsigned>(i));
            for (std::size_t k = 0; k < count; ++k) {
                sum[k] = i == 0 ? update[k] : sum[k] + update[k];
            }
            model.step(update);
        }
        program.require(buffer.write(0, sum.data(), count * sizeof(double)));
        MPI_Allreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                      comm);
        program.require(buffer.read(0, total.data(), count * sizeof(double)));
        for (std::size_t k = 0; k < count; ++k) {
            expected[k] += total[k];
        }
        program.check(model.weights() == expected, "distance 0, wave %u: not MPI_Allreduce's bits",
                      wave);
    }
    MPI_Comm_free(&comm);
}

// The weights after every step of a deterministic run, and after its flush.
std::vector<double> deterministic_run(Program &program, Memory memory, unsigned delays)
{
    constexpr std::size_t kCount = 1001;
    std::mt19937 random(delays + static_cast<unsigned>(program.rank()));
    Model model(program, memory, noise(kCount, 2), rules(3, 2, 1, true));
    std::vector<double> path;
    const auto note = [&] {
        const std::vector<double> now = model.weights();
        path.insert(path.end(), now.begin(), now.end());
    };
    for (unsigned step = 0; step < 20; ++step) {
        random_delay(random);
        model.step(noise(kCount, 1000 * step + static_cast<unsigned>(program.rank())));
        note();
    }
    model.flush();
    note();
    return path;
}

// All ranks hold the same bits, and ranks may end a distance apart.
void flushes(Program &program, Memory memory)
{
    constexpr std::size_t kCount = 513;
    const int distance = 2, rank = program.rank();
    Model model(program, memory, noise(kCount, 3 + static_cast<unsigned>(rank)), // rank 0's counts
                rules(distance, 3));
    for (int round = 0; round < 3; ++round) {
        const int steps = 10 + (rank == 0 ? 0 : round); // a short wave, and another number of them
        for (int step = 0; step < steps; ++step) {
            model.step(noise(kCount, static_cast<unsigned>(1000 * round + 10 * step + rank)));
        }
        model.flush();
        const std::vector<double> mine = model.weights();
        std::vector<double> first = mine;
        MPI_Bcast(first.data(), static_cast<int>(kCount), MPI_DOUBLE, 0, MPI_COMM_WORLD);
        program.check(std::memcmp(first.data(), mine.data(), kCount * sizeof(double)) == 0,
                      "round %d: not rank 0's weights after a flush", round);
    }
    const hetcoll_wsp_statistics mine = model.statistics();
    std::vector<hetcoll_wsp_statistics> all(static_cast<std::size_t>(program.ranks()));
    const int code = hetcoll_wsp_get_rank_statistics(model.handle(), all.data());
    program.check(code == HETCOLL_WSP_SUCCESS && all[rank].steps == mine.steps &&
                      all[0].steps == 30 && mine.waves == mine.waves_applied,
                  "statistics of the ranks are wrong");
}

// Rank 0 ends a wave only when the others have told it that they ended two.
void leads(Program &program)
{
    const int distance = 2, ranks = program.ranks();
    std::vector<double> update(100, 1);
    Model model(program, Memory::kHost, update, rules(distance, 1));
    const auto step = [&] { model.step(update); };
    if (program.rank() == 0) {
        for (int rank = 1; rank < ranks; ++rank) {
            MPI_Recv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    step();
    step();
    if (program.rank() > 0) {
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        program.check(model.statistics().max_lead == 1, "ahead of rank 0 by %llu waves, not by 1",
                      static_cast<unsigned long long>(model.statistics().max_lead));
    }
    step();
    model.flush();
    program.check(model.weights() == std::vector<double>(100, 1 + 3. * ranks), "wrong weights");
}

template <class T>
void exact_sum(Program &program, hetcoll_wsp_type type, const std::vector<T> &numbers)
{
    // numbers[i] is i: rank r adds r + 1 twice.
    const int ranks = program.ranks();
    std::vector<T> weights(7, numbers[1]), update(7, numbers[program.rank() + 1]);
    hetcoll_wsp *wsp = nullptr;
    const hetcoll_wsp_options options = rules(1, 1);
    int code =
        hetcoll_wsp_create(MPI_COMM_WORLD, weights.data(), weights.size(), type, &options, &wsp);
    for (int i = 0; i < 2 && code == HETCOLL_WSP_SUCCESS; ++i) {
        code = hetcoll_wsp_step(wsp, update.data());
    }
    program.check(code == HETCOLL_WSP_SUCCESS && hetcoll_wsp_free(&wsp) == HETCOLL_WSP_SUCCESS,
                  "type %d: %s", static_cast<int>(type), hetcoll_wsp_error_message());
    program.check(weights == std::vector<T>(7, numbers[1 + ranks * (ranks + 1)]),
                  "type %d: wrong sum", static_cast<int>(type));
}

void every_type(Program &program)
{
    const std::size_t most = 2 + static_cast<std::size_t>(program.ranks() * (program.ranks() + 1));
    std::vector<float> floats(most);
    std::vector<double> doubles(most);
    std::vector<std::uint16_t> halves(most), bfloats(most);
    for (std::size_t i = 0; i < most; ++i) {
        floats[i] = static_cast<float>(i);
        doubles[i] = static_cast<double>(i);
        halves[i] = hetcoll_types_narrow_float16_(floats[i]);
        bfloats[i] = hetcoll_types_narrow_bfloat16_(floats[i]);
    }
    exact_sum(program, HETCOLL_WSP_FLOAT, floats);
    exact_sum(program, HETCOLL_WSP_DOUBLE, doubles);
    exact_sum(program, HETCOLL_WSP_FLOAT16, halves);
    exact_sum(program, HETCOLL_WSP_BFLOAT16, bfloats);
}

void fails(Program &program, int code, int wanted, const char *words)
{
    const std::string message = hetcoll_wsp_error_message();
    program.check(code == wanted && message.find(words) != std::string::npos,
                  "code %d and '%s', wanted %d and '%s'", code, message.c_str(), wanted, words);
}

void wrong_calls(Program &program)
{
    std::vector<float> weights(10);
    const auto create = [&](hetcoll_wsp_options options, hetcoll_wsp **wsp) {
        return hetcoll_wsp_create(MPI_COMM_WORLD, weights.data(), weights.size(), HETCOLL_WSP_FLOAT,
                                  &options, wsp);
    };
    hetcoll_wsp *wsp = nullptr;
    hetcoll_wsp_options options = HETCOLL_WSP_OPTIONS;
    options.distance = -1;
    fails(program, create(options, &wsp), HETCOLL_WSP_ERR_ARGUMENT, "distance is -1");
    options = HETCOLL_WSP_OPTIONS;
    options.steps_per_wave = 0;
    fails(program, create(options, &wsp), HETCOLL_WSP_ERR_ARGUMENT, "steps_per_wave is 0");
    fails(program,
          hetcoll_wsp_create(MPI_COMM_WORLD, weights.data(), 0, HETCOLL_WSP_FLOAT, nullptr, &wsp),
          HETCOLL_WSP_ERR_ARGUMENT, "0 elements");
    fails(program,
          hetcoll_wsp_create(MPI_COMM_WORLD, weights.data(), 10, static_cast<hetcoll_wsp_type>(9),
                             nullptr, &wsp),
          HETCOLL_WSP_ERR_ARGUMENT, "type is 9");
    fails(program,
          hetcoll_wsp_create(MPI_COMM_NULL, weights.data(), 10, HETCOLL_WSP_FLOAT, nullptr, &wsp),
          HETCOLL_WSP_ERR_ARGUMENT, "MPI_COMM_NULL");
    if (program.ranks() > 1) {
        MPI_Comm half = MPI_COMM_NULL, both = MPI_COMM_NULL;
        const int side = program.rank() % 2;
        MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 0, &both);
        fails(program,
              hetcoll_wsp_create(both, weights.data(), 10, HETCOLL_WSP_FLOAT, nullptr, &wsp),
              HETCOLL_WSP_ERR_ARGUMENT, "inter-communicator");
        MPI_Comm_free(&both);
        MPI_Comm_free(&half);
    }
    fails(program, create(HETCOLL_WSP_OPTIONS, nullptr), HETCOLL_WSP_ERR_ARGUMENT, "null pointer");
    fails(program, hetcoll_wsp_step(nullptr, weights.data()), HETCOLL_WSP_ERR_ARGUMENT,
          "hetcoll_wsp_step: wsp is a null pointer");
    program.check(hetcoll_wsp_free(&wsp) == HETCOLL_WSP_SUCCESS, "freeing nothing fails");
    program.check(std::string(hetcoll_wsp_error_string(HETCOLL_WSP_ERR_DEVICE)) ==
                      "a CUDA driver call failed",
                  "no words for a code");
    if (program.ranks() > 1) { // all ranks hear of it
        options = HETCOLL_WSP_OPTIONS;
        options.distance = program.rank() == 1 ? 3 : 2;
        fails(program, create(options, &wsp), HETCOLL_WSP_ERR_MPI,
              "differ in distance: from 2 to 3");
        float *const pointer = program.rank() == 1 ? nullptr : weights.data();
        const int code =
            hetcoll_wsp_create(MPI_COMM_WORLD, pointer, 10, HETCOLL_WSP_FLOAT, nullptr, &wsp);
        fails(program, code, program.rank() == 1 ? HETCOLL_WSP_ERR_ARGUMENT : HETCOLL_WSP_ERR_MPI,
              program.rank() == 1 ? "weights are 10 elements" : "rank 1 failed");
    }
    program.check(wsp == nullptr, "a handle in spite of an error");
}

void everything(Program &program, Memory memory)
{
    for (int in_flight = 1; in_flight <= 4; ++in_flight) {
        for (int distance = 0; distance <= 8; ++distance) {
            staleness(program, memory, in_flight, distance, false);
        }
        staleness(program, memory, in_flight, in_flight, true);
    }
    for (const std::size_t count : {1, 1000, 20011}) {
        same_bits_as_allreduce(program, memory, count, 1);
        same_bits_as_allreduce(program, memory, count, 3);
    }
    program.check(deterministic_run(program, memory, 1) == deterministic_run(program, memory, 77),
                  "two deterministic runs with other delays differ");
    flushes(program, memory);
}

// A program that ends without freeing its handle: MPI_Finalize stops the thread.
void forget(Program &program)
{
    static std::vector<float> weights(1000), update(1000);
    static hetcoll_wsp *wsp = nullptr; // still known at the end: no leak
    const hetcoll_wsp_options options = rules(2, 1);
    int code = hetcoll_wsp_create(MPI_COMM_WORLD, weights.data(), weights.size(), HETCOLL_WSP_FLOAT,
                                  &options, &wsp);
    for (int i = 0; i < 3; ++i) {
        code = code == HETCOLL_WSP_SUCCESS ? hetcoll_wsp_step(wsp, update.data()) : code;
    }
    program.check(code == HETCOLL_WSP_SUCCESS, "%s", hetcoll_wsp_error_message());
}

// The job ends: nobody hangs waiting for the waves of a rank that is gone.
void rank_is_killed(Program &program)
{
    std::vector<float> weights(1000), update(1000);
    hetcoll_wsp *wsp = nullptr;
    const hetcoll_wsp_options options = rules(2, 1);
    int code = hetcoll_wsp_create(MPI_COMM_WORLD, weights.data(), weights.size(), HETCOLL_WSP_FLOAT,
                                  &options, &wsp);
    for (int i = 0; code == HETCOLL_WSP_SUCCESS; ++i) {
        if (program.rank() == 1 && i == 20) {
            std::raise(SIGKILL);
        }
        code = hetcoll_wsp_step(wsp, update.data());
    }
    program.check(false, "a step without the rank that was killed: %s",
                  hetcoll_wsp_error_message());
}

void no_threads(Program &program)
{
    hetcoll_wsp *wsp = nullptr;
    float weight = 0, update = 1;
    hetcoll_wsp_options options = rules(1, 1);
    fails(program,
          hetcoll_wsp_create(MPI_COMM_WORLD, &weight, 1, HETCOLL_WSP_FLOAT, &options, &wsp),
          HETCOLL_WSP_ERR_UNSUPPORTED, "MPI_THREAD_MULTIPLE");
    options.progress_us = 0; // the program's own calls will do
    int code = hetcoll_wsp_create(MPI_COMM_WORLD, &weight, 1, HETCOLL_WSP_FLOAT, &options, &wsp);
    for (int i = 0; i < 10 && code == HETCOLL_WSP_SUCCESS; ++i) {
        code = hetcoll_wsp_step(wsp, &update);
        hetcoll_wsp_progress(wsp);
    }
    program.check(code == HETCOLL_WSP_SUCCESS && hetcoll_wsp_free(&wsp) == HETCOLL_WSP_SUCCESS,
                  "without a thread: %s", hetcoll_wsp_error_message());
    program.check(weight == 10 * static_cast<float>(program.ranks()), "weight is %g", weight);
}

// Nobody in this job takes device memory.
void no_device(Program &program)
{
    auto made = Buffer::allocate(&program.gpu(), Memory::kDevice, 400);
    program.require(made.status());
    hetcoll_wsp *wsp = nullptr;
    fails(program,
          hetcoll_wsp_create(MPI_COMM_WORLD, made->data(), 100, HETCOLL_WSP_FLOAT, nullptr, &wsp),
          HETCOLL_WSP_ERR_UNSUPPORTED, "mpirun --mca coll hetcoll");
}

// A driver call fails in a step of rank 0, whose handle is then good for free only.
void driver_fails(Program &program)
{
    const Emulated emulated;
    auto weights = Buffer::allocate(&program.gpu(), Memory::kDevice, 40000);
    auto update = Buffer::allocate(&program.gpu(), Memory::kDevice, 40000);
    program.require(weights.status());
    program.require(update.status());
    hetcoll_wsp *wsp = nullptr;
    const hetcoll_wsp_options options = rules(1, 8);
    int code = hetcoll_wsp_create(MPI_COMM_WORLD, weights->data(), 10000, HETCOLL_WSP_FLOAT,
                                  &options, &wsp);
    program.check(code == HETCOLL_WSP_SUCCESS, "%s", hetcoll_wsp_error_message());
    emulated.set_faults("cuLaunchKernel:1:701");
    fails(program, hetcoll_wsp_step(wsp, update->data()), HETCOLL_WSP_ERR_DEVICE, "cuLaunchKernel");
    emulated.set_faults(nullptr);
    fails(program, hetcoll_wsp_step(wsp, update->data()), HETCOLL_WSP_ERR_ARGUMENT, "earlier call");
    code = hetcoll_wsp_free(&wsp);
    program.check(code == HETCOLL_WSP_SUCCESS && wsp == nullptr, "free after a failure: %s",
                  hetcoll_wsp_error_message());
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    const std::string what = argc > 1 ? argv[1] : "host";
    Program program(argc, argv, "wsp",
                    what == "no_threads" ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE);
    if (what == "host") {
        everything(program, hetcoll::Memory::kHost);
        every_type(program);
        leads(program);
        wrong_calls(program);
    } else if (what == "device") {
        everything(program, hetcoll::Memory::kDevice);
        program.check(program.counters().read()[HETCOLL_CALLS_STAGED] == 0,
                      "a sum was reduced on the host");
        flushes(program, program.rank() == 0 ? hetcoll::Memory::kHost : hetcoll::Memory::kDevice);
    } else if (what == "device_fails") {
        driver_fails(program);
    } else if (what == "no_threads") {
        no_threads(program);
    } else if (what == "no_device") {
        no_device(program);
    } else if (what == "killed") {
        rank_is_killed(program);
    } else {
        forget(program);
    }
    return program.finish();
}
