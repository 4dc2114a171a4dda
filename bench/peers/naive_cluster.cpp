// The cluster that one would write in an afternoon: every frame travels as one message over ipc
// PUSH/PULL to a worker, which computes Welch with one real FFTW transform for each segment and
// channel and sends one message back for each channel, an Echelle packet of version 1.0.
//
//   naive_cluster --raw FILE --frames N --workers 2 --psd FILE
//
// FILE holds channel-major int16 frames of 128 x 2048. Each frame is averaged by itself (3
// segments; Echelle's grid runs on over frame borders and has 4 per frame, so the naive cluster
// does less). Prints one JSON object: CPU time of all its processes per frame, and wall time per
// frame. --psd takes the mean of all spectra as float32, 128 x 513, for the check against scipy.
#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <fftw3.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <zmq.hpp>

#include "bench/child.hpp"
#include "common/clock.hpp"
#include "common/crc32.hpp"
#include "common/packet.hpp"
#include "common/window.hpp"

namespace echelle::bench {
namespace {

constexpr uint32_t channels = 128;
constexpr uint32_t samples = 2048;
constexpr uint32_t nperseg = 1024;
constexpr uint32_t hop = 512;
constexpr uint32_t bins = nperseg / 2 + 1;
constexpr uint32_t segments = (samples - nperseg) / hop + 1;
constexpr double rate_hz = 10e6;
constexpr size_t frame_bytes = size_t{channels} * samples * sizeof(int16_t);

// One channel of one frame at a time, with the plainest use of FFTW.
class PlainWelch {
  public:
    PlainWelch() : window_(nperseg), in_(nperseg), out_(bins) {
        const std::vector<double> window = Window{}.coefficients(nperseg);
        double sum_squares = 0;
        for (uint32_t i = 0; i < nperseg; ++i) {
            window_[i] = static_cast<float>(window[i]);
            sum_squares += window[i] * window[i];
        }
        scale_ = static_cast<float>(2.0 / (rate_hz * sum_squares * segments));
        plan_ = fftwf_plan_dft_r2c_1d(nperseg, in_.data(),
                                      reinterpret_cast<fftwf_complex*>(out_.data()), FFTW_MEASURE);
    }
    PlainWelch(const PlainWelch&) = delete;
    PlainWelch& operator=(const PlainWelch&) = delete;
    ~PlainWelch() { fftwf_destroy_plan(plan_); }

    void compute(const int16_t* channel, std::span<float> psd) {
        std::fill(psd.begin(), psd.end(), 0.0F);
        for (uint32_t segment = 0; segment < segments; ++segment) {
            load(channel + segment * hop);
            fftwf_execute(plan_);
            for (uint32_t k = 0; k < bins; ++k) {
                psd[k] += std::norm(out_[k]);
            }
        }
        for (float& value : psd) {
            value *= scale_;
        }
        psd.front() *= 0.5F;
        psd.back() *= 0.5F;
    }

  private:
    void load(const int16_t* from) {
        float sum = 0;
        for (uint32_t i = 0; i < nperseg; ++i) {
            sum += static_cast<float>(from[i]);
        }
        const float mean = sum / nperseg;
        for (uint32_t i = 0; i < nperseg; ++i) {
            in_[i] = window_[i] * (static_cast<float>(from[i]) - mean);
        }
    }

