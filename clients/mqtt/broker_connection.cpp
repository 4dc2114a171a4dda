#include "clients/mqtt/broker_connection.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "clients/mqtt/messages.hpp"
#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle::mqtt {
namespace {

constexpr int64_t second_ns = 1'000'000'000;
constexpr int look_ms = 200;             // libmosquitto looks after the keepalive when it is called
constexpr int64_t grace_ns = second_ns;  // for the last words, beyond the deadline
constexpr int64_t repeat_ns = 60 * second_ns;  // the same trouble is told again so often
constexpr int suspicious_losses = 3;
constexpr size_t batch = 64;  // messages between two looks at what comes in

void leave_signals_to_the_main_thread() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

std::string seconds_text(double seconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.1f s", seconds);
    return text.data();
}

}  // namespace

BrokerConnection::BrokerConnection(const BrokerOptions& options, Standing standing, Outbox& outbox)
    : options_(options),
      standing_(std::move(standing)),
      outbox_(outbox),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      backoff_(options.backoff, options.seed) {
    if (!wake_) {
        throw RunError("cannot make a descriptor for the broker's thread: " + errno_text());
    }
    // Certificates that cannot be read are found before anything runs.
    const MqttLink unused(options_, {standing_.status_topic, {}});
}

BrokerConnection::~BrokerConnection() {
    if (thread_.joinable()) {
        finish("stopped", monotonic_ns());
        thread_.join();
    }
}

void BrokerConnection::start() {
    thread_ = std::thread([this] {
        leave_signals_to_the_main_thread();
        try {
            run();
        } catch (const std::exception& error) {
            const std::lock_guard lock(mutex_);
            failure_ = error.what();
        }
        const std::lock_guard lock(mutex_);
        figures_.is_connected = false;
        has_ended_ = true;
        ended_.notify_all();
    });
}

void BrokerConnection::describe(const std::string& description) {
    const std::lock_guard lock(mutex_);
    description_ = description;
    has_new_description_ = true;
    eventfd_write(wake_.get(), 1);
}

void BrokerConnection::finish(const std::string& reason, int64_t deadline_ns) {
    const std::lock_guard lock(mutex_);
    mode_ = Mode::finish;
    goodbye_ = reason;
    deadline_ns_ = deadline_ns;
    eventfd_write(wake_.get(), 1);
}

bool BrokerConnection::wait_for_end(int64_t most_ns) {
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, std::chrono::nanoseconds(most_ns), [this] { return has_ended_; });
}

std::optional<std::string> BrokerConnection::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

ConnectionFigures BrokerConnection::figures() const {
    const std::lock_guard lock(mutex_);
    return figures_;
}

bool BrokerConnection::is_finishing() const {
    const std::lock_guard lock(mutex_);
    return mode_ == Mode::finish;
}

int64_t BrokerConnection::deadline() const {
    const std::lock_guard lock(mutex_);
    return deadline_ns_;
}

void BrokerConnection::run() {
    for (;;) {
        const LinkEnd end = live_once();
        outbox_.put_back();
        if (gives_up(end)) {
            return;
        }
        const double wait_s = wait_after(end);
        note_end(end, wait_s);
        pause(wait_s);
        if (is_finishing() && gives_up(end)) {
            return;
        }
    }
}

// At the end, a broker that is not there is tried for as long as something waits for it.
bool BrokerConnection::gives_up(const LinkEnd& end) {
    const bool nothing_waits = outbox_.books().waiting == 0;
    const std::lock_guard lock(mutex_);
    if (end.is_final && figures_.made == 0) {
        failure_ = "the broker " + options_.address.text() + ": " + end.text;
        return true;
    }
    return mode_ == Mode::finish &&
           (leaving_ || nothing_waits || monotonic_ns() >= deadline_ns_ || end.is_take_over);
}

bool BrokerConnection::has_held() const {
    return connected_ns_ != 0 &&
           static_cast<double>(monotonic_ns() - connected_ns_) / 1e9 >= options_.stable_s;
}

// Brokers that do not say why they close a connection (MQTT 3.1.1, and mosquitto 2.0.11 in either
// version) close the older one of two with the same client id. Of a broker that restarts, a try
// fails in between.
LinkEnd BrokerConnection::suspecting_a_twin(LinkEnd end) {
    if (connected_ns_ == 0 || has_held() || end.cause != "connection_lost") {
        quick_losses_ = 0;
        return end;
    }
    ++quick_losses_;
    if (quick_losses_ >= suspicious_losses) {
        end = {"closed_again",
               "it lets us in and closes the connection again: another client may have our client "
               "id; give each gateway its own --client-id",
               false, true};
    }
    return end;
}

double BrokerConnection::wait_after(const LinkEnd& end) {
    if (end.is_take_over) {
        return backoff_.next_after_take_over_s();
    }
    if (has_held()) {
        backoff_.reset();
    }
    return backoff_.next_s();
}

