//! The ring of spectra in shared memory: what a coordinator on this machine made, without copies.
//! docs/feed.md defines every byte.

use std::path::PathBuf;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::errors::FeedError::{self, FeedEnded, FeedTimeout, FeedUnusable};
use crate::feed::{feed_endpoint, subscribe, SubscribeOptions, Subscriber};
use crate::ring_door::{receive_region, Region, MAGIC};
use crate::spectrum::Spectrum;

const HEADER_BYTES: usize = 256;
const SLOT_HEADER_BYTES: u64 = 32;
const HEAD_AT: usize = 128;
const STATE_AT: usize = 136;
const STATE_ENDED: u32 = 2;

/// One packet in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingEntry {
    /// Counts the packets of all channels.
    pub position: u64,
    /// Of the channel's spectrum.
    pub sequence: u64,
    /// CLOCK_MONOTONIC when it was written.
    pub written_ns: i64,
    /// The channel's number.
    pub channel: u32,
    /// Of the packet.
    pub packet_bytes: u32,
}

/// Where slots lie in the region, checked once.
#[derive(Debug, Clone, Copy)]
struct Layout {
    slots_offset: u64,
    slot_count: u64,
    slot_stride: u64,
    packet_offset: u64,
    packet_bytes_most: u32,
}

/// Reads every spectrum of every channel from now on; made by [`open_ring`].
///
/// As an iterator it gives copies that nobody writes any more. [`next_entry`](Self::next_entry) and
/// [`packet_address`](Self::packet_address) read in place.
#[derive(Debug)]
pub struct SpectrumRingReader {
    feed: Subscriber,
    region: Region,
    layout: Layout,
    position: u64,
    missed: u64,
    timeout: Option<Duration>,
}

/// The ring of spectra of an instance on this machine, by its name or its feed's endpoint.
///
/// `timeout`: without a spectrum for so long, the iterator gives [`FeedTimeout`]; nothing: never.
pub fn open_ring(target: &str, timeout: Option<Duration>) -> Result<SpectrumRingReader, FeedError> {
    let region = receive_region(&ring_socket_of(target)?)?;
    let layout = read_layout(&region)?;
    // Every spectrum is written while somebody subscribes to ring/.
    let feed = subscribe(
        target,
        SubscribeOptions {
            topics: vec!["ring/".into()],
            queue: 16,
            ..SubscribeOptions::channels([])
        },
    )?;
    let mut ring = SpectrumRingReader {
        feed,
        region,
        layout,
        position: 0,
        missed: 0,
        timeout,
    };
    ring.position = ring.head();
    Ok(ring)
}

fn ring_socket_of(target: &str) -> Result<PathBuf, FeedError> {
    let endpoint = feed_endpoint(target);
    endpoint
        .strip_prefix("ipc://")
        .and_then(|path| path.strip_suffix("/feed"))
        .map(|directory| PathBuf::from(directory).join("spectra"))
        .ok_or_else(|| {
            FeedUnusable(format!(
                "the ring of {endpoint} is not on this machine: name an instance, or ipc://…/feed"
            ))
        })
}

fn read_layout(region: &Region) -> Result<Layout, FeedError> {
    let unfit = || FeedUnusable("the ring's slots do not fit into its region".into());
    if region.bytes() < HEADER_BYTES {
        return Err(unfit());
    }
    let load32 = |at| u64::from(region.load32(at, Ordering::Relaxed));
    let load64 = |at| region.load64(at, Ordering::Relaxed);
    let version = load32(8) >> 16;
    if load64(0) != u64::from_le_bytes(*MAGIC) || version != 1 {
        return Err(FeedUnusable(format!(
            "not a ring of spectra of version 1, but {version}"
        )));
    }
    let layout = Layout {
        slots_offset: load32(12),
        slot_count: load64(16),
        slot_stride: load64(24),
        packet_offset: load32(40),
        packet_bytes_most: load32(44) as u32,
    };
    let slots_bytes = layout.slot_count.checked_mul(layout.slot_stride);
    let end = slots_bytes.and_then(|bytes| bytes.checked_add(layout.slots_offset));
    let fits = layout.slots_offset >= HEADER_BYTES as u64
        && layout.slots_offset % 8 == 0
        && layout.slot_count > 0
        && layout.slot_stride % 64 == 0
        && layout.packet_offset >= SLOT_HEADER_BYTES
        && layout.packet_offset % 4 == 0
        && layout.packet_offset + u64::from(layout.packet_bytes_most) <= layout.slot_stride
        && end.map_or(false, |end| end <= region.bytes() as u64);
    if fits {
        Ok(layout)
    } else {
        Err(unfit())
    }
}

impl Region {
    fn check(&self, at: usize, bytes: usize) {
        assert!(at % bytes == 0 && at + bytes <= self.bytes());
    }

    fn load32(&self, at: usize, order: Ordering) -> u32 {
        self.check(at, 4);
        // SAFETY: aligned and inside, as was checked: mappings begin at a page.
        u32::from_le(unsafe { (*self.address().add(at).cast::<AtomicU32>()).load(order) })
    }

    fn load64(&self, at: usize, order: Ordering) -> u64 {
        self.check(at, 8);
        // SAFETY: as above.
        u64::from_le(unsafe { (*self.address().add(at).cast::<AtomicU64>()).load(order) })
    }

