// How much of /dev/shm a process's pages may take. Others live there too, Open MPI, NCCL and data
// loaders, and a program that finds it full dies by SIGBUS. So all processes of a job on a node
// together take at most half of what was free: each its share, of which it pays for its own part of
// every page. So they need not tell each other what they have.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>

namespace hetcoll {

// Thread safe.
class ShmBudget {
public:
    // `processes` of the job are on this node. `folder` is another one in tests only.
    explicit ShmBudget(int processes, std::string folder = "/dev/shm")
        : processes_(processes), folder_(std::move(folder))
    {
    }

    // This process's share, which is found out when somebody first asks.
    [[nodiscard]] std::size_t limit() noexcept;
    // One rank's share of a page of `bytes` bytes that `ranks` ranks have.
    [[nodiscard]] static std::size_t part(std::size_t bytes, int ranks) noexcept;

    // Its bytes are given back at its end. Move-only; the budget outlives it.
    class Loan {
    public:
        Loan() noexcept = default;
        Loan(Loan &&other) noexcept { swap(other); }
        Loan &operator=(Loan &&other) noexcept
        {
            Loan(std::move(other)).swap(*this);
            return *this;
        }
        ~Loan();

    private:
        friend class ShmBudget;
        void swap(Loan &other) noexcept
        {
            std::swap(budget_, other.budget_);
            std::swap(bytes_, other.bytes_);
        }
        ShmBudget *budget_ = nullptr;
        std::size_t bytes_ = 0;
    };
    // False: the share does not have as much left.
    [[nodiscard]] bool take(std::size_t bytes, Loan &loan) noexcept;

private:
    static constexpr std::size_t kUnknown = ~std::size_t{0};

    int processes_;
    std::string folder_;
    std::atomic<std::size_t> limit_{kUnknown}, taken_{0};
};

} // namespace hetcoll