LinkEnd BrokerConnection::live_once() {
    LinkEnd end = try_address(AddressFamily::any);
    const bool may_have_another_address = options_.address.host.find(':') == std::string::npos;
    if (end.is_tcp_failure && may_have_another_address) {
        end = try_address(AddressFamily::ipv4);  // "localhost" is ::1 first
    }
    end = suspecting_a_twin(end);
    const std::lock_guard lock(mutex_);
    figures_.is_connected = false;
    figures_.last_end = end.text;
    ++figures_.tries;
    if (connected_ns_ == 0) {
        ++figures_.failed[end.cause];
    } else if (!leaving_) {
        ++figures_.lost[end.cause];
        figures_.taken_over += end.is_take_over ? 1 : 0;
    }
    return end;
}

LinkEnd BrokerConnection::try_address(AddressFamily family) {
    tickets_.clear();
    connected_ns_ = 0;
    goodbye_id_.reset();
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = figures_.made;
    }
    MqttLink link(options_, {standing_.status_topic,
                             standing_.status("offline", "the connection was lost", number)});
    const int64_t begun_ns = monotonic_ns();
    link.begin(family);
    while (!link.has_ended()) {
        if (is_too_late_to_connect(link, begun_ns)) {
            link.give_up(
                {"no_answer", "it has not answered within " + seconds_text(options_.connect_s)});
            break;
        }
        serve_link(link);
    }
    settle(link);
    return link.end();
}

bool BrokerConnection::is_too_late_to_connect(const MqttLink& link, int64_t begun_ns) const {
    const int64_t now_ns = monotonic_ns();
    return !link.is_connected() &&
           (static_cast<double>(now_ns - begun_ns) / 1e9 >= options_.connect_s ||
            (is_finishing() && now_ns >= deadline()));
}

void BrokerConnection::serve_link(MqttLink& link) {
    if (link.is_connected()) {
        if (connected_ns_ == 0) {
            greet(link);
        }
        send_description(link);
        hand_on(link);
        settle(link);
        if (is_finishing() && take_leave(link)) {
            return;
        }
    }
    wait_for_events(link);
}

void BrokerConnection::greet(MqttLink& link) {
    connected_ns_ = monotonic_ns();
    note_connected();
    uint64_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        number = figures_.made++;
        figures_.is_connected = true;
        has_new_description_ = !description_.empty();
    }
    send_standing(link, standing_.status_topic, standing_.status("online", "", number));
}

// Nothing where it was not taken: a broker may offer neither retained messages nor QoS 1.
std::optional<int> BrokerConnection::send_standing(MqttLink& link, const std::string& topic,
                                                   const std::string& text) {
    int message_id = 0;
    const Published outcome = link.publish({topic, text, Qos::at_least_once, true}, message_id);
    if (outcome == Published::accepted) {
        const std::lock_guard lock(mutex_);
        ++figures_.standing_sent;
        return message_id;
    }
    if (outcome == Published::too_large) {
        tell_too_large(text.size(), topic);
    } else if (outcome == Published::refused) {
        tell_refusal("not what it offers", topic);
    }
    return std::nullopt;
}

void BrokerConnection::tell_refusal(const std::string& reason, const std::string& topic) {
    if (!std::exchange(told_refusal_, true)) {
        warn("the broker " + options_.address.text() + " does not take what we publish" +
             (topic.empty() ? "" : " to " + topic) + " (" + reason +
             "): see its limits and access rules; all such is left out and counted");
    }
}

void BrokerConnection::tell_too_large(size_t bytes, const std::string& topic) {
    if (!std::exchange(told_too_large_, true)) {
        warn("a message of " + std::to_string(bytes) + " bytes (" + topic +
             ") is larger than the broker allows; all such are left out and counted: give another "
             "--spectra, or a higher limit to the broker");
    }
}

void BrokerConnection::send_description(MqttLink& link) {
    std::string description;
    {
        const std::lock_guard lock(mutex_);
        if (!std::exchange(has_new_description_, false)) {
            return;
        }
        description = description_;
    }
    send_standing(link, standing_.description_topic, description);
}

// libmosquitto queues without bound what the connection does not take: it is given no more then.
void BrokerConnection::hand_on(MqttLink& link) {
    const bool may_send = !goodbye_id_;
    for (size_t i = 0; may_send && i < batch && link.is_connected() && !link.wants_write(); ++i) {
        if (options_.qos == Qos::at_least_once && tickets_.size() >= options_.window) {
            return;
        }
        const auto taken = outbox_.take();
        if (!taken) {
            return;
        }
        send(link, *taken);
    }
}

