#include "clients/mqtt/run.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <utility>

#include <sys/random.h>
#include <unistd.h>
#include <zmq.h>

#include "clients/mqtt/broker_connection.hpp"
#include "clients/mqtt/gateway.hpp"
#include "clients/mqtt/messages.hpp"
#include "clients/mqtt/outbox.hpp"
#include "clients/mqtt/texts.hpp"
#include "common/clock.hpp"
#include "common/curve_keys.hpp"
#include "common/instance.hpp"
#include "echelle/feed.hpp"

namespace echelle::mqtt {
namespace {

constexpr std::chrono::milliseconds look(100);
constexpr int64_t nanoseconds_of_a_second = 1'000'000'000;
constexpr int64_t silence_ns = 5 * nanoseconds_of_a_second;  // figures come every second
constexpr int feed_queue = 10'000;  // messages that may wait in our subscription

std::atomic<int> stops_asked{0};
static_assert(std::atomic<int>::is_always_lock_free);

void count_stop(int /*signal*/) {
    stops_asked.fetch_add(1, std::memory_order_relaxed);
}

int stops() {
    return stops_asked.load(std::memory_order_relaxed);
}

void end_cleanly_on_signals() {
    struct sigaction action {};
    action.sa_handler = count_stop;
    sigemptyset(&action.sa_mask);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        sigaction(number, &action, nullptr);
    }
    action.sa_handler = SIG_IGN;  // a broker that leaves is an error of a write
    sigaction(SIGPIPE, &action, nullptr);
    sigaction(SIGXFSZ, &action, nullptr);
}

uint64_t drawn_by_the_kernel() {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != ssize_t{sizeof number}) {
        throw RunError("the kernel gives no random number: " + errno_text());
    }
    return number;
}

std::string hex_of(uint64_t number) {
    std::array<char, 20> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
    return text.data();
}

// Two gateways in two containers may have the same host's name and the same pid.
std::string made_client_id(const std::string& instance, const std::string& boot) {
    std::array<char, 65> host{};
    if (gethostname(host.data(), host.size() - 1) != 0) {
        host[0] = '\0';
    }
    return "echelle-" + instance + "-" + host.data() + "-" + std::to_string(getpid()) + "-" +
           boot.substr(0, 8);
}

std::string z85(const std::string& key) {
    std::array<char, 41> text{};
    zmq_z85_encode(text.data(), reinterpret_cast<const uint8_t*>(key.data()), key.size());
    return text.data();
}

std::string coded_topic(SpectraForm form) {
    return form == SpectraForm::psd16 ? "psd16/" : "psd8/";
}

client::SubscribeOptions subscription_of(const Options& options) {
    client::SubscribeOptions wanted;
    wanted.queue = feed_queue;
    wanted.topics = {"event/", "stat/"};
    const bool wants_coded =
        options.spectra == SpectraForm::psd16 || options.spectra == SpectraForm::psd8;
    const bool wants_whole =
        options.spectra == SpectraForm::psd || !options.bands.empty() || options.peaks > 0;
    wanted.channels = wants_whole ? options.channels : std::vector<uint32_t>{};
    if (!wants_coded) {
        return wanted;
    }
    if (!options.channels) {
        wanted.topics.push_back(coded_topic(options.spectra));
        return wanted;
    }
    for (const uint32_t channel : *options.channels) {
        std::array<char, 16> digits{};
        std::snprintf(digits.data(), digits.size(), "%05u", channel);
        wanted.topics.push_back(coded_topic(options.spectra) + digits.data());
    }
    return wanted;
}

void add_keys(const Options& options, client::SubscribeOptions& wanted) {
    if (options.feed_key_file.empty()) {
        return;
    }
    const CurveKeys ours = read_secret_keys(options.feed_key_file);
    const auto theirs = read_public_keys(options.feed_server_file);
    if (theirs.size() != 1) {
        throw UsageError("--feed-server '" + options.feed_server_file + "' holds " +
                         std::to_string(theirs.size()) + " keys: give the feed's own .pub file");
    }
    wanted.public_key = ours.public_key;
    wanted.secret_key = ours.secret_key;
    wanted.server_key = z85(*theirs.begin());
}

