#include "fpga_sim/signal_language.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "common/error.hpp"
#include "fpga_sim/signal_forms.hpp"

namespace echelle {
namespace {

constexpr size_t largest_component_count = 1000;
constexpr uint32_t largest_channel = 65535;

[[noreturn]] void refuse(size_t index, const std::string& why) {
    throw UsageError("signal, character " + std::to_string(index + 1) + ": " + why);
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

class SignalParser {
  public:
    explicit SignalParser(std::string_view text) : text_(text) {}

    std::vector<SignalRule> rules() {
        std::vector<SignalRule> all;
        do {
            all.push_back(rule());
        } while (take(';'));
        if (at_ != text_.size()) {
            refuse(at_, "found '" + found() +
                            "' after a component: write '+' and a component, or "
                            "';' and a rule");
        }
        return all;
    }

  private:
    void skip_blanks() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) {
            ++at_;
        }
    }
    // The next character that means something; NUL at the end.
    char next() {
        skip_blanks();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char wanted) {
        if (next() != wanted) {
            return false;
        }
        ++at_;
        return true;
    }
    std::string found() {
        const char c = next();
        if (at_ == text_.size()) {
            return "the end";
        }
        return c >= ' ' && c <= '~' ? std::string(1, c) : "a byte that is not printable";
    }
    // Letters and digits, beginning with a letter; empty when there are none.
    std::string_view word() {
        skip_blanks();
        const size_t begin = at_;
        while (at_ < text_.size() &&
               (is_letter(text_[at_]) || (at_ > begin && is_digit(text_[at_])))) {
            ++at_;
        }
        return text_.substr(begin, at_ - begin);
    }

    SignalRule rule() {
        SignalRule rule;
        skip_blanks();
        rule.character = at_ + 1;
        if (next() == '*' || is_digit(next())) {
            channels(rule);
            if (!take(':')) {
                refuse(at_, "found '" + found() + "' after the channels: write ':'");
            }
        } else {
            rule.every_channel = true;
        }
        do {
            if (rule.components.size() == largest_component_count) {
                refuse(at_, "a rule takes at most " + std::to_string(largest_component_count) +
                                " components");
            }
            rule.components.push_back(component());
        } while (take('+'));
        return rule;
    }

    void channels(SignalRule& rule) {
        if (take('*')) {
            rule.every_channel = true;
            return;
        }
        do {
            next();
            const size_t begin = at_;
            ChannelRange range;
            range.first = channel();
            range.last = take('-') ? channel() : range.first;
            if (range.last < range.first) {
                refuse(begin, "channels " + std::to_string(range.first) + "-" +
                                  std::to_string(range.last) +
                                  " run backwards: write the lower number first");
            }
            rule.ranges.push_back(range);
        } while (take(','));
    }

    uint32_t channel() {
        next();
        const size_t begin = at_;
        uint32_t number = 0;
        const char* const end = text_.data() + text_.size();
        const auto [stop, error] = std::from_chars(text_.data() + at_, end, number);
        if (error == std::errc::invalid_argument) {
            refuse(begin, "found '" + found() + "': write a channel number");
        }
        if (error != std::errc() || number > largest_channel) {
            refuse(begin, "the channel number is too large: write 0 to " +
                              std::to_string(largest_channel));
        }
        at_ = static_cast<size_t>(stop - text_.data());
        return number;
    }

    SignalComponent component() {
        next();
        const size_t begin = at_;
        const std::string_view name = word();
        const auto form = std::find_if(signal_forms().begin(), signal_forms().end(),
                                       [name](const SignalForm& f) { return f.name == name; });
        if (form == signal_forms().end()) {
            at_ = begin + name.size();
            refuse(begin, "'" + (name.empty() ? found() : std::string(name)) +
                              "' is not a component: use one of " + signal_form_names());
        }
        if (!take('(')) {
            refuse(at_, "found '" + found() + "' after '" + std::string(name) + "': write " +
                            form->text());
        }
        return form->make(arguments(*form, begin));
    }

    SignalValues arguments(const SignalForm& form, size_t begin) {
        SignalValues values{};
        std::array<bool, most_signal_parameters> written{};
        bool named = false;
        size_t count = 0;
        while (!take(')')) {
            if (count > 0 && !take(',')) {
                refuse(at_, "found '" + found() + "': write ',' or ')' in " + form.text());
            }
            next();
            const size_t argument_begin = at_;
            const std::string_view name = word();
            named = named || !name.empty();
            const size_t which = name.empty() ? count : parameter_named(form, name, argument_begin);
            if (name.empty() && (named || which >= form.parameters.size())) {
                refuse(argument_begin, named ? "an argument without a name follows a named one: "
                                               "name it, as in " +
                                                   form.text()
                                             : "too many arguments: write " + form.text());
            }
            if (!name.empty() && !take('=')) {
                refuse(at_, "found '" + found() + "' after '" + std::string(name) +
                                "': write '=' and a number");
            }
            if (std::exchange(written[which], true)) {
                refuse(argument_begin, "'" + std::string(form.parameters[which].name) +
                                           "' is given twice: give it once");
            }
            values[which] = value(form.parameters[which]);
            ++count;
        }
        for (size_t i = 0; i < form.parameters.size(); ++i) {
            const SignalParameter& parameter = form.parameters[i];
            if (!written[i] && !parameter.otherwise) {
                refuse(begin, "'" + std::string(form.name) + "' lacks " +
                                  std::string(parameter.name) + ": write " + form.text());
            }
            values[i].number = written[i] ? values[i].number : *parameter.otherwise;
        }
        return values;
    }

