// A terminal whose page is drawn anew again and again, until a key or a signal asks to end. Used by
// `echellectl top`; one thread. The terminal is given back as it was found.
#pragma once

#include <string>

#include <termios.h>

#include "common/file_descriptor.hpp"

namespace echelle {

class LiveTerminal {
  public:
    // Takes the keys of standard input, if that is a terminal, and SIGINT, SIGTERM and SIGHUP.
    LiveTerminal();
    LiveTerminal(const LiveTerminal&) = delete;
    LiveTerminal& operator=(const LiveTerminal&) = delete;
    ~LiveTerminal();

    // Whether standard output is a terminal at all. If not, pages are written one after the other.
    bool is_live() const { return is_live_; }
    // Draws these lines over the last ones; what does not fit is left out, with a word about it.
    void show(const std::string& page) const;
    // Waits; true when 'q' or a signal has asked to end.
    bool wait_for_end(int milliseconds) const;

  private:
    termios before_{};  // filled while takes_keys_ is made
    bool is_live_;
    bool takes_keys_;
    FileDescriptor signals_;
};

// The page in so many rows and columns: long lines are cut, and the last row tells how many lines
// were left out.
std::string fitted(const std::string& page, size_t rows, size_t columns);

}  // namespace echelle
