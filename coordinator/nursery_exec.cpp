#include "coordinator/nursery_exec.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <fftw3.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/error.hpp"
#include "common/fault_point.hpp"
#include "coordinator/log.hpp"

namespace echelle {
namespace {

// Copies of descriptors that survive the exec; closed in this process when it is done.
class Heirlooms {
  public:
    int pass_on(int fd) {
        // Without FD_CLOEXEC; high, so that it meets no number that the new program counts on.
        const int copy = fcntl(fd, F_DUPFD, 64);
        if (copy < 0) {
            throw RunError("cannot pass a descriptor on: " + errno_text());
        }
        copies_.emplace_back(copy);
        return copy;
    }

  private:
    std::vector<FileDescriptor> copies_;
};

FileDescriptor wisdom_as_file() {
    const std::unique_ptr<char, decltype(&std::free)> wisdom(fftwf_export_wisdom_to_string(),
                                                             &std::free);
    FileDescriptor file(memfd_create("echelle-wisdom", MFD_CLOEXEC));
    const std::string_view text = wisdom ? wisdom.get() : "";
    if (!file ||
        ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        throw RunError("cannot pass FFTW's wisdom on: " + errno_text());
    }
    return file;
}

void read_wisdom(int fd) {
    const off_t size = lseek(fd, 0, SEEK_END);
    std::string text(size > 0 ? static_cast<size_t>(size) : 0, '\0');
    if (pread(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size())) {
        fftwf_import_wisdom_from_string(text.c_str());
    }
}

nlohmann::json welch_as_json(const WelchParameters& welch) {
    return {{"nperseg", welch.nperseg},
            {"noverlap", welch.noverlap},
            {"window_kind", static_cast<uint16_t>(welch.window.kind)},
            {"window_parameter", welch.window.parameter},
            {"detrend", static_cast<uint8_t>(welch.detrend)},
            {"scaling", static_cast<uint8_t>(welch.scaling)},
            {"average_mode", static_cast<uint8_t>(welch.average_mode)},
            {"pair_channels", welch.pair_channels},
            {"volts_per_count", welch.volts_per_count}};
}

WelchParameters welch_from_json(const nlohmann::json& seed) {
    WelchParameters welch;
    welch.nperseg = seed.at("nperseg");
    welch.noverlap = seed.at("noverlap");
    welch.window.kind = static_cast<WindowKind>(seed.at("window_kind").get<uint16_t>());
    welch.window.parameter = seed.at("window_parameter");
    welch.detrend = static_cast<Detrend>(seed.at("detrend").get<uint8_t>());
    welch.scaling = static_cast<Scaling>(seed.at("scaling").get<uint8_t>());
    welch.average_mode = static_cast<AverageMode>(seed.at("average_mode").get<uint8_t>());
    welch.pair_channels = seed.at("pair_channels");
    welch.volts_per_count = seed.at("volts_per_count");
    return welch;
}

nlohmann::json shape_as_json(const LedgerShape& shape) {
    return {{"capacity", shape.capacity},
            {"most_frames", shape.most_frames},
            {"workers", shape.workers},
            {"result_bytes", shape.result_bytes}};
}

LedgerShape shape_from_json(const nlohmann::json& seed) {
    LedgerShape shape;
    shape.capacity = seed.at("capacity");
    shape.most_frames = seed.at("most_frames");
    shape.workers = seed.at("workers");
    shape.result_bytes = seed.at("result_bytes");
    return shape;
}

FileDescriptor taken(const nlohmann::json& seed, const char* key) {
    FileDescriptor fd(seed.at(key).get<int>());
    fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
    return fd;
}

}  // namespace

Nursery exec_nursery(const Preparation& run) {
    NurserySockets sockets = make_nursery_sockets();
    const FileDescriptor wisdom = wisdom_as_file();
    Heirlooms heirlooms;
    const WorkerSetup& setup = run.setup;
    const nlohmann::json seed{{"ring", heirlooms.pass_on(run.ring->descriptor())},
                              {"ledger", heirlooms.pass_on(run.ledger->descriptor())},
                              {"socket", heirlooms.pass_on(sockets.theirs.get())},
                              {"coordinator", heirlooms.pass_on(setup.coordinator_end)},
                              {"lock", heirlooms.pass_on(run.instance->lock_descriptor())},
                              {"wisdom", heirlooms.pass_on(wisdom.get())},
                              {"instance", run.instance->name()},
                              {"shape", shape_as_json(run.ledger->shape())},
                              {"welch", welch_as_json(setup.welch)},
                              {"fft", name_of(run.options.fft)},
                              {"fft_effort", name_of(run.options.fft_effort)},
                              {"most_channels", setup.most_channels},
                              {"most_frames", setup.most_frames},
                              {"most_values", setup.most_values},
                              {"notify", name_of(setup.notify)},
                              {"log_format", log_format() == LogFormat::json ? "json" : "text"}};
    std::string program = "/proc/self/exe";
    std::string flag = nursery_argument;
    std::string text = seed.dump();
    const std::array<char*, 4> arguments{program.data(), flag.data(), text.data(), nullptr};
    pid_t pid = -1;
    // posix_spawn neither copies the address space nor runs our code in the child: threads and
    // contexts of this process do not matter.
    const int error =
        posix_spawn(&pid, program.c_str(), nullptr, nullptr, arguments.data(), environ);
    if (error != 0) {
        throw RunError("cannot start a new nursery: " + errno_text(error));
    }
    return Nursery(pid, std::move(sockets.ours));
}

void become_nursery(const std::string& text) {
    ECHELLE_FAULT_INCARNATION(2);
    const nlohmann::json seed = nlohmann::json::parse(text);
    set_log(parse_log_format(seed.at("log_format").get<std::string>()), LogLevel::info);
    FileDescriptor socket = taken(seed, "socket");
    const FileDescriptor coordinator = taken(seed, "coordinator");
    const FileDescriptor wisdom = taken(seed, "wisdom");
    const Ring ring = Ring::from_descriptor(taken(seed, "ring"));
    Ledger ledger(shape_from_json(seed.at("shape")), taken(seed, "ledger"));
    Instance instance = Instance::adopt(seed.at("instance"), taken(seed, "lock"));

    WorkerSetup setup;
    setup.ring = &ring;
    setup.ledger = &ledger;
    setup.stream = ring.stream();
    setup.welch = welch_from_json(seed.at("welch"));
    read_wisdom(wisdom.get());
    const FftPlans plans(setup.welch.nperseg, setup.stream.geometry.is_complex(),
                         setup.welch.pair_channels,
                         parse_fft_effort(seed.at("fft_effort").get<std::string>()),
                         parse_fft_kind(seed.at("fft").get<std::string>()));
    setup.plans = &plans;
    setup.most_channels = seed.at("most_channels");
    setup.most_frames = seed.at("most_frames");
    setup.most_values = seed.at("most_values");
    setup.notify = parse_notify_kind(seed.at("notify").get<std::string>());
    setup.endpoints = instance.wakeup_endpoints();
    setup.coordinator_end = coordinator.get();
    run_nursery(setup, instance, std::move(socket));
}

}  // namespace echelle
