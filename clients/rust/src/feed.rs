//! The feed of a running coordinator: spectra, events and figures while they are made. docs/feed.md
//! defines topics and messages.

use std::collections::HashMap;
use std::env;
use std::ffi::CString;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::errors::FeedError::{self, FeedEnded, FeedTimeout, FeedUnusable};
use crate::keys::Keys;
use crate::packet::PacketCoding;
use crate::spectrum::Spectrum;
use crate::zmq::SubSocket;

const LONGEST_MESSAGE: i64 = 64 << 20;
const LOOK: Duration = Duration::from_secs(1); // how often a quiet feed is looked after

/// The endpoint of an instance's feed by its name; an endpoint (`…://…`) stays as it is.
pub fn feed_endpoint(target: &str) -> String {
    if target.contains("://") {
        return target.into();
    }
    let runtime = env::var("XDG_RUNTIME_DIR").unwrap_or_default();
    if runtime.starts_with('/') && is_writable(&runtime) {
        return format!("ipc://{runtime}/echelle/{target}/feed");
    }
    // SAFETY: asks for a number.
    let user = unsafe { libc::getuid() };
    format!("ipc:///tmp/echelle-{user}/{target}/feed")
}

fn is_writable(path: &str) -> bool {
    // SAFETY: a string that ends with a zero.
    CString::new(path).map_or(false, |path| unsafe {
        libc::access(path.as_ptr(), libc::W_OK) == 0
    })
}

/// The time that is left; nothing where there is no limit, or one beyond what the clock can tell.
fn left_until(deadline: Option<Instant>) -> Option<Duration> {
    deadline.map(|at| at.saturating_duration_since(Instant::now()))
}

/// What to subscribe to, and how.
#[derive(Debug, Clone)]
pub struct SubscribeOptions {
    /// Nothing: all.
    pub channels: Option<Vec<u32>>,
    /// `Float16` or `Decibel8` for fewer bytes.
    pub coding: PacketCoding,
    /// What else, such as `event/` and `stat/`; see [`Subscriber::receive`].
    pub topics: Vec<String>,
    /// Messages that may wait here.
    pub queue: i32,
    /// Without a message for so long, [`FeedTimeout`] is given. Nothing: never.
    pub timeout: Option<Duration>,
    /// For tcp with keys: the public key of the feed.
    pub server_key: Option<String>,
    /// For tcp with keys: the subscriber's own.
    pub key_pair: Option<Keys>,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self {
            channels: None,
            coding: PacketCoding::Float32,
            topics: Vec::new(),
            queue: 1000,
            timeout: None,
            server_key: None,
            key_pair: None,
        }
    }
}

impl SubscribeOptions {
    /// The default for some channels only.
    pub fn channels(channels: impl IntoIterator<Item = u32>) -> Self {
        Self {
            channels: Some(channels.into_iter().collect()),
            ..Self::default()
        }
    }

    /// In the order in which they are subscribed to: who subscribes to hello/ first has the
    /// description before any spectrum.
    fn all_topics(&self) -> Vec<String> {
        let name = match self.coding {
            PacketCoding::Float32 => "psd/",
            PacketCoding::Float16 => "psd16/",
            PacketCoding::Decibel8 => "psd8/",
        };
        let mut topics = vec!["hello/".to_string(), "event/end".to_string()];
        match &self.channels {
            None => topics.push(name.into()),
            Some(channels) => topics.extend(channels.iter().map(|c| format!("{name}{c:05}"))),
        }
        topics.extend(self.topics.iter().cloned());
        topics
    }
}

/// One message of the feed.
#[derive(Debug, Clone)]
pub enum FeedMessage {
    /// Of `psd/`, `psd16/` or `psd8/`.
    Spectrum(Spectrum),
    /// Of any other topic: what an event, figures or a hello say, as JSON.
    Other {
        /// Such as `event/gap`.
        topic: String,
        /// As it came.
        payload: Vec<u8>,
    },
}

/// Spectra while they are made, as an iterator that ends with the run; made by [`subscribe`].
#[derive(Debug)]
pub struct Subscriber {
    socket: SubSocket,
    endpoint: String,
    timeout: Option<Duration>,
    hello: Option<String>,
    sequences: HashMap<u32, u64>, // the last one seen of each channel
    missed: u64,
    ended: bool,
}

/// Subscribes to the spectra of an instance, by its name or its feed's endpoint.
pub fn subscribe(target: &str, options: SubscribeOptions) -> Result<Subscriber, FeedError> {
    let endpoint = feed_endpoint(target);
    let refused =
        |words: String| FeedUnusable(format!("the feed {endpoint} cannot be used: {words}"));
    let socket = SubSocket::new().map_err(refused)?;
    socket
        .bound_queue(options.queue, LONGEST_MESSAGE)
        .map_err(refused)?;
    if let Some(server_key) = &options.server_key {
        let own = options.key_pair.clone().unwrap_or_default();
        socket
            .use_keys(server_key, &own.public, &own.secret)
            .map_err(|words| {
                refused(format!(
                    "{words}; keys have 40 characters, and the secret one is needed"
                ))
            })?;
    }
    socket.connect(&endpoint).map_err(refused)?;
    for topic in options.all_topics() {
        socket.subscribe(&topic).map_err(refused)?;
    }
    Ok(Subscriber {
        socket,
        endpoint,
        timeout: options.timeout,
        hello: None,
        sequences: HashMap::new(),
        missed: 0,
        ended: false,
    })
}

