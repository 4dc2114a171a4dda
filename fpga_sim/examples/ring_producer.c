/* A producer of frames in plain C11: what a card's driver has to do, and nothing else.
 *
 *     ring_producer NAME [ramp|tone] [FRAMES_PER_SECOND] [FRAMES]
 *
 * makes the ring NAME (/dev/shm/echelle-NAME), fills it with frames of 8 channels x 2048 samples at
 * the given rate, and ends it on SIGINT or SIGTERM or after FRAMES frames. It needs only the C
 * library; every offset below is the one of docs/ring.md. To read it:
 *
 *     echelle-coordinator --source ring:NAME
 *
 * This producer is live: it never waits for its reader, it overwrites the oldest frame. The places
 * where a card's driver differs are marked DRIVER.
 */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier): asks for syscall() */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* NOLINTBEGIN(clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling): the functions
 * of Annex K that it asks for are not in Linux's C library. */

enum { channels = 8, samples = 2048, slots = 64, page = 4096 };
enum { sample_format_i16 = 1, layout_channel_major = 1 };
enum { state_preparing = 0, state_running = 1, state_ended = 2 };

/* ---- the layout: docs/ring.md ---- */

struct header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes;
    uint32_t channels;
    uint32_t samples;
    uint32_t format;
    uint32_t layout;
    uint64_t rate_num;
    uint64_t rate_den;
    int64_t epoch_ns;
    uint64_t slot_count;
    uint64_t slot_stride;
    uint64_t frames_offset;
    uint64_t region_bytes;
    int32_t over_range_low;
    int32_t over_range_high;
    uint32_t producer_pid;
    uint32_t producer_wakes;
    uint64_t producer_start;
    uint8_t zero0[16];
    _Atomic uint64_t head; /* written by the producer */
    _Atomic uint32_t head_futex;
    _Atomic uint32_t producer_state;
    uint8_t zero1[48];
    _Atomic uint64_t tail; /* written by the consumer */
    _Atomic uint32_t tail_futex;
    _Atomic uint32_t consumer_pid;
    _Atomic uint64_t consumer_start;
    _Atomic uint64_t consumer_wants; /* an earlier wake would be in vain; this producer does them all */
    uint8_t zero2[32];
};
_Static_assert(offsetof(struct header, producer_start) == 104, "layout");
_Static_assert(offsetof(struct header, head) == 128, "layout");
_Static_assert(offsetof(struct header, tail) == 192, "layout");
_Static_assert(sizeof(struct header) == 256, "layout");

struct slot {
    _Atomic uint64_t sequence;
    uint64_t frame_index;
    uint64_t first_sample;
    int64_t complete_ns;
    uint32_t valid_samples;
    uint32_t flags;
    uint8_t zero[24];
};
_Static_assert(sizeof(struct slot) == 64, "layout");

struct ring {
    struct header* header;
    struct slot* table;
    unsigned char* frames;
    size_t bytes;
    uint64_t position; /* frames published so far */
    char path[128];
};

/* ---- making the region ---- */

/* Field 22 of /proc/self/stat. 0 when it cannot be had: then the pid alone tells who we are. */
static uint64_t own_start_ticks(void) {
    char line[1024];
    unsigned long long ticks = 0;
    FILE* file = fopen("/proc/self/stat", "r");
    if (file == NULL) {
        return 0;
    }
    /* The command name in field 2 may hold anything: fields are counted after its last ')'. */
    const char* name_end = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    if (name_end == NULL ||
        sscanf(name_end + 1,
               " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
               &ticks) != 1) {
        return 0;
    }
    return ticks;
}

static void fill_header(struct header* header, size_t region_bytes) {
    memcpy(header->magic, "ECHRING", 8); /* with its terminating zero */
    header->version = 0x00010000;
    header->header_bytes = sizeof *header;
    header->channels = channels;
    header->samples = samples;
    header->format = sample_format_i16;
    header->layout = layout_channel_major;
    header->rate_num = 10000000; /* DRIVER: the ADC's rate, of each channel */
    header->rate_den = 1;
    header->epoch_ns = 0; /* DRIVER: Unix time of sample 0 if the card knows it */
    header->slot_count = slots;
    header->slot_stride = (uint64_t)channels * samples * sizeof(int16_t); /* 8 pages */
    header->frames_offset =
        (sizeof(struct header) + slots * sizeof(struct slot) + page - 1) / page * page;
    header->region_bytes = region_bytes;
    header->over_range_low = -32768; /* DRIVER: the ADC's rails */
    header->over_range_high = 32767;
    /* DRIVER: leave the pid 0 if no process's death would mean the end of the frames. */
    header->producer_pid = (uint32_t)getpid();
    header->producer_start = own_start_ticks();
    /* DRIVER: 0 if it cannot call FUTEX_WAKE (a card that writes `head` by DMA). */
    header->producer_wakes = 1;
}

