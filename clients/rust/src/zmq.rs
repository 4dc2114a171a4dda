//! The little of libzmq that a subscriber needs (zmq.h of 4.3).

use std::ffi::CStr;
use std::ffi::CString;
use std::ptr;
use std::time::{Duration, Instant};

use libc::{c_char, c_int, c_long, c_short, c_void, size_t};

const SUB: c_int = 2;
const POLLIN: c_short = 1;
const LINGER: c_int = 17;
const RCVMORE: c_int = 13;
const MAXMSGSIZE: c_int = 22;
const RCVHWM: c_int = 24;
const SUBSCRIBE: c_int = 6;
const CURVE_PUBLICKEY: c_int = 48;
const CURVE_SECRETKEY: c_int = 49;
const CURVE_SERVERKEY: c_int = 50;

#[repr(C)]
struct PollItem {
    socket: *mut c_void,
    fd: c_int,
    events: c_short,
    revents: c_short,
}

/// zmq_msg_t: 64 bytes, aligned as a pointer.
#[repr(C, align(8))]
struct Message([u8; 64]);

#[link(name = "zmq")]
extern "C" {
    fn zmq_ctx_new() -> *mut c_void;
    fn zmq_ctx_term(context: *mut c_void) -> c_int;
    fn zmq_socket(context: *mut c_void, kind: c_int) -> *mut c_void;
    fn zmq_close(socket: *mut c_void) -> c_int;
    fn zmq_setsockopt(s: *mut c_void, option: c_int, value: *const c_void, size: size_t) -> c_int;
    fn zmq_getsockopt(
        s: *mut c_void,
        option: c_int,
        value: *mut c_void,
        size: *mut size_t,
    ) -> c_int;
    fn zmq_connect(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    fn zmq_poll(items: *mut PollItem, count: c_int, timeout_ms: c_long) -> c_int;
    fn zmq_msg_init(message: *mut Message) -> c_int;
    fn zmq_msg_recv(message: *mut Message, socket: *mut c_void, flags: c_int) -> c_int;
    fn zmq_msg_data(message: *mut Message) -> *mut c_void;
    fn zmq_msg_size(message: *const Message) -> size_t;
    fn zmq_msg_close(message: *mut Message) -> c_int;
    fn zmq_strerror(number: c_int) -> *const c_char;
    fn zmq_errno() -> c_int;
}

/// Why the last call failed.
fn why() -> String {
    // SAFETY: zmq_strerror gives a string that lives as long as the process.
    unsafe { CStr::from_ptr(zmq_strerror(zmq_errno())) }
        .to_string_lossy()
        .into_owned()
}

fn was_interrupted() -> bool {
    // SAFETY: reads errno.
    unsafe { zmq_errno() == libc::EINTR }
}

/// A SUB socket with a context of its own. Errors are libzmq's words.
#[derive(Debug)]
pub(crate) struct SubSocket {
    context: *mut c_void,
    socket: *mut c_void,
}

// SAFETY: a libzmq socket may move from thread to thread, with a full fence between, as a move of an
// owned value has. It is not Sync.
unsafe impl Send for SubSocket {}

impl SubSocket {
    pub(crate) fn new() -> Result<Self, String> {
        // SAFETY: a context that is none gives no socket, and both are checked.
        let (context, socket) = unsafe {
            let context = zmq_ctx_new();
            (context, zmq_socket(context, SUB))
        };
        let made = Self { context, socket };
        if made.socket.is_null() {
            return Err(why());
        }
        made.set_int(LINGER, 0)?;
        Ok(made)
    }

    fn set(&self, option: c_int, value: &[u8]) -> Result<(), String> {
        // SAFETY: value.len() bytes are there.
        let code =
            unsafe { zmq_setsockopt(self.socket, option, value.as_ptr().cast(), value.len()) };
        if code == 0 {
            Ok(())
        } else {
            Err(why())
        }
    }

    fn set_int(&self, option: c_int, value: c_int) -> Result<(), String> {
        self.set(option, &value.to_ne_bytes())
    }

    pub(crate) fn bound_queue(&self, messages: i32, longest: i64) -> Result<(), String> {
        self.set_int(RCVHWM, messages)?;
        self.set(MAXMSGSIZE, &longest.to_ne_bytes())
    }

    pub(crate) fn use_keys(&self, server: &str, public: &str, secret: &str) -> Result<(), String> {
        self.set(CURVE_SERVERKEY, server.as_bytes())?;
        self.set(CURVE_PUBLICKEY, public.as_bytes())?;
        self.set(CURVE_SECRETKEY, secret.as_bytes())
    }

    pub(crate) fn connect(&self, endpoint: &str) -> Result<(), String> {
        let endpoint = CString::new(endpoint).map_err(|_| "it holds a zero byte".to_string())?;
        // SAFETY: a string that ends with a zero.
        if unsafe { zmq_connect(self.socket, endpoint.as_ptr()) } == 0 {
            Ok(())
        } else {
            Err(why())
        }
    }

    pub(crate) fn subscribe(&self, prefix: &str) -> Result<(), String> {
        self.set(SUBSCRIBE, prefix.as_bytes())
    }

    /// Waits; false when nothing came in time.
    pub(crate) fn wait(&self, timeout: Duration) -> Result<bool, String> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // Rounded up: to wait for less than is left would be to turn without rest.
            let wait_ms = (left.as_micros() + 999) / 1000;
            let mut item = PollItem {
                socket: self.socket,
                fd: 0,
                events: POLLIN,
                revents: 0,
            };
            // SAFETY: one item.
            match unsafe { zmq_poll(&mut item, 1, wait_ms as c_long) } {
                0 => return Ok(false),
                found if found > 0 => return Ok(true),
                _ if was_interrupted() => {}
                _ => return Err(why()),
            }
        }
    }

    /// The parts of one message that is there.
    pub(crate) fn take(&self) -> Result<Vec<Vec<u8>>, String> {
        let mut parts = Vec::with_capacity(2);
        loop {
            parts.push(self.take_part()?);
            if !self.has_more()? {
                return Ok(parts);
            }
        }
    }

    fn take_part(&self) -> Result<Vec<u8>, String> {
        let mut message = Message([0; 64]);
        // SAFETY: initialised, then filled, copied from, and closed, whatever happens.
        unsafe {
            zmq_msg_init(&mut message);
            let mut size = zmq_msg_recv(&mut message, self.socket, 0);
            while size < 0 && was_interrupted() {
                size = zmq_msg_recv(&mut message, self.socket, 0);
            }
            let bytes = match size {
                0 => Ok(Vec::new()), // its data may be no address
                size if size > 0 => Ok(std::slice::from_raw_parts(
                    zmq_msg_data(&mut message).cast::<u8>(),
                    zmq_msg_size(&message),
                )
                .to_vec()),
                _ => Err(why()),
            };
            zmq_msg_close(&mut message);
            bytes
        }
    }

    fn has_more(&self) -> Result<bool, String> {
        let mut more: c_int = 0;
        let mut size = std::mem::size_of::<c_int>();
        // SAFETY: room for an int, as the option asks.
        let code = unsafe {
            zmq_getsockopt(
                self.socket,
                RCVMORE,
                ptr::addr_of_mut!(more).cast(),
                &mut size,
            )
        };
        if code == 0 {
            Ok(more != 0)
        } else {
            Err(why())
        }
    }
}

impl Drop for SubSocket {
    fn drop(&mut self) {
        // SAFETY: made here, and nobody else has them. With LINGER 0 this does not wait.
        unsafe {
            if !self.socket.is_null() {
                zmq_close(self.socket);
            }
            if !self.context.is_null() {
                zmq_ctx_term(self.context);
            }
        }
    }
}