void BrokerConnection::send(MqttLink& link, const Outbox::Taken& taken) {
    const OutgoingMessage& message = *taken.message;
    Publication publication{message.topic, message.payload, options_.qos};
    if (message.is_packet) {
        publication.sequence = message.sequence;
        publication.boot = standing_.boot;
    }
    int message_id = 0;
    switch (link.publish(publication, message_id)) {
        case Published::accepted:
        case Published::no_connection:  // put back when the link has ended
            tickets_[message_id] = taken.ticket;
            return;
        case Published::too_large:
            tell_too_large(message.payload.size(), message.topic);
            outbox_.drop(taken.ticket, Drop::too_large);
            return;
        case Published::refused:
            tell_refusal("not what it offers", message.topic);
            outbox_.drop(taken.ticket, Drop::refused);
            return;
    }
}

void BrokerConnection::settle(MqttLink& link) {
    for (const Receipt& receipt : link.take_receipts()) {
        if (goodbye_id_ == receipt.message_id) {
            goodbye_done_ = true;
        }
        const auto found = tickets_.find(receipt.message_id);
        if (receipt.is_refused) {
            tell_refusal(receipt.reason, "");
        }
        if (found == tickets_.end()) {
            continue;  // status or description
        }
        if (receipt.is_refused) {
            outbox_.drop(found->second, Drop::refused);
        } else {
            outbox_.delivered(found->second);
        }
        tickets_.erase(found);
    }
}

// True when the link is being left: nothing more is to be done but to let the bytes go.
bool BrokerConnection::take_leave(MqttLink& link) {
    const OutboxBooks books = outbox_.books();
    const int64_t now_ns = monotonic_ns();
    const bool is_late = now_ns >= deadline();
    if (!goodbye_id_ && (is_late || books.waiting + books.in_flight == 0)) {
        std::string reason;
        uint64_t number = 0;
        {
            const std::lock_guard lock(mutex_);
            reason = goodbye_;
            number = figures_.made - 1;
        }
        const auto sent = send_standing(link, standing_.status_topic,
                                        standing_.status("offline", reason, number));
        goodbye_id_ = sent.value_or(0);  // which no message has
        goodbye_done_ = !sent;
        return false;
    }
    const bool gives_up = now_ns >= deadline() + grace_ns;
    if (goodbye_id_ && (goodbye_done_ || gives_up) && !leaving_) {
        leaving_ = true;
        link.disconnect();
    }
    if (leaving_ && (!link.wants_write() || gives_up) && !link.has_ended()) {
        link.give_up({"left", "we have left it"});
    }
    return link.has_ended();
}

void BrokerConnection::wait_for_events(MqttLink& link) {
    std::array<pollfd, 3> wanted{{{link.descriptor(), POLLIN, 0},
                                  {outbox_.news_descriptor(), POLLIN, 0},
                                  {wake_.get(), POLLIN, 0}}};
    if (link.wants_write()) {
        wanted[0].events |= POLLOUT;
    }
    // More may wait than one batch took.
    const bool may_go_on = link.is_connected() && !link.wants_write() &&
                           tickets_.size() < options_.window && outbox_.books().waiting > 0;
    const int found = poll(wanted.data(), wanted.size(), may_go_on ? 0 : look_ms);
    if (found > 0 && wanted[1].revents != 0) {
        outbox_.clear_news();
    }
    if (found > 0 && wanted[2].revents != 0) {
        eventfd_t count = 0;
        eventfd_read(wake_.get(), &count);
    }
    link.serve(found > 0 ? wanted[0].revents : short{0});
}

// When the end is asked for meanwhile the pause is over: there is one more try.
void BrokerConnection::pause(double seconds) {
    const bool was_finishing = is_finishing();
    const int64_t until_ns = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
    for (;;) {
        const bool finishing = is_finishing();
        const int64_t end_ns = finishing ? std::min(until_ns, deadline()) : until_ns;
        const int64_t left_ns = end_ns - monotonic_ns();
        if (left_ns <= 0 || finishing != was_finishing) {
            return;
        }
        pollfd wanted{wake_.get(), POLLIN, 0};
        const auto left_ms = std::min<int64_t>(left_ns / 1'000'000 + 1, 1000);
        if (poll(&wanted, 1, static_cast<int>(left_ms)) > 0) {
            eventfd_t count = 0;
            eventfd_read(wake_.get(), &count);
        }
    }
}

void BrokerConnection::note_connected() {
    told_cause_.clear();
    note("connected to " + options_.address.text() + " as " + options_.client_id);
}

// The same trouble again and again is told once a minute.
void BrokerConnection::note_end(const LinkEnd& end, double wait_s) {
    const int64_t now_ns = monotonic_ns();
    if (end.cause == told_cause_ && now_ns - told_ns_ < repeat_ns) {
        return;
    }
    told_cause_ = end.cause;
    told_ns_ = now_ns;
    warn("the broker " + options_.address.text() + ": " + end.text + "; trying again in " +
         seconds_text(wait_s) + (end.is_take_over ? "" : " and whenever that fails"));
}

}  // namespace echelle::mqtt