    std::vector<float> window_;
    std::vector<float> in_;
    std::vector<std::complex<float>> out_;
    float scale_ = 0;
    fftwf_plan plan_ = nullptr;
};

double cpu_seconds(int who) {
    rusage usage{};
    getrusage(who, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void work(const std::string& frames, const std::string& spectra) {
    zmq::context_t context(1);
    zmq::socket_t in(context, zmq::socket_type::pull);
    zmq::socket_t out(context, zmq::socket_type::push);
    in.set(zmq::sockopt::rcvhwm, 4);
    PlainWelch welch;
    in.connect(frames);
    out.connect(spectra);
    // Ready: what starting has cost isn't counted.
    const double started_s = cpu_seconds(RUSAGE_SELF);
    out.send(zmq::buffer(&started_s, sizeof started_s), zmq::send_flags::none);
    while (true) {  // until it is killed
        zmq::message_t frame;
        static_cast<void>(in.recv(frame));
        const auto* const values = frame.data<int16_t>();
        for (uint32_t channel = 0; channel < channels; ++channel) {
            zmq::message_t message(packet_bytes_1_0(bins));
            const std::span<std::byte> packet(message.data<std::byte>(), message.size());
            welch.compute(values + size_t{channel} * samples, packet_data(packet, bins));
            PacketHeader header;
            header.channel_id = channel;
            header.fft_size = bins;
            seal_packet_1_0(packet, header);
            out.send(message, zmq::send_flags::none);
        }
    }
}

std::vector<char> read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.size() < frame_bytes) {
        throw RunError("'" + path + "' has no frame of 128 x 2048 int16 samples");
    }
    return bytes;
}

class Collector {
  public:
    void run(zmq::socket_t& socket, uint64_t packets) {
        for (uint64_t i = 0; i < packets; ++i) {
            zmq::message_t message;
            static_cast<void>(socket.recv(message));
            PacketView packet;
            if (decode_packet({message.data<std::byte>(), message.size()}, packet) !=
                PacketError::none) {
                throw RunError("a packet arrived damaged");
            }
            add(packet);
        }
    }
    void write(const std::string& path, uint64_t frames) const {
        std::vector<float> mean(sums_.size());
        std::transform(sums_.begin(), sums_.end(), mean.begin(), [frames](double sum) {
            return static_cast<float>(sum / static_cast<double>(frames));
        });
        std::ofstream file(path, std::ios::binary);
        file.write(reinterpret_cast<const char*>(mean.data()),
                   static_cast<std::streamsize>(mean.size() * sizeof(float)));
    }

  private:
    void add(const PacketView& packet) {
        double* const to = sums_.data() + size_t{packet.header.channel_id} * bins;
        for (uint32_t k = 0; k < bins; ++k) {
            to[k] += double{packet.value(k)};
        }
    }
    std::vector<double> sums_ = std::vector<double>(size_t{channels} * bins);
};

int run(int argc, char** argv) {
    std::string raw;
    std::string psd;
    uint64_t frames = 1000;
    uint32_t workers = 2;
    CLI::App app("A cluster that sends every frame as a message.");
    app.add_option("--raw", raw, "Frames, 128 x 2048 int16, channel-major")->required();
    app.add_option("--psd", psd, "Takes the mean spectra, float32");
    app.add_option("--frames", frames, "Frames to send (1000)");
    app.add_option("--workers", workers, "Worker processes (2)");
    CLI11_PARSE(app, argc, argv);

    const std::vector<char> recording = read_file(raw);
    const uint64_t recorded = recording.size() / frame_bytes;
    const SocketFolder folder;
    std::vector<Child> children;
    for (uint32_t i = 0; i < workers; ++i) {
        children.emplace_back(cpu_for(i),
                              [&] { work(folder.endpoint("frames"), folder.endpoint("spectra")); });
    }
    zmq::context_t context(1);
    zmq::socket_t out(context, zmq::socket_type::push);
    zmq::socket_t in(context, zmq::socket_type::pull);
    out.set(zmq::sockopt::sndhwm, 4);
    out.bind(folder.endpoint("frames"));
    in.bind(folder.endpoint("spectra"));
    double cpu_before_s = 0;
    for (uint32_t i = 0; i < workers; ++i) {
        double started_s = 0;
        static_cast<void>(in.recv(zmq::buffer(&started_s, sizeof started_s)));
        cpu_before_s += started_s;
    }
    Collector collector;
    cpu_before_s += cpu_seconds(RUSAGE_SELF);
    const int64_t began_ns = monotonic_ns();
    std::thread collecting([&] { collector.run(in, frames * channels); });
    for (uint64_t i = 0; i < frames; ++i) {
        out.send(zmq::buffer(recording.data() + i % recorded * frame_bytes, frame_bytes),
                 zmq::send_flags::none);
    }
    collecting.join();
    const double wall_s = static_cast<double>(monotonic_ns() - began_ns) / 1e9;
    children.clear();
    const double cpu_s = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN) - cpu_before_s;
    if (!psd.empty()) {
        collector.write(psd, frames);
    }
    const auto count = static_cast<double>(frames);
    const nlohmann::json result = {{"core_us_per_frame", cpu_s * 1e6 / count},
                                   {"wall_us_per_frame", wall_s * 1e6 / count},
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
        std::fprintf(stderr, "naive_cluster: %s\n", error.what());
        return 1;
    }
}
