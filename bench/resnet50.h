// The parameters of ResNet-50 (He et al., CVPR 2016) in the order in which torchvision's resnet50
// declares them: their gradients are what data-parallel training of it reduces in every step.
#pragma once

#include <array>
#include <cstddef>

namespace hetcoll {

inline constexpr int kResnet50TensorCount = 161;
inline constexpr std::size_t kResnet50ParameterCount = 25'557'032;

namespace resnet50_detail {

using Counts = std::array<std::size_t, kResnet50TensorCount>;

struct Builder {
    Counts counts{};
    std::size_t filled = 0;

    constexpr void add(std::size_t count) { counts[filled++] = count; }
    // A convolution without bias, then its batch normalisation's weight and bias.
    constexpr void convolution(std::size_t out, std::size_t in, std::size_t kernel)
    {
        add(out * in * kernel * kernel);
        add(out);
        add(out);
    }
    // conv1 1x1, conv2 3x3, conv3 1x1, and in a stage's first block the projection of the shortcut.
    constexpr void bottleneck(std::size_t in, std::size_t width, bool projects)
    {
        convolution(width, in, 1);
        convolution(width, width, 3);
        convolution(4 * width, width, 1);
        if (projects) {
            convolution(4 * width, in, 1);
        }
    }
};

constexpr Counts build()
{
    Builder builder;
    builder.convolution(64, 3, 7);
    constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};
    std::size_t in = 64, width = 64;
    for (const int blocks : kBlocks) {
        for (int block = 0; block < blocks; ++block) {
            builder.bottleneck(in, width, block == 0);
            in = 4 * width;
        }
        width *= 2;
    }
    builder.add(1000 * in); // fc.weight
    builder.add(1000);      // fc.bias
    return builder.counts;
}

constexpr std::size_t sum(const Counts &counts)
{
    std::size_t total = 0;
    for (const std::size_t count : counts) {
        total += count;
    }
    return total;
}

} // namespace resnet50_detail

// Elements of each tensor, first layer first.
inline constexpr resnet50_detail::Counts kResnet50Counts = resnet50_detail::build();

static_assert(kResnet50Counts.front() == 64 * 3 * 7 * 7 && kResnet50Counts.back() == 1000);
static_assert(resnet50_detail::sum(kResnet50Counts) == kResnet50ParameterCount);

} // namespace hetcoll
