// liquid-dsp's spectral periodogram (spgramf) over a recording, a channel after the other: the same
// segment length, overlap and window form. It has no detrending, its Hann window is the symmetric
// one, and its first segment is half empty; the check against scipy allows for all three.
//
//   liquid_spgram --raw FILE --psd FILE
//
// FILE holds channel-major int16 frames of 128 x 2048. Prints one JSON object: CPU time per frame.
#include <complex>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <liquid/liquid.h>
#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/topology.hpp"

namespace echelle::bench {
namespace {

constexpr uint32_t channels = 128;
constexpr uint32_t samples = 2048;
constexpr uint32_t nperseg = 1024;
constexpr uint32_t hop = 512;

std::vector<int16_t> read_samples(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    const size_t frame_bytes = size_t{channels} * samples * sizeof(int16_t);
    if (bytes.size() < frame_bytes) {
        throw std::runtime_error("'" + path + "' has no frame of 128 x 2048 int16 samples");
    }
    std::vector<int16_t> values(bytes.size() / sizeof(int16_t));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
    return values;
}

// Two-sided, DC in the middle, liquid's own scale.
void channel_psd(const std::vector<int16_t>& recording, uint32_t channel, spgramf spgram,
                 std::vector<float>& row, float* psd) {
    spgramf_reset(spgram);
    const size_t frames = recording.size() / (size_t{channels} * samples);
    for (size_t frame = 0; frame < frames; ++frame) {
        const int16_t* const from =
            recording.data() + (frame * channels + channel) * size_t{samples};
        for (uint32_t i = 0; i < samples; ++i) {
            row[i] = static_cast<float>(from[i]);
        }
        spgramf_write(spgram, row.data(), samples);
    }
    spgramf_get_psd(spgram, psd);
}

int run(int argc, char** argv) {
    std::string raw;
    std::string psd_path;
    CLI::App app("liquid-dsp's spgram over a recording.");
    app.add_option("--raw", raw, "Frames, 128 x 2048 int16, channel-major")->required();
    app.add_option("--psd", psd_path, "Takes the spectra in dB, float32, 128 x 1024")->required();
    CLI11_PARSE(app, argc, argv);
    bind_this_thread(usable_cpus().front().number);
    const std::vector<int16_t> recording = read_samples(raw);
    const spgramf spgram = spgramf_create(nperseg, LIQUID_WINDOW_HANN, nperseg, hop);
    std::vector<float> psd(size_t{channels} * nperseg);
    std::vector<float> row(samples);
    const int64_t began_ns = thread_cpu_ns();
    for (uint32_t channel = 0; channel < channels; ++channel) {
        channel_psd(recording, channel, spgram, row, psd.data() + size_t{channel} * nperseg);
    }
    const auto cpu_us = static_cast<double>(thread_cpu_ns() - began_ns) / 1000.0;
    spgramf_destroy(spgram);
    std::ofstream(psd_path, std::ios::binary)
        .write(reinterpret_cast<const char*>(psd.data()),
               static_cast<std::streamsize>(psd.size() * sizeof(float)));
    const size_t frames = recording.size() / (size_t{channels} * samples);
    const nlohmann::json result = {{"core_us_per_frame", cpu_us / static_cast<double>(frames)},
                                   {"frames", frames}};
    std::cout << result.dump() << "\n";
    return 0;
}

}  // namespace
}  // namespace echelle::bench

int main(int argc, char** argv) {
    try {
        return echelle::bench::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "liquid_spgram: %s\n", error.what());
        return 1;
    }
}
