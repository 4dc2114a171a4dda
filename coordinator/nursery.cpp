#include "coordinator/nursery.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/fault_point.hpp"
#include "coordinator/log.hpp"

namespace echelle {
namespace {

// A killed process closes its files before it is dead; with much memory to give back, long before.
constexpr int patience_with_death_ms = 5000;
constexpr int64_t patience_with_dismissal_ns = 5'000'000'000;

FileDescriptor open_pidfd(pid_t pid) {
    return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool send_message(int socket, const NurseryMessage& message, int passed_fd) {
    NurseryMessage copy = message;
    iovec data{&copy, sizeof copy};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    if (passed_fd >= 0) {
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        cmsghdr* rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int));
        std::memcpy(CMSG_DATA(rights), &passed_fd, sizeof(int));
    }
    while (sendmsg(socket, &header, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

// 1: a message; 0: none now; -1: the other end is gone.
int receive_message(int socket, NurseryMessage& message, FileDescriptor& passed_fd) {
    iovec data{&message, sizeof message};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    ssize_t bytes = 0;
    do {
        bytes = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        // ECONNRESET is told once, when the peer closed without reading all of ours: what it had
        // sent before (a dismissal) is still there to be read.
    } while (bytes < 0 && (errno == EINTR || errno == ECONNRESET));
    if (bytes < 0) {
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    }
    if (bytes != sizeof message) {
        return -1;
    }
    for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr;
         part = CMSG_NXTHDR(&header, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
            int fd = -1;
            std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
            passed_fd = FileDescriptor(fd);
        }
    }
    return 1;
}

[[noreturn]] void be_a_worker(const WorkerSetup& setup, const WorkerIdentity& identity) {
    prctl(PR_SET_NAME, "echelle-worker");
    sigset_t none;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, nullptr);
    int code = 0;
    try {
        run_worker(setup, identity);
    } catch (const std::exception& error) {
        tell_error("worker " + std::to_string(identity.id) + " failed: " + error.what());
        code = 1;
    }
    // Not exit(): the coordinator's static objects are not this process's to destroy.
    _exit(code);
}

class NurseryProcess {
  public:
    NurseryProcess(const WorkerSetup& setup, Instance& instance, FileDescriptor socket)
        : setup_(setup), instance_(instance), socket_(std::move(socket)) {
        sigset_t child;
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        pthread_sigmask(SIG_SETMASK, &child, nullptr);
        signals_ = FileDescriptor(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
    }

    [[noreturn]] void run() {
        while (true) {
            std::array<pollfd, 3> watched{pollfd{socket_.get(), POLLIN, 0},
                                          pollfd{signals_.get(), POLLIN, 0},
                                          pollfd{setup_.coordinator_end, POLLIN, 0}};
            // The timeout makes good a SIGCHLD that was merged with another.
            if (poll(watched.data(), watched.size(), 1000) < 0 && errno != EINTR) {
                break;
            }
            if (watched[2].revents != 0) {
                break;
            }
            reap();
            if (!answer_requests()) {
                break;
            }
        }
        end();
    }

  private:
    bool answer_requests() {
        NurseryMessage request;
        FileDescriptor unused;
        int got = 0;
        while ((got = receive_message(socket_.get(), request, unused)) > 0) {
            dismissed_ = request.kind == NurseryMessage::Kind::dismiss;
            if (dismissed_ || (request.kind == NurseryMessage::Kind::spawn && !spawn(request))) {
                return false;
            }
        }
        return got == 0;
    }

    bool spawn(const NurseryMessage& request) {
        NurseryMessage answer = request;
        ECHELLE_FAULT_POINT("nursery.asked");
        const pid_t pid = fork();
        if (pid == 0) {
            socket_.close();
            signals_.close();
            instance_.forget_lock();
            WorkerIdentity identity{request.id, request.incarnation, std::nullopt};
            if (request.cpu >= 0) {
                identity.cpu = static_cast<unsigned int>(request.cpu);
            }
            be_a_worker(setup_, identity);
        }
        if (pid < 0) {
            answer.kind = NurseryMessage::Kind::spawn_failed;
            answer.status = errno;
            return send_message(socket_.get(), answer, -1);
        }
        ECHELLE_FAULT_POINT("nursery.forked");
        workers_.push_back(pid);
        answer.kind = NurseryMessage::Kind::spawned;
        answer.pid = pid;
        // The child is not reaped before the answer is sent: the pid cannot mean another process.
        const FileDescriptor pidfd = open_pidfd(pid);
        const bool sent = send_message(socket_.get(), answer, pidfd.get());
        ECHELLE_FAULT_POINT("nursery.answered");
        return sent;
    }

    void reap() {
        signalfd_siginfo seen{};
        while (read(signals_.get(), &seen, sizeof seen) > 0) {
        }
        int status = 0;
        pid_t pid = 0;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            std::erase(workers_, pid);
            NurseryMessage message;
            message.kind = NurseryMessage::Kind::ended;
            message.pid = pid;
            message.status = status;
            send_message(socket_.get(), message, -1);
        }
    }