static int fail(struct ring* ring, const char* what) {
    const int error = errno;
    char message[192];
    snprintf(message, sizeof message, "ring_producer: cannot %s %s", what, ring->path);
    errno = error;
    perror(message);
    return -1;
}

static int make_ring(struct ring* ring, const char* name) {
    ring->bytes = (sizeof(struct header) + slots * sizeof(struct slot) + page - 1) / page * page +
                  (size_t)slots * channels * samples * sizeof(int16_t);
    snprintf(ring->path, sizeof ring->path, "/dev/shm/echelle-%s", name);
    /* Always a new file, never an old one filled anew: a reader may still have the old one mapped,
     * and must not see it change or shrink. O_EXCL: two producers do not share a name. */
    const int fd = open(ring->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        if (errno == EEXIST) {
            fprintf(stderr, "ring_producer: %s exists: if no producer runs, remove it\n",
                    ring->path);
            return -1;
        }
        return fail(ring, "make");
    }
    /* Reserves the memory now. With ftruncate alone, a full /dev/shm would kill us with SIGBUS at
     * the first touch of a page that cannot be had. */
    errno = posix_fallocate(fd, 0, (off_t)ring->bytes);
    void* region = MAP_FAILED;
    if (errno == 0) {
        region = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (region == MAP_FAILED) {
        fail(ring, "reserve and map");
        unlink(ring->path);
        close(fd);
        return -1;
    }
    close(fd); /* the mapping stays */
    ring->header = region;
    fill_header(ring->header, ring->bytes);
    ring->table = (struct slot*)((unsigned char*)region + ring->header->header_bytes);
    ring->frames = (unsigned char*)region + ring->header->frames_offset;
    ring->position = 0;
    /* Release: whoever reads "running" sees the whole header. It does not change any more. */
    atomic_store_explicit(&ring->header->producer_state, state_running, memory_order_release);
    return 0;
}

/* ---- publishing frames ---- */

static int64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wake(_Atomic uint32_t* word) {
    /* Without FUTEX_PRIVATE_FLAG: the reader is another process. */
    syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Before the first sample of a frame is written. */
static int16_t* begin_frame(struct ring* ring) {
    struct slot* slot = &ring->table[ring->position % slots];
    /* Odd: what stands in this slot is not whole. */
    atomic_store_explicit(&slot->sequence, 2 * ring->position + 1, memory_order_relaxed);
    /* No sample may be written before it. DRIVER: with DMA, this store has to reach memory before
     * the transfer is started. */
    atomic_thread_fence(memory_order_release);
    return (int16_t*)(ring->frames + (ring->position % slots) * ring->header->slot_stride);
}

/* After the last. `frame_index` is the source's own count: where it jumps, frames were lost. */
static void commit_frame(struct ring* ring, uint64_t frame_index) {
    struct slot* slot = &ring->table[ring->position % slots];
    slot->frame_index = frame_index;
    slot->first_sample = frame_index * samples;
    slot->complete_ns = monotonic_ns();
    slot->valid_samples = samples;
    slot->flags = 0; /* 1 when samples are missing between the frame before and this one */
    /* Release: whoever reads this sequence sees the samples and the stamp. */
    atomic_store_explicit(&slot->sequence, 2 * ring->position + 2, memory_order_release);
    ring->position += 1;
    atomic_store_explicit(&ring->header->head, ring->position, memory_order_release);
    atomic_store_explicit(&ring->header->head_futex, (uint32_t)ring->position,
                          memory_order_release);
    wake(&ring->header->head_futex);
}

/* No more frames will come. The reader takes what is there; the file can go, its mapping stays. */
static void end_ring(struct ring* ring) {
    atomic_store_explicit(&ring->header->producer_state, state_ended, memory_order_release);
    wake(&ring->header->head_futex);
    unlink(ring->path);
    munmap(ring->header, ring->bytes);
}

/* ---- what is in the frames ---- */

/* Each channel counts up by one per sample and begins 1000 above the one before it. */
static void fill_ramp(int16_t* frame, uint64_t first_sample) {
    for (unsigned channel = 0; channel < channels; ++channel) {
        for (unsigned i = 0; i < samples; ++i) {
            /* Wraps modulo 2^16, like a counter in the card's test-pattern generator. */
            frame[(size_t)channel * samples + i] =
                (int16_t)(uint16_t)(first_sample + i + (uint64_t)1000 * channel);
        }
    }
}

/* A sine of 16 samples per period, 625 kHz at 10 MS/s; each channel has half the amplitude of the
 * one before it. */
static void fill_tone(int16_t* frame, uint64_t first_sample) {
    static const int16_t period[16] = {0, 7654,  14142,  18478,  20000,  18478,  14142,  7654,
                                       0, -7654, -14142, -18478, -20000, -18478, -14142, -7654};
    for (unsigned channel = 0; channel < channels; ++channel) {
        for (unsigned i = 0; i < samples; ++i) {
            frame[(size_t)channel * samples + i] =
                (int16_t)(period[(first_sample + i) % 16] / (1 << channel));
        }
    }
}

static volatile sig_atomic_t stop = 0;

static void ask_to_stop(int signal_number) {
    (void)signal_number;
    stop = 1;
}

static void catch_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = ask_to_stop;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* How long `frames` frames take. In two parts, so that no product overflows within centuries. */
static int64_t frames_ns(uint64_t frames, uint64_t per_second) {
    return (int64_t)(frames / per_second * 1000000000 +
                     frames % per_second * 1000000000 / per_second);
}

/* Until `deadline_ns`, or a signal. */
static void sleep_until(int64_t deadline_ns) {
    const struct timespec wake_at = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    while (!stop && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake_at, NULL) == EINTR) {
    }
}

/* A number from `least` up to 10 million, or -1. */
static long parse(const char* text, long least) {
    char* end = NULL;
    errno = 0;
    const long value = strtol(text, &end, 10);
    return errno != 0 || end == text || *end != '\0' || value < least || value > 10000000 ? -1
                                                                                          : value;
}

static int usage(void) {
    fprintf(stderr,
            "usage: ring_producer NAME [ramp|tone] [FRAMES_PER_SECOND] [FRAMES]\n"
            "  NAME: 1 to 64 letters, digits, '-', '_' or '.'; FRAMES: 0 until stopped\n");
    return 2;
}

int main(int argc, char** argv) {
    const char* signal_name = argc > 2 ? argv[2] : "tone";
    const long per_second = argc > 3 ? parse(argv[3], 1) : 4883; /* 10 MS/s over 2048 samples */
    const long frames = argc > 4 ? parse(argv[4], 0) : 0;
    const int is_ramp = strcmp(signal_name, "ramp") == 0;
    if (argc < 2 || argc > 5 || per_second < 0 || frames < 0 ||
        (!is_ramp && strcmp(signal_name, "tone") != 0) || strlen(argv[1]) < 1 ||
        strlen(argv[1]) > 64 || strchr(argv[1], '/') != NULL) {
        return usage();
    }
    struct ring ring;
    if (make_ring(&ring, argv[1]) != 0) {
        return 1;
    }
    catch_signals();
    const int64_t start_ns = monotonic_ns();
    for (uint64_t index = 0; !stop && (frames == 0 || index < (uint64_t)frames); ++index) {
        int16_t* frame = begin_frame(&ring);
        (is_ramp ? fill_ramp : fill_tone)(frame, index * samples);
        /* A frame is complete when its last sample has been taken. */
        sleep_until(start_ns + frames_ns(index + 1, (uint64_t)per_second));
        if (stop) {
            break; /* begun and never committed: the reader does not see it */
        }
        commit_frame(&ring, index);
    }
    end_ring(&ring);
    return 0;
}

/* NOLINTEND(clang-analyzer-security.insecureAPI.DeprecatedOrUnsafeBufferHandling) */