    /// Copies bytes that somebody may be writing; `at` is a multiple of 4, and what lies between the
    /// last byte and the next multiple of 8 is in the region.
    fn copy(&self, at: usize, to: &mut [u8]) {
        let first = if at % 8 == 0 { 0 } else { to.len().min(4) };
        let (head, rest) = to.split_at_mut(first);
        if first > 0 {
            head.copy_from_slice(&self.load32(at, Ordering::Relaxed).to_le_bytes()[..first]);
        }
        let mut from = at + first;
        let mut words = rest.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.load64(from, Ordering::Relaxed).to_le_bytes());
            from += 8;
        }
        let last = words.into_remainder();
        if !last.is_empty() {
            let word = self.load64(from, Ordering::Relaxed).to_le_bytes();
            last.copy_from_slice(&word[..last.len()]);
        }
    }
}

impl SpectrumRingReader {
    /// Packets written so far.
    pub fn head(&self) -> u64 {
        self.region.load64(HEAD_AT, Ordering::Acquire)
    }

    /// Where a position's slot begins.
    fn slot(&self, position: u64) -> usize {
        let Layout {
            slots_offset,
            slot_count,
            slot_stride,
            ..
        } = self.layout;
        (slots_offset + position % slot_count * slot_stride) as usize
    }

    /// The next packet, or nothing when none is there yet.
    pub fn next_entry(&mut self) -> Option<RingEntry> {
        while self.position < self.head() {
            let position = self.position;
            let at = self.slot(position);
            if self.region.load64(at, Ordering::Acquire) == complete(position) {
                let entry = RingEntry {
                    position,
                    sequence: self.region.load64(at + 8, Ordering::Relaxed),
                    written_ns: self.region.load64(at + 16, Ordering::Relaxed) as i64,
                    channel: self.region.load32(at + 24, Ordering::Relaxed),
                    packet_bytes: self.region.load32(at + 28, Ordering::Relaxed),
                };
                if entry.packet_bytes <= self.layout.packet_bytes_most {
                    self.position += 1;
                    return Some(entry);
                }
            }
            self.skip_what_is_gone();
        }
        None
    }

    /// A quarter of the ring is room to come abreast.
    fn skip_what_is_gone(&mut self) {
        let oldest = self.head().saturating_sub(self.layout.slot_count);
        let go_on_at = (oldest + self.layout.slot_count / 4).max(self.position + 1);
        self.missed += go_on_at - self.position;
        self.position = go_on_at;
    }

    /// Whether the entry was not overwritten up to now, while it was used. If it was, it counts as
    /// missed, and what was made of it is to be forgotten.
    pub fn confirm(&mut self, entry: &RingEntry) -> bool {
        fence(Ordering::Acquire);
        let at = self.slot(entry.position);
        let holds = self.region.load64(at, Ordering::Acquire) == complete(entry.position);
        self.missed += u64::from(!holds);
        holds
    }

    /// Where the entry's `packet_bytes` stand in shared memory; the values begin 20 bytes later, at
    /// a multiple of 64. The coordinator may overwrite them at any time: whoever reads them trusts
    /// nothing before [`confirm`](Self::confirm). They are mapped as long as this reader lives.
    pub fn packet_address(&self, entry: &RingEntry) -> *const u8 {
        let at = self.slot(entry.position) + self.layout.packet_offset as usize;
        // SAFETY: slots lie inside the region.
        unsafe { self.region.address().add(at) }
    }

    /// A copy of the entry's bytes; nothing, and counted as missed, if it was overwritten before
    /// the copy was complete.
    pub fn copy_packet(&mut self, entry: &RingEntry) -> Option<Vec<u8>> {
        let most = self.layout.packet_bytes_most;
        let mut bytes = vec![0; entry.packet_bytes.min(most) as usize];
        let at = self.slot(entry.position) + self.layout.packet_offset as usize;
        self.region.copy(at, &mut bytes);
        self.confirm(entry).then(|| bytes)
    }

    /// Waits for news of the ring; false when none came in time.
    pub fn wait(&mut self, timeout: Duration) -> Result<bool, FeedError> {
        let mut left = timeout;
        loop {
            match self.feed.receive_within(Some(left)) {
                Ok(_) => left = Duration::ZERO, // and whatever else is there
                // It may have been killed: what it wrote is still there.
                Err(FeedTimeout(_)) | Err(FeedEnded(_)) => return Ok(self.position < self.head()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Packets of all channels that this reader was too slow for.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The run has ended, and everything was read.
    pub fn ended(&self) -> bool {
        let state = self.region.load32(STATE_AT, Ordering::Acquire);
        (state == STATE_ENDED || self.feed.ended()) && self.position >= self.head()
    }

    /// Of the instance.
    pub fn channels(&self) -> u32 {
        self.region.load32(48, Ordering::Relaxed)
    }
}

/// The sequence of a slot in which a position is complete.
fn complete(position: u64) -> u64 {
    position.wrapping_mul(2).wrapping_add(2)
}

impl Iterator for SpectrumRingReader {
    type Item = Result<Spectrum, FeedError>;

    fn next(&mut self) -> Option<Self::Item> {
        let quiet_since = Instant::now();
        while !self.ended() {
            if let Some(entry) = self.next_entry() {
                if let Some(bytes) = self.copy_packet(&entry) {
                    return Some(Spectrum::decode(bytes).map_err(FeedError::from));
                }
                continue;
            }
            if let Some(timeout) = self.timeout {
                if quiet_since.elapsed() > timeout {
                    let words = format!("no spectrum came in {timeout:?}");
                    return Some(Err(FeedTimeout(words)));
                }
            }
            // Notices may be lost: looked at all the same.
            if let Err(error) = self.wait(Duration::from_millis(100)) {
                return Some(Err(error));
            }
        }
        None
    }
}