// As a whole or not at all.
void write_whole(const std::string& path, const std::string& text) {
    const std::string temporary = path + ".part-" + std::to_string(getpid());
    std::ofstream file(temporary, std::ios::binary);
    file << text;
    file.close();
    if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
        const std::string why = errno_text();
        unlink(temporary.c_str());
        throw RunError("cannot write the report " + path + ": " + why);
    }
}

class Run {
  public:
    explicit Run(Options options);
    ExitCode live();

  private:
    enum class Outcome { run_ended, stopped };

    void follow_feed();
    Outcome follow_run(client::Subscriber& feed);
    void take_next(client::Subscriber& feed);
    void take(const client::Message& message);
    void begin_run(const std::string& hello);
    void connect_to_broker(const RunDescription& description);
    BrokerConnection::Standing standing() const;
    void look_after(client::Subscriber& feed);
    bool leave_broker();
    void tell_losses() const;
    ConnectionFigures connection_figures() const;

    Options options_;
    client::SubscribeOptions subscription_;
    std::string boot_;
    Outbox outbox_;
    Gateway gateway_;
    std::unique_ptr<BrokerConnection> broker_;
    std::string hello_;
    std::string goodbye_ = "stopped";
    int64_t heard_ns_ = monotonic_ns();
    bool told_silence_ = false;
    uint64_t missed_told_ = 0;
    std::string failure_;
};

Run::Run(Options options)
    : options_(std::move(options)),
      subscription_(subscription_of(options_)),
      boot_(hex_of(drawn_by_the_kernel())),
      outbox_(options_.outbox),
      gateway_(options_, boot_, outbox_, [this] { return connection_figures(); }) {
    add_keys(options_, subscription_);
    if (options_.feed.empty()) {
        options_.feed = feed_endpoint(options_.instance);
    }
    options_.broker.seed = drawn_by_the_kernel();
}

ExitCode Run::live() {
    try {
        follow_feed();
    } catch (const RunError& error) {
        failure_ = error.what();
        goodbye_ = "failed";
    } catch (const client::FeedError& error) {
        failure_ = std::string("the feed: ") + error.what();
        goodbye_ = "failed";
    }
    const bool has_left = leave_broker();
    if (failure_.empty() && broker_ && broker_->figures().made == 0) {
        failure_ = "the broker " + options_.broker.address.text() +
                   " was never reached: " + broker_->figures().last_end;
    }
    outbox_.close();
    tell_losses();
    if (!options_.report.empty()) {
        write_whole(options_.report, report_text(options_, boot_, gateway_.books(), outbox_.books(),
                                                 connection_figures(), failure_));
    }
    if (!failure_.empty()) {
        std::fprintf(stderr, "echelle-mqtt: failed: %s\n", failure_.c_str());
    }
    const ExitCode code = failure_.empty() ? ExitCode::done : ExitCode::failed_while_running;
    if (!has_left) {
        warn("the broker's thread hangs in the resolver and is left behind");
        std::fflush(nullptr);
        std::_Exit(static_cast<int>(code));
    }
    return code;
}

void Run::follow_feed() {
    do {
        client::Subscriber feed(options_.feed, subscription_);
        const Outcome outcome = follow_run(feed);
        if (outcome == Outcome::stopped) {
            return;
        }
        goodbye_ = "the run has ended";
        if (options_.keep) {
            note("the run has ended; waiting for the next one");
        }
    } while (options_.keep);
}

Run::Outcome Run::follow_run(client::Subscriber& feed) {
    missed_told_ = 0;
    while (!feed.ended()) {
        if (stops() > 0) {
            goodbye_ = "stopped";
            return Outcome::stopped;
        }
        try {
            take_next(feed);
        } catch (const client::FeedTimeout&) {
            // look around, and go on
        } catch (const client::FeedEnded&) {
            return Outcome::run_ended;
        }
        look_after(feed);
    }
    return Outcome::run_ended;
}