impl Subscriber {
    /// The next message of any topic.
    pub fn receive(&mut self) -> Result<FeedMessage, FeedError> {
        self.receive_within(self.timeout)
    }

    /// The same with a time-out of its own.
    pub fn receive_within(&mut self, timeout: Option<Duration>) -> Result<FeedMessage, FeedError> {
        self.wait(timeout)?;
        let parts = self.socket.take().map_err(|words| {
            FeedUnusable(format!(
                "the feed {} cannot be read: {words}",
                self.endpoint
            ))
        })?;
        let mut parts = parts.into_iter();
        let topic = String::from_utf8_lossy(&parts.next().unwrap_or_default()).into_owned();
        let payload = parts.next().unwrap_or_default();
        let message = if topic.starts_with("psd/") {
            FeedMessage::Spectrum(Spectrum::decode(payload)?)
        } else if topic.starts_with("psd16/") || topic.starts_with("psd8/") {
            FeedMessage::Spectrum(Spectrum::decode_coded(payload)?)
        } else {
            FeedMessage::Other { topic, payload }
        };
        self.notice(&message);
        Ok(message)
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), FeedError> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = left_until(deadline).unwrap_or(LOOK);
            let came = self.socket.wait(left.min(LOOK)).map_err(|words| {
                FeedUnusable(format!(
                    "the feed {} cannot be waited for: {words}",
                    self.endpoint
                ))
            })?;
            if came {
                return Ok(());
            }
            if self.is_gone() {
                self.ended = true;
                return Err(FeedEnded(format!("the run at {} has ended", self.endpoint)));
            }
            if deadline.map_or(false, |at| Instant::now() >= at) {
                return Err(FeedTimeout(format!(
                    "nothing came from {} in {:?}: is a coordinator running?",
                    self.endpoint,
                    timeout.unwrap_or_default()
                )));
            }
        }
    }

    /// event/end passes a full queue by; but the coordinator removes its socket as well.
    fn is_gone(&self) -> bool {
        match self.endpoint.strip_prefix("ipc://") {
            Some(path) => {
                self.hello.is_some() && path.starts_with('/') && !Path::new(path).exists()
            }
            None => false,
        }
    }

    fn notice(&mut self, message: &FeedMessage) {
        match message {
            FeedMessage::Other { topic, payload } if topic == "hello/" => {
                let description = String::from_utf8_lossy(payload);
                if self.hello.as_deref() != Some(&*description) {
                    self.sequences.clear(); // another run: its spectra are counted anew
                    self.hello = Some(description.into_owned());
                }
            }
            FeedMessage::Other { topic, .. } => self.ended |= topic == "event/end",
            FeedMessage::Spectrum(spectrum) => {
                let packet = spectrum.packet();
                let trailer = match packet.trailer {
                    Some(trailer) => trailer,
                    None => return,
                };
                let last = self.sequences.insert(packet.channel_id, trailer.sequence);
                if let Some(between) = last.and_then(|last| trailer.sequence.checked_sub(last)) {
                    self.missed += between.saturating_sub(1);
                }
            }
        }
    }

    /// The instance's description (JSON), once it has come: before any spectrum.
    pub fn hello(&self) -> Option<&str> {
        self.hello.as_deref()
    }

    /// The description; to be asked before spectra are read, for those that come first are skipped.
    pub fn wait_for_hello(&mut self, timeout: Duration) -> Result<&str, FeedError> {
        let deadline = Instant::now().checked_add(timeout);
        while self.hello.is_none() {
            self.receive_within(left_until(deadline))?;
        }
        Ok(self.hello.as_deref().unwrap_or_default())
    }

    /// Spectra that were not seen between those that were, of all channels.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The coordinator's run has ended.
    pub fn ended(&self) -> bool {
        self.ended
    }
}

impl Iterator for Subscriber {
    type Item = Result<Spectrum, FeedError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.receive() {
                Ok(FeedMessage::Spectrum(spectrum)) => return Some(Ok(spectrum)),
                Ok(FeedMessage::Other { .. }) => {}
                Err(FeedEnded(_)) => return None, // event/end was lost
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}

/// The next spectrum of one channel. Gives [`FeedTimeout`] when none is made in time.
pub fn latest(target: &str, channel: u32, timeout: Duration) -> Result<Spectrum, FeedError> {
    latest_with(target, channel, timeout, SubscribeOptions::default())
}

/// [`latest`] in another coding, or of a feed with keys: of the options, these are used.
pub fn latest_with(
    target: &str,
    channel: u32,
    timeout: Duration,
    options: SubscribeOptions,
) -> Result<Spectrum, FeedError> {
    let mut feed = subscribe(
        target,
        SubscribeOptions {
            channels: Some(vec![channel]),
            topics: Vec::new(),
            ..options
        },
    )?;
    let deadline = Instant::now().checked_add(timeout);
    while !feed.ended {
        if let FeedMessage::Spectrum(spectrum) = feed.receive_within(left_until(deadline))? {
            return Ok(spectrum);
        }
    }
    Err(FeedEnded(format!("the run at {} has ended", feed.endpoint)))
}
