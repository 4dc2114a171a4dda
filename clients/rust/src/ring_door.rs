//! Asks for the ring of spectra and maps it: docs/feed.md, "The ring of spectra, without copies".

use std::mem;
use std::os::unix::io::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::ptr;
use std::time::Duration;
use std::{fs, io};

use crate::errors::FeedError::{self, FeedUnusable};

pub(crate) const MAGIC: &[u8; 8] = b"ECHSPEC\0";
const ANSWER_BYTES: usize = 16; // magic, and the region's size as a little-endian u64
const PATIENCE: Duration = Duration::from_secs(2);

/// The region, mapped for reading. Another process writes it: it is read by atomic loads only.
#[derive(Debug)]
pub(crate) struct Region {
    address: *const u8,
    bytes: usize,
}

// SAFETY: memory that is only read, by atomic loads.
unsafe impl Send for Region {}

impl Region {
    pub(crate) fn address(&self) -> *const u8 {
        self.address
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by receive_region with this size, and nobody refers to it any more.
        unsafe {
            libc::munmap(self.address as *mut libc::c_void, self.bytes);
        }
    }
}

/// Asks at the coordinator's socket for its ring.
pub(crate) fn receive_region(path: &Path) -> Result<Region, FeedError> {
    let name = path.display();
    let unreachable = |error: io::Error| {
        FeedUnusable(format!(
            "cannot reach the ring of spectra at {name}: {error}"
        ))
    };
    let door = UnixStream::connect(path).map_err(unreachable)?;
    door.set_read_timeout(Some(PATIENCE)).map_err(unreachable)?;
    let (answer, descriptor) = receive_descriptor(door.as_raw_fd()).map_err(unreachable)?;
    if answer.len() != ANSWER_BYTES || !answer.starts_with(MAGIC) {
        return Err(FeedUnusable(format!("{name} gives no ring of spectra")));
    }
    let mut size = [0; 8];
    size.copy_from_slice(&answer[8..]);
    let size = usize::try_from(u64::from_le_bytes(size)).unwrap_or(usize::MAX);
    let none = || {
        FeedUnusable(format!(
            "the coordinator at {name} has no ring of spectra; use subscribe()"
        ))
    };
    let file = fs::File::from(descriptor.ok_or_else(none)?);
    let there = file.metadata().map_err(unreachable)?.len();
    if size == 0 || size as u64 > there {
        return Err(none());
    }
    // SAFETY: a new mapping of a file that is large enough. It cannot be shrunk: the coordinator has
    // sealed it.
    let address = unsafe {
        let (access, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        libc::mmap(ptr::null_mut(), size, access, shared, file.as_raw_fd(), 0)
    };
    if address == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        return Err(FeedUnusable(format!(
            "cannot map the ring of spectra: {error}"
        )));
    }
    Ok(Region {
        address: address as *const u8,
        bytes: size,
    })
}

/// The content of the answer, and the descriptor that came with it.
fn receive_descriptor(door: RawFd) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut content = [0u8; ANSWER_BYTES];
    // A cmsghdr and one descriptor are 20 bytes; aligned as a cmsghdr.
    let mut control = [0u64; 3];
    let mut part = libc::iovec {
        iov_base: content.as_mut_ptr().cast(),
        iov_len: content.len(),
    };
    // SAFETY: all zeros is a msghdr.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // Room for one: more would be open, and nobody's.
    // SAFETY: computes a size.
    message.msg_controllen = unsafe { libc::CMSG_LEN(mem::size_of::<RawFd>() as u32) } as _;
    let received = loop {
        // SAFETY: `message` refers to buffers of the sizes that it states.
        let received = unsafe {
            libc::recvmsg(
                door,
                &mut message,
                libc::MSG_CMSG_CLOEXEC | libc::MSG_WAITALL,
            )
        };
        if received >= 0 {
            break received as usize;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    };
    Ok((content[..received].to_vec(), descriptor_in(&message)))
}

fn descriptor_in(message: &libc::msghdr) -> Option<OwnedFd> {
    // SAFETY: the kernel has filled `message`, whose control buffer lives; a descriptor that came is
    // ours alone.
    unsafe {
        let attached = libc::CMSG_FIRSTHDR(message);
        let one = libc::CMSG_LEN(mem::size_of::<RawFd>() as u32) as usize;
        if attached.is_null()
            || (*attached).cmsg_level != libc::SOL_SOCKET
            || (*attached).cmsg_type != libc::SCM_RIGHTS
            || (*attached).cmsg_len as usize != one
        {
            return None;
        }
        let number = ptr::read_unaligned(libc::CMSG_DATA(attached).cast::<RawFd>());
        Some(OwnedFd::from_raw_fd(number))
    }
}