    [[noreturn]] void end() {
        for (const pid_t pid : workers_) {
            kill(pid, SIGKILL);
        }
        for (const pid_t pid : workers_) {
            while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
            }
        }
        // A coordinator that ends in order removes its files itself; a killed one cannot. Its
        // socket closes a moment before its end is told.
        pollfd coordinator{setup_.coordinator_end, POLLIN, 0};
        if (!dismissed_ && poll(&coordinator, 1, patience_with_death_ms) > 0) {
            instance_.remove_files();
        }
        _exit(0);
    }

    const WorkerSetup& setup_;
    Instance& instance_;
    FileDescriptor socket_;
    FileDescriptor signals_;
    std::vector<pid_t> workers_;
    bool dismissed_ = false;
};

}  // namespace

NurserySockets make_nursery_sockets() {
    std::array<int, 2> sockets{-1, -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
        throw RunError("cannot make the nursery's socket: " + errno_text());
    }
    NurserySockets made;
    made.ours = FileDescriptor(sockets[0]);
    made.theirs = FileDescriptor(sockets[1]);
    return made;
}

void run_nursery(const WorkerSetup& setup, Instance& instance, FileDescriptor socket) {
    prctl(PR_SET_NAME, "echelle-nursery");
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    NurseryProcess(setup, instance, std::move(socket)).run();
}

Nursery Nursery::start(const WorkerSetup& setup, Instance& instance, LifeLine& life_line,
                       const std::function<void()>& let_go) {
    NurserySockets sockets = make_nursery_sockets();
    const pid_t pid = fork();
    if (pid < 0) {
        throw RunError("cannot fork the nursery: " + errno_text() +
                       "; is the limit on processes reached (ulimit -u)?");
    }
    if (pid == 0) {
        sockets.ours.close();
        life_line.let_go();
        let_go();
        run_nursery(setup, instance, std::move(sockets.theirs));
    }
    return Nursery(pid, std::move(sockets.ours));
}

Nursery& Nursery::operator=(Nursery&& other) noexcept {
    if (this != &other) {
        end();
        pid_ = other.pid_;
        socket_ = std::move(other.socket_);
        alive_ = other.alive_;
    }
    return *this;
}

Nursery::~Nursery() {
    end();
}

void Nursery::end() {
    if (pid_ <= 0 || !socket_) {
        return;  // moved from
    }
    NurseryMessage message;
    message.kind = NurseryMessage::Kind::dismiss;
    send_message(socket_.get(), message, -1);  // fails when it is gone, which is as good
    socket_.close();
    // One that is stopped doesn't read its dismissal.
    int64_t deadline = monotonic_ns() + patience_with_dismissal_ns;
    int ended = 0;
    while ((ended = waitpid(pid_, nullptr, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        if (monotonic_ns() > deadline) {
            kill(pid_, SIGKILL);
            deadline = INT64_MAX;
        }
        const timespec pause{0, 500'000};
        nanosleep(&pause, nullptr);
    }
}

Nursery::Request Nursery::request_spawn(const WorkerIdentity& identity) {
    NurseryMessage message;
    message.kind = NurseryMessage::Kind::spawn;
    message.id = identity.id;
    message.incarnation = identity.incarnation;
    message.cpu = identity.cpu ? static_cast<int32_t>(*identity.cpu) : -1;
    while (alive_ &&
           send(socket_.get(), &message, sizeof message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return Request::busy;
        }
        alive_ = errno == EINTR;
    }
    return alive_ ? Request::sent : Request::gone;
}

std::optional<Nursery::Answer> Nursery::receive() {
    Answer answer;
    const int got = receive_message(socket_.get(), answer.message, answer.pidfd);
    if (got < 0) {
        alive_ = false;
    }
    return got > 0 ? std::optional<Answer>(std::move(answer)) : std::nullopt;
}

}  // namespace echelle
