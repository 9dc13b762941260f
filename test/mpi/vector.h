// A vector of numbers in memory of any kind, filled and read by copies.
#pragma once

#include "test/mpi/check.h"

#include <cstddef>
#include <utility>
#include <vector>

namespace hetcoll::test {

template <class T> class Vector {
public:
    // `before` bytes of the allocation lie before the first element.
    Vector(Program &program, std::size_t count, Memory memory = Memory::kDevice,
           std::size_t before = 0)
        : program_(program), count_(count), before_(before)
    {
        auto made = Buffer::allocate(memory == Memory::kHost ? nullptr : &program.gpu(), memory,
                                     before + count * sizeof(T));
        program.require(made.status());
        buffer_ = std::move(*made);
    }
    Vector(Program &program, const std::vector<T> &values, Memory memory = Memory::kDevice,
           std::size_t before = 0)
        : Vector(program, values.size(), memory, before)
    {
        write(values);
    }

    [[nodiscard]] T *data() const { return reinterpret_cast<T *>(buffer_.data() + before_); }
    void write(const std::vector<T> &values) const
    {
        program_.require(buffer_.write(before_, values.data(), values.size() * sizeof(T)));
    }
    [[nodiscard]] std::vector<T> read() const
    {
        std::vector<T> values(count_);
        program_.require(buffer_.read(before_, values.data(), count_ * sizeof(T)));
        return values;
    }
    // What `value_at` says of each element.
    template <class ValueAt> bool check(ValueAt value_at, const char *what) const
    {
        const std::vector<T> values = read();
        std::size_t wrong = 0, first = 0;
        for (std::size_t i = count_; i > 0; --i) {
            if (values[i - 1] != value_at(i - 1)) {
                ++wrong;
                first = i - 1;
            }
        }
        return program_.check(wrong == 0, "%s: %zu of %zu elements are wrong, the first is %zu",
                              what, wrong, count_, first);
    }

private:
    Program &program_;
    std::size_t count_, before_;
    Buffer buffer_;
};

inline Vector<char> zeros(Program &program, std::size_t bytes, Memory memory)
{
    return {program, std::vector<char>(bytes), memory};
}

} // namespace hetcoll::test