    static size_t parameter_named(const SignalForm& form, std::string_view name, size_t begin) {
        for (size_t i = 0; i < form.parameters.size(); ++i) {
            if (form.parameters[i].name == name) {
                return i;
            }
        }
        refuse(begin, "'" + std::string(form.name) + "' has no argument '" + std::string(name) +
                          "': write " + form.text());
    }

    SignalValue value(const SignalParameter& parameter) {
        next();
        const size_t begin = at_;
        const bool sign = next() == '-';
        const bool digit_follows =
            at_ + sign < text_.size() && (is_digit(text_[at_ + sign]) || text_[at_ + sign] == '.');
        double number = 0;
        const char* const end = text_.data() + text_.size();
        const auto [stop, error] = std::from_chars(text_.data() + at_, end, number);
        // from_chars would also read "inf" and "nan".
        if (!digit_follows || error == std::errc::invalid_argument) {
            refuse(begin, "found '" + found() + "': write a number for '" +
                              std::string(parameter.name) + "'");
        }
        at_ = static_cast<size_t>(stop - text_.data());
        SignalValue value = with_unit(parameter, number);
        if (error != std::errc() || !(value.number >= parameter.smallest) ||
            !(value.number <= parameter.largest)) {
            refuse(begin, "'" + std::string(parameter.name) + "' is out of range: write " +
                              signal_number_text(parameter.smallest) + " to " +
                              signal_number_text(parameter.largest));
        }
        if (parameter.whole && value.number != std::floor(value.number)) {
            refuse(begin, "'" + std::string(parameter.name) + "' must be a whole number");
        }
        return value;
    }

    SignalValue with_unit(const SignalParameter& parameter, double number) {
        next();
        const size_t begin = at_;
        const std::string_view name = word();
        if (name.empty()) {
            return {number, false};
        }
        const std::optional<double> converted = in_base_unit(parameter.quantity, number, name);
        if (converted) {
            return {*converted, true};
        }
        refuse(begin, "'" + std::string(name) + "' is not a unit of '" +
                          std::string(parameter.name) + "': use " + units_of(parameter.quantity));
    }

    std::string_view text_;
    size_t at_ = 0;
};

// The part of a rule's claim that is still open; marks it as taken. False when there was none.
bool claim(const SignalRule& rule, ChannelRange range,
           std::span<const SignalRule*> rule_of_channel) {
    bool any = false;
    for (uint32_t channel = range.first; channel <= range.last; ++channel) {
        if (rule_of_channel[channel] == nullptr) {
            rule_of_channel[channel] = &rule;
            any = true;
        }
    }
    return any;
}

}  // namespace

std::vector<const SignalRule*> SignalSpec::rules_by_channel(uint32_t channels) const {
    std::vector<const SignalRule*> by_channel(channels, nullptr);
    for (const SignalRule& rule : rules) {
        if (rule.every_channel) {
            // "*" may be left with nothing: the same text then serves streams of any width.
            claim(rule, {0, channels - 1}, by_channel);
            continue;
        }
        bool any = false;
        for (const ChannelRange& range : rule.ranges) {
            if (range.last >= channels) {
                refuse(rule.character - 1, "channel " + std::to_string(range.last) +
                                               " does not exist: the stream has " +
                                               std::to_string(channels) + ", counted from 0");
            }
            any = claim(rule, range, by_channel) || any;
        }
        if (!any) {
            refuse(rule.character - 1,
                   "this rule never holds, since earlier ones name all its "
                   "channels: put it before them");
        }
    }
    return by_channel;
}

SignalSpec parse_signal(std::string_view text) {
    SignalSpec spec{std::string(text), {}};
    spec.rules = SignalParser(text).rules();
    return spec;
}

std::string default_signal(const Stream& stream) {
    const double rate = stream.rate.value();
    return "tone(f=" + signal_number_text(0.02 * rate) +
           ", df=" + signal_number_text(0.4 * rate / stream.geometry.channels) +
           ", a=8000) + noise(sigma=30)";
}

}  // namespace echelle
