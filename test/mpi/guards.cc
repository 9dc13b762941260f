// R1: what a datatype does not name is the program's. Bytes between the elements of types with
// holes, and the padding of pairs, keep what they hold in every collective, on host and device
// memory; what the program, or another of its threads, writes there while a call is under way is
// there afterwards. The argument chooses the test.
#include "test/mpi/collective_calls.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

namespace hetcoll::test {
namespace {

constexpr std::ptrdiff_t kEdge = 256; // on both sides of a buffer: types begin before its address

using Image = std::vector<char>;

struct Type {
    std::string name;
    MPI_Datatype type;
    MPI_Op op = MPI_OP_NULL; // null: or_data()
    std::vector<int> counts = {1, 5};
    [[nodiscard]] std::ptrdiff_t extent() const
    {
        MPI_Aint lower = 0, extent = 0;
        MPI_Type_get_extent(type, &lower, &extent);
        return extent;
    }
};

// Which bytes `count` elements name, `kEdge` being the buffer's address: those that MPI_Unpack
// writes.
Image mask_of(MPI_Datatype type, int count, std::size_t bytes)
{
    Image mask(bytes, 0);
    int packed_bytes = 0, position = 0;
    MPI_Pack_size(count, type, MPI_COMM_SELF, &packed_bytes);
    const Image packed(static_cast<std::size_t>(packed_bytes), 1);
    MPI_Unpack(packed.data(), packed_bytes, &position, mask.data() + kEdge, count, type,
               MPI_COMM_SELF);
    return mask;
}

// A user-defined operation on any type: the bytes of its elements, or-ed.
std::vector<std::ptrdiff_t> or_bytes; // of one element
std::ptrdiff_t or_extent = 0;
void or_data(void *in, void *inout, int *count, MPI_Datatype *)
{
    for (std::ptrdiff_t i = 0; i < *count; ++i) {
        for (const std::ptrdiff_t at : or_bytes) {
            const char *const from = static_cast<char *>(in) + i * or_extent + at;
            char *const to = static_cast<char *>(inout) + i * or_extent + at;
            *to = static_cast<char>(*to | *from);
        }
    }
}

MPI_Datatype commit(MPI_Datatype type)
{
    MPI_Type_commit(&type);
    return type;
}

MPI_Datatype resized(MPI_Datatype type, MPI_Aint lower, MPI_Aint extent)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_create_resized(type, lower, extent, &made);
    return commit(made);
}

MPI_Datatype column(int rows)
{
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_vector(rows, 1, 2, MPI_INT, &made);
    return commit(made);
}

MPI_Datatype irregular(int blocks)
{
    std::vector<int> lengths, places;
    int at = 0;
    for (int i = 0; i < blocks; ++i) {
        lengths.push_back(1 + i * i % 3);
        places.push_back(at);
        at += lengths.back() + 1 + i * i % 5;
    }
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_indexed(blocks, lengths.data(), places.data(), MPI_SHORT, &made);
    return commit(made);
}

MPI_Datatype structure()
{
    const std::array<int, 3> lengths = {1, 1, 1};
    const std::array<MPI_Aint, 3> places = {0, 9, 12};
    const std::array<MPI_Datatype, 3> types = {MPI_DOUBLE, MPI_CHAR, MPI_INT};
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_create_struct(3, lengths.data(), places.data(), types.data(), &made);
    return resized(made, -8, 32);
}

MPI_Datatype bytes_at(MPI_Datatype type, MPI_Aint place, MPI_Aint extent)
{
    const int one = 1;
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Type_create_hindexed(1, &one, &place, type, &made);
    return resized(made, 0, extent);
}

// With two bytes at 6 or at -6, Open MPI 4.1's own Ireduce of three ranks ends the program.
std::vector<Type> types_with_holes()
{
    return {{"column of 2", column(2)},
            {"column of 513", column(513)},
            {"column of 1000", column(1000), MPI_OP_NULL, {1}},
            {"every second int", resized(MPI_INT, 0, 8), MPI_OP_NULL, {1, 600}},
            {"irregular blocks", irregular(520), MPI_OP_NULL, {1}},
            {"structures from -8", structure(), MPI_OP_NULL, {1, 300}},
            {"a byte at 4", bytes_at(MPI_UNSIGNED_CHAR, 4, 8), MPI_OP_NULL, {1, 600}},
            {"two bytes of ten", resized(MPI_SHORT, 0, 10), MPI_OP_NULL, {1, 600}}};
}

std::vector<Type> pairs()
{
    return {{"MPI_DOUBLE_INT", MPI_DOUBLE_INT, MPI_MAXLOC, {1, 7, 700, 9'000}},
            {"MPI_SHORT_INT", MPI_SHORT_INT, MPI_MINLOC, {1, 7, 1'500, 6'000}},
            {"MPI_LONG_INT", MPI_LONG_INT, MPI_MINLOC, {1, 7, 700, 3'000}}};
}

Image image_of(std::ptrdiff_t bytes, int seed)
{
    Image image(static_cast<std::size_t>(bytes + 2 * kEdge));
    for (std::size_t i = 0; i < image.size(); ++i) {
        image[i] = static_cast<char>((i * 7 + static_cast<std::size_t>(seed) * 31) % 61);
    }
    return image;
}

class Side {
public:
    Side(Program &program, Memory memory, Image image) : program_(program), image_(std::move(image))
    {
        Result<Buffer> made = Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(),
                                               memory, image_.size());
        program.require(made.status());
        buffer_ = std::move(*made);
        fill();
    }
    void fill() const { program_.require(buffer_.write(0, image_.data(), image_.size())); }
    [[nodiscard]] Image image() const
    {
        Image bytes(image_.size());
        program_.require(buffer_.read(0, bytes.data(), bytes.size()));
        return bytes;
    }
    [[nodiscard]] void *pointer() const { return buffer_.data() + kEdge; }
    [[nodiscard]] const Buffer &buffer() const { return buffer_; }

private:
    Program &program_;
    Image image_;
    Buffer buffer_;
};

struct Call {
    const Type &type;
    int count;
    const Collective &collective;
    How how;
    Memory memory;
};

std::string describe(const Call &call)
{
    return std::string(how_name(call.how)) + " " + call.collective.name +
           (call.collective.send_bytes < 0 || call.collective.recv_bytes < 0 ? " in place" : "") +
           " of " + std::to_string(call.count) + " x " + call.type.name + ", " +
           memory_name(call.memory) + " memory";
}

// The bytes that the call leaves in a receive buffer in host memory under Open MPI.
Image expected(Program &p, const Call &call, MPI_Op op, const Image &send, const Image &recv)
{
    const Side in(p, Memory::kHost, send), out(p, Memory::kHost, recv);
    const bool send_in_place = call.collective.send_bytes < 0;
    void *const from = send_in_place ? MPI_IN_PLACE : in.pointer();
    void *const to = call.collective.recv_bytes < 0 ? MPI_IN_PLACE : out.pointer();
    if (std::string_view(call.collective.name) == "Allreduce") {
        MPI_Reduce(send_in_place && p.rank() != 0 ? to : from, to, call.count, call.type.type, op,
                   0, MPI_COMM_WORLD);
        MPI_Bcast(to, call.count, call.type.type, 0, MPI_COMM_WORLD);
    } else {
        static_cast<void>(run(call.collective, How::kBlocking, from, to, 1));
    }
    return out.image();
}

Image image_for(std::ptrdiff_t bytes, int seed) { return image_of(std::max(bytes, {}), seed); }

void check_image(Program &p, const Call &call, Image got, Image want, const char *which)
{
    if (call.collective.result_bytes >= 0) {
        const auto defined = static_cast<std::size_t>(kEdge + call.collective.result_bytes);
        got.resize(defined);
        want.resize(defined);
    }
    const auto differs = std::mismatch(got.begin(), got.end(), want.begin());
    p.check(differs.first == got.end(), "%s: %s byte %td is %d, not %d", describe(call).c_str(),
            which, differs.first - got.begin() - kEdge,
            differs.first == got.end() ? 0 : *differs.first,
            differs.first == got.end() ? 0 : *differs.second);
}

// Every byte of both buffers.
void compare(Program &p, const Call &call, MPI_Op op)
{
    const Image send = image_for(call.collective.send_bytes, p.rank() + 1),
                recv = image_for(call.collective.recv_bytes, p.rank() + 100);
    const Image want = expected(p, call, op, send, recv);
    const Side in(p, call.memory, send), out(p, call.memory, recv);
    void *const from = call.collective.send_bytes < 0 ? MPI_IN_PLACE : in.pointer();
    void *const to = call.collective.recv_bytes < 0 ? MPI_IN_PLACE : out.pointer();
    const int error = run(call.collective, call.how, from, to, 1);
    p.check(error == MPI_SUCCESS, "%s: error %d", describe(call).c_str(), error);
    check_image(p, call, out.image(), want, "receive");
    check_image(p, call, in.image(), send, "send");
}

template <class Body> void for_each_call(Program &p, const std::vector<Type> &types, Body body)
{
    MPI_Op or_op = MPI_OP_NULL;
    MPI_Op_create(or_data, 1, &or_op);
    p.gpu();
    for (const Type &type : types) {
        or_extent = type.extent();
        const Image mask = mask_of(type.type, 1, static_cast<std::size_t>(2 * kEdge + 16'000));
        or_bytes.clear();
        for (std::size_t at = 0; at < mask.size(); ++at) {
            if (mask[at] != 0) {
                or_bytes.push_back(static_cast<std::ptrdiff_t>(at) - kEdge);
            }
        }
        const MPI_Op op = type.op == MPI_OP_NULL ? or_op : type.op;
        for (const int count : type.counts) {
            for (const Collective &collective :
                 calls_of(MPI_COMM_WORLD, count, type.name.c_str(), type.type, or_extent, op)) {
                for (const How how : {How::kBlocking, How::kNonblocking, How::kPersistent}) {
                    for (const Memory memory : {Memory::kHost, Memory::kDevice}) {
                        body(Call{type, count, collective, how, memory}, op);
                    }
                }
            }
        }
    }
    MPI_Op_free(&or_op);
}

// ---- the program writes between the elements while the call is under way ----

// Elements of the receive buffer, one behind the other; 0: they do not lie so, or some rank writes
// none.
int elements_received(const Program &p, const Call &call)
{
    const std::string_view name = call.collective.name;
    if (call.collective.send_bytes < 0 || call.collective.recv_bytes < 0) {
        return 0;
    }
    for (const char *one : {"Bcast", "Scan", "Allreduce", "Reduce_scatter_block", "Scatter"}) {
        if (name == one) {
            return call.count;
        }
    }
    return name == "Allgather" || name == "Alltoall" ? call.count * p.ranks() : 0;
}

// Some of them: writing each takes long.
class Gaps {
public:
    Gaps(Program &p, const Call &call, const Side &side, int elements) : program_(p), side_(side)
    {
        constexpr std::size_t kMost = 16;
        const Image mask = mask_of(call.type.type, elements, side.image().size());
        const auto end = std::find(mask.rbegin(), mask.rend(), 1).base();
        for (auto at = std::find(mask.begin(), end, 1); at < end;) {
            const auto gap = std::find(at, end, 0), stop = std::find(gap, end, 1);
            if (gap < stop) {
                gaps_.push_back({static_cast<std::size_t>(gap - mask.begin()),
                                 static_cast<std::size_t>(stop - gap)});
            }
            at = stop;
        }
        if (gaps_.size() > kMost) {
            gaps_.erase(gaps_.begin() + kMost / 2, gaps_.end() - kMost / 2);
        }
    }
    void write(char value) const
    {
        for (const Gap &gap : gaps_) {
            const Image bytes(gap.bytes, value);
            program_.require(side_.buffer().write(gap.first, bytes.data(), bytes.size()));
        }
    }
    void put(Image &image, char value) const
    {
        for (const Gap &gap : gaps_) {
            std::fill_n(image.begin() + static_cast<std::ptrdiff_t>(gap.first), gap.bytes, value);
        }
    }

private:
    struct Gap {
        std::size_t first, bytes;
    };
    Program &program_;
    const Side &side_;
    std::vector<Gap> gaps_;
};

// The last rank writes when its call has begun; rank 0 begins its own after that.
void disturb(Program &p, const Call &call, MPI_Op op)
{
    constexpr int kTag = 7, kWrites = 5;
    int elements = elements_received(p, call);
    MPI_Allreduce(MPI_IN_PLACE, &elements, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (elements == 0) { // on some rank: a root may be in place
        return;
    }
    const Image send = image_for(call.collective.send_bytes, p.rank() + 1),
                recv = image_for(call.collective.recv_bytes, p.rank() + 100);
    Image want = expected(p, call, op, send, recv);
    const Side in(p, call.memory, send), out(p, call.memory, recv);
    const bool writes = p.rank() == p.ranks() - 1 && p.ranks() > 1;
    const auto wait_for_writer = [&] {
        if (p.rank() == 0 && p.ranks() > 1) {
            MPI_Recv(nullptr, 0, MPI_INT, p.ranks() - 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    };
    const bool is_persistent =
        call.how == How::kPersistent; // made by all ranks together, then started
    if (!is_persistent) {
        wait_for_writer();
    }
    const Gaps gaps(p, call, out, elements);
    char written = 0;
    const auto write_and_tell = [&] {
        written = 100;
        gaps.write(written);
        MPI_Send(nullptr, 0, MPI_INT, 0, kTag, MPI_COMM_WORLD);
    };
    if (call.how == How::kBlocking) {
        std::thread writer;
        if (writes) {
            writer = std::thread([&] {
                p.gpu().driver().cuCtxSetCurrent(p.gpu().context());
                for (int i = 0; i < kWrites; ++i) {
                    gaps.write(static_cast<char>(i));
                }
                write_and_tell();
            });
        }
        static_cast<void>(run(call.collective, call.how, in.pointer(), out.pointer(), 1));
        if (writer.joinable()) {
            writer.join();
        }
    } else {
        MPI_Request request = MPI_REQUEST_NULL;
        call.collective.call(in.pointer(), out.pointer(), call.how, &request);
        if (is_persistent) {
            wait_for_writer();
            MPI_Start(&request);
        }
        if (writes) {
            write_and_tell();
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (request != MPI_REQUEST_NULL) {
            MPI_Request_free(&request);
        }
    }
    if (writes) {
        gaps.put(want, written);
    }
    check_image(p, call, out.image(), want, "receive");
}

} // namespace
} // namespace hetcoll::test

int main(int argc, char **argv)
{
    using namespace hetcoll::test;
    Program program(argc, argv, "guards", MPI_THREAD_MULTIPLE);
    const std::string_view test = argc > 1 ? argv[1] : "holes";
    if (test == "pairs") {
        for_each_call(program, pairs(),
                      [&](const auto &call, MPI_Op op) { compare(program, call, op); });
    } else if (test == "holes") {
        for_each_call(program, types_with_holes(),
                      [&](const auto &call, MPI_Op op) { compare(program, call, op); });
    } else if (test == "disturbed_pairs") {
        for_each_call(program, pairs(),
                      [&](const auto &call, MPI_Op op) { disturb(program, call, op); });
    } else if (program.check(test == "disturbed", "which test?")) {
        for_each_call(program, types_with_holes(),
                      [&](const auto &call, MPI_Op op) { disturb(program, call, op); });
    }
    return program.finish();
}
