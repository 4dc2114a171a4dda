#include "clients/record/recorder.hpp"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <utility>

#include "clients/record/record_texts.hpp"
#include "clients/record/row_assembler.hpp"
#include "clients/record/row_writer.hpp"
#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle::record {
namespace {

constexpr std::chrono::milliseconds patience(100);
constexpr uint64_t row_bytes_most = uint64_t{1} << 30;

std::atomic<bool> is_stopped{false};
static_assert(std::atomic<bool>::is_always_lock_free);

bool should_stop() {
    return is_stopped.load(std::memory_order_relaxed);
}

// Of the stream, from one spectrum to the next.
double row_seconds_of(const client::Trailer& trailer) {
    const double hop = trailer.nperseg > trailer.noverlap
                           ? static_cast<double>(trailer.nperseg - trailer.noverlap)
                           : 1.0;
    const double rate = trailer.rate.value();
    return rate > 0 ? trailer.segments_expected * hop / rate : 0;
}

class Recorder {
  public:
    Recorder(const RecordOptions& options, PacketInput& input, RecordReport& report)
        : options_(options), input_(input), report_(report), books_(report.received) {}

    void run() {
        const int64_t end_ns =
            options_.duration_seconds > 0
                ? monotonic_ns() + static_cast<int64_t>(options_.duration_seconds * 1e9)
                : 0;
        bool goes_on = true;
        while (goes_on && !should_stop() && !has_enough() &&
               (end_ns == 0 || monotonic_ns() < end_ns) && !(writer_ && writer_->has_failed())) {
            goes_on = step();
        }
        if (goes_on && !has_enough()) {
            complete_row();
        }
        finish();
    }

  private:
    bool has_enough() const { return options_.rows > 0 && rows_ >= options_.rows; }

    // Stopped in the midst of a row: what is there of it waits in the input.
    void complete_row() {
        constexpr int64_t patience_ns = 250'000'000;
        const int64_t begun_ns = monotonic_ns();
        const uint64_t rows = rows_;
        while (assembler_ && assembler_->has_begun_row() && rows_ == rows &&
               !writer_->has_failed() && monotonic_ns() - begun_ns < patience_ns && step()) {
        }
    }

    bool step() {
        client::SpectrumPacket packet;
        switch (input_.next(packet, patience)) {
            case Arrival::ended:
                return false;
            case Arrival::nothing:
                return true;
            case Arrival::bad:
                books_.received += 1;
                books_.bad_packet += 1;
                return true;
            case Arrival::new_run:
                begin_run();
                return true;
            case Arrival::packet:
                books_.received += 1;
                take(packet);
                return true;
        }
        return false;
    }

    void take(const client::SpectrumPacket& packet) {
        if (!packet.trailer) {
            books_.no_trailer += 1;
            return;
        }
        if (!assembler_ || is_new_run_) {
            if (packet.fft_size == 0) {
                books_.other_shape += 1;
                return;
            }
            begin_with(packet);
        }
        for (SpectrumRow& row : assembler_->add(packet)) {
            give(row);
        }
    }

    // The first packet of a run says what its shape is.
    void begin_with(const client::SpectrumPacket& packet) {
        SpectrumShape shape = shape_of(packet, input_.channels());
        if (!writer_) {
            open_writer(std::move(shape), packet);
            assembler_.emplace(packet, input_.channels(), run_, books_);
        } else if (const std::string other = difference(shape_, shape); !other.empty()) {
            books_.other_shape += 1;
            throw RunError("the coordinator was started anew with spectra of another shape (" +
                           other + "; there: before): record them into another file");
        }
        is_new_run_ = false;
    }

    void open_writer(SpectrumShape shape, const client::SpectrumPacket& packet) {
        try {
            if (uint64_t{4} * shape.bins * shape.channels.size() > row_bytes_most) {
                throw RunError(
                    "the spectra of all channels take more than 1 GiB at a time: choose "
                    "some with --channels");
            }
            shape_ = shape;
            writer_ =
                std::make_unique<RowWriter>(options_.writer, std::move(shape), input_.description(),
                                            row_seconds_of(*packet.trailer), report_.written);
        } catch (const std::exception&) {
            report_.written.write_failed += 1;  // the packet at hand
            throw;
        }
    }

    void begin_run() {
        if (assembler_) {
            give_last();
            run_ += 1;
            assembler_->begin_run(run_);
            is_new_run_ = true;
        }
    }

    void give(SpectrumRow& row) {
        const uint32_t spectra = row.present;
        if (has_enough()) {
            books_.surplus += spectra;  // two rows may end with one packet
            return;
        }
        rows_ += 1;
        if (!(input_.waits() ? writer_->wait_and_offer(row) : writer_->offer(row))) {
            (writer_->has_failed() ? failed_ : books_.queue_full) += spectra;
        }
    }

    void give_last() {
        if (auto row = assembler_->finish()) {
            give(*row);
        }
    }

    void finish() {
        if (!writer_) {
            return;
        }
        try {
            give_last();
            writer_->finish();
        } catch (...) {
            report_.written.write_failed += failed_;
            throw;
        }
    }

    const RecordOptions& options_;
    PacketInput& input_;
    RecordReport& report_;
    ReceivedBooks& books_;
    SpectrumShape shape_;
    std::optional<RowAssembler> assembler_;
    std::unique_ptr<RowWriter> writer_;
    uint32_t run_ = 0;
    bool is_new_run_ = false;
    uint64_t rows_ = 0;
    uint64_t failed_ = 0;  // spectra that the writer did not take since it had failed
};

void tell(const RecordReport& report) {
    const WrittenBooks& out = report.written;
    const uint64_t dropped = report.received.received - out.written;
    std::printf("%" PRIu64 " spectra in %" PRIu64 " rows (%" PRIu64
                " incomplete) written to %zu file%s; %" PRIu64 " dropped, %" PRIu64 " missed\n",
                out.written, out.rows, out.rows_incomplete, out.files.size(),
                out.files.size() == 1 ? "" : "s", dropped, report.received.missed);
}

void record(const RecordOptions& options, RecordReport& report) {
    const std::unique_ptr<PacketInput> input =
        options.recording.empty() ? open_feed(options.feed, should_stop)
                                  : open_recording(options.recording, options.feed.channels);
    if (input) {
        report.input = input->kind();
        Recorder(options, *input, report).run();
    }
}

}  // namespace

void stop_recording() {
    is_stopped.store(true, std::memory_order_relaxed);
}

void record_spectra(const RecordOptions& options) {
    leave_hdf5_open_at_exit();
    quiet_hdf5();
    RecordReport report;
    const int64_t begun_ns = monotonic_ns();
    const auto end = [&] {
        report.wall_seconds = static_cast<double>(monotonic_ns() - begun_ns) / 1e9;
        if (!options.report.empty()) {
            write_report(options.report, report);
        }
    };
    try {
        record(options, report);
    } catch (const UsageError&) {
        throw;
    } catch (const std::exception& error) {
        report.failure = error.what();
        end();
        throw;
    }
    end();
    if (!options.writer.quiet) {
        tell(report);
    }
}

}  // namespace echelle::record