void Run::take_next(client::Subscriber& feed) {
    try {
        take(feed.receive(look));
    } catch (const client::PacketError&) {
        gateway_.count_bad_packet();
    }
}

void Run::take(const client::Message& message) {
    heard_ns_ = monotonic_ns();
    told_silence_ = false;
    if (message.topic == "hello/") {
        begin_run(message.text());
    } else if (!hello_.empty()) {
        gateway_.take(message, heard_ns_);
    } else if (message.packet) {
        gateway_.count_bad_packet();  // no coordinator sends spectra before its description
    }
}

void Run::begin_run(const std::string& hello) {
    if (hello == hello_) {
        return;  // as others subscribe it comes again
    }
    const RunDescription description = parse_description(hello);
    hello_ = hello;
    if (options_.topic_prefix.empty()) {
        options_.topic_prefix = "echelle/" + description.instance;
    }
    gateway_.begin_run(description, options_.topic_prefix);
    if (!broker_) {
        connect_to_broker(description);
    }
    broker_->describe(hello_text({boot_, gateway_.books().runs - 1}, hello));
}

void Run::connect_to_broker(const RunDescription& description) {
    BrokerOptions& broker = options_.broker;
    if (broker.client_id.empty()) {
        broker.client_id = made_client_id(description.instance, boot_);
    }
    broker_ = std::make_unique<BrokerConnection>(broker, standing(), outbox_);
    broker_->start();
}

BrokerConnection::Standing Run::standing() const {
    auto status = [boot = boot_, id = options_.broker.client_id](
                      const std::string& state, const std::string& reason, uint64_t connection) {
        return status_text({boot, connection}, state, reason, id);
    };
    return {options_.topic_prefix + "/status", status, options_.topic_prefix + "/hello", boot_};
}

// What is not the feed's business: losses, silence, a broker that will not have us.
void Run::look_after(client::Subscriber& feed) {
    gateway_.count_missed(feed.missed() - std::exchange(missed_told_, feed.missed()));
    if (monotonic_ns() - heard_ns_ > silence_ns && !std::exchange(told_silence_, true)) {
        warn("nothing comes from " + options_.feed + ": is a coordinator running? Waiting for it");
    }
    if (broker_) {
        if (const auto failure = broker_->failure()) {
            throw RunError(*failure);
        }
    }
}

// Within the time to linger; at once with a second signal. False: a thread hangs.
bool Run::leave_broker() {
    if (!broker_) {
        return true;
    }
    const int signals_before = stops();
    int64_t deadline_ns = monotonic_ns() + static_cast<int64_t>(options_.linger_s * 1e9);
    broker_->finish(goodbye_, deadline_ns);
    while (!broker_->wait_for_end(nanoseconds_of_a_second / 10)) {
        const int64_t now_ns = monotonic_ns();
        if (stops() > signals_before + (signals_before == 0 ? 1 : 0) && deadline_ns > now_ns) {
            deadline_ns = now_ns;
            broker_->finish(goodbye_, deadline_ns);
        }
        if (now_ns > deadline_ns + 2 * nanoseconds_of_a_second) {
            return false;
        }
    }
    if (const auto failure = broker_->failure(); failure && failure_.empty()) {
        failure_ = *failure;
    }
    return true;
}

void Run::tell_losses() const {
    const OutboxBooks books = outbox_.books();
    std::string text;
    for (const Drop reason : {Drop::queue_full, Drop::too_large, Drop::refused, Drop::stopped}) {
        const uint64_t count = books.dropped[static_cast<size_t>(reason)];
        if (count > 0) {
            text += (text.empty() ? "" : ", ") + std::to_string(count) + " " +
                    std::string(name_of(reason));
        }
    }
    if (!text.empty()) {
        warn("of " + std::to_string(books.made) + " messages these were not delivered: " + text);
    }
}

ConnectionFigures Run::connection_figures() const {
    return broker_ ? broker_->figures() : ConnectionFigures{};
}

}  // namespace

ExitCode run_gateway(Options options) {
    if (options.quiet) {
        be_quiet();
    }
    end_cleanly_on_signals();
    return Run(std::move(options)).live();
}

}  // namespace echelle::mqtt
