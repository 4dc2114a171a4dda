#include "fpga_sim/gaussian_noise.hpp"

#include <array>
#include <cmath>
#include <cstdlib>

#include "common/invariant.hpp"
#include "fpga_sim/philox.hpp"

namespace echelle {
namespace {

constexpr size_t layers = 128;
constexpr double tail_start = 3.442619855899;       // R of the paper, for 128 layers
constexpr double layer_area = 9.91256303526217e-3;  // V of the paper
constexpr size_t lanes = 8;
constexpr size_t block_words = 4;

double density(double x) {
    return std::exp(-0.5 * x * x);
}

// Layer i reaches from 0 to edge[i]; layer 0 is the base with the tail folded into its rectangle.
struct Ziggurat {
    std::array<double, layers + 1> edge{};
    std::array<double, layers + 1> height{};  // density at edge
    std::array<double, layers> scale{};       // abscissa of one step of the 25-bit integer
    std::array<int32_t, layers> inside{};     // integers below it are wholly under the curve

    Ziggurat() {
        edge[0] = layer_area / density(tail_start);
        edge[1] = tail_start;
        for (size_t i = 2; i < layers; ++i) {
            edge[i] = std::sqrt(-2.0 * std::log(layer_area / edge[i - 1] + density(edge[i - 1])));
        }
        edge[layers] = 0.0;
        constexpr double steps = 1 << 24;
        for (size_t i = 0; i <= layers; ++i) {
            height[i] = density(edge[i]);
        }
        for (size_t i = 0; i < layers; ++i) {
            scale[i] = edge[i] / steps;
            inside[i] = static_cast<int32_t>(edge[i + 1] / edge[i] * steps);
        }
    }
};

const Ziggurat ziggurat;

// In (0, 1): never 0, whose logarithm the tail takes.
double open_unit(uint32_t word) {
    return (word + 0.5) * 0x1p-32;
}

// The low 7 bits choose the layer, the upper 25 the abscissa: an odd integer in (-2^24, 2^24), odd
// so that the values lie symmetrically about 0.
size_t layer_of(uint32_t word) {
    return word & (layers - 1);
}
int32_t abscissa_of(uint32_t word) {
    return (static_cast<int32_t>(word) >> 7) | 1;
}

// Further random words for one value, as many as it takes.
class ExtraWords {
  public:
    ExtraWords(const NoiseStream& stream, uint64_t index) : stream_(stream), index_(index) {}

    uint32_t next() {
        if (used_ == block_words) {
            ++block_number_;
            block_ = philox4x32({static_cast<uint32_t>(index_), static_cast<uint32_t>(index_ >> 32),
                                 stream_.channel, stream_.component | (block_number_ << 16)},
                                philox_key(stream_.seed));
            used_ = 0;
        }
        return block_[used_++];
    }

  private:
    const NoiseStream& stream_;
    uint64_t index_;
    uint32_t block_number_ = 0;  // block 0 belongs to the first words
    PhiloxCounter block_{};
    size_t used_ = block_words;
};

// Beyond R: Marsaglia's tail method, as in the paper.
double tail_value(ExtraWords& words) {
    for (;;) {
        const double x = -std::log(open_unit(words.next())) / tail_start;
        const double y = -std::log(open_unit(words.next()));
        if (2.0 * y > x * x) {
            return tail_start + x;
        }
    }
}

// For the words that do not fall wholly under the curve.
[[gnu::noinline]] double settle(const NoiseStream& stream, uint64_t index, uint32_t word) {
    ExtraWords extra(stream, index);
    for (;;) {
        const size_t layer = layer_of(word);
        const int32_t abscissa = abscissa_of(word);
        const double x = abscissa * ziggurat.scale[layer];
        if (std::abs(abscissa) < ziggurat.inside[layer]) {
            return x;
        }
        if (layer == 0) {
            return std::copysign(tail_value(extra), x);
        }
        const double low = ziggurat.height[layer];
        const double high = ziggurat.height[layer + 1];
        if (low + open_unit(extra.next()) * (high - low) < density(x)) {
            return x;
        }
        word = extra.next();
    }
}

using WordRun = std::array<uint32_t, largest_noise_run + 2 * lanes * block_words>;

// The words of the blocks that cover the run, from block `first_block` on.
void fill_words(const NoiseStream& stream, uint64_t first_block, size_t blocks, WordRun& run) {
    const PhiloxKey key = philox_key(stream.seed);
    std::array<std::array<uint32_t, lanes>, block_words> words{};
    for (size_t done = 0; done < blocks; done += lanes) {
        for (size_t lane = 0; lane < lanes; ++lane) {
            const uint64_t block = first_block + done + lane;
            words[0][lane] = static_cast<uint32_t>(block);
            words[1][lane] = static_cast<uint32_t>(block >> 32);
            words[2][lane] = stream.channel;
            words[3][lane] = stream.component;
        }
        philox4x32<lanes>(words, key);
        uint32_t* const out = run.data() + done * block_words;
        for (size_t lane = 0; lane < lanes; ++lane) {
            for (size_t word = 0; word < block_words; ++word) {
                out[lane * block_words + word] = words[word][lane];
            }
        }
    }
}

}  // namespace

void unit_noise(const NoiseStream& stream, uint64_t first_index, std::span<double> values) {
    ECHELLE_INVARIANT(values.size() <= largest_noise_run);
    const size_t skipped = first_index % block_words;
    WordRun run;
    fill_words(stream, first_index / block_words,
               (skipped + values.size() + block_words - 1) / block_words, run);
    for (size_t i = 0; i < values.size(); ++i) {
        const uint32_t word = run[skipped + i];
        const size_t layer = layer_of(word);
        const int32_t abscissa = abscissa_of(word);
        values[i] = std::abs(abscissa) < ziggurat.inside[layer]
                        ? abscissa * ziggurat.scale[layer]
                        : settle(stream, first_index + i, word);
    }
}

}  // namespace echelle
