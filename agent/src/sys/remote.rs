//! Another process's memory, as it is now.

use std::io;

/// Reads memory of a process; false where not all of it could be read. It may wait where the memory is a file whose
/// server does not answer.
pub fn read_process(tgid: u32, address: u64, into: &mut [u8]) -> bool {
    let (Ok(address), Ok(pid)) = (usize::try_from(address), i32::try_from(tgid)) else {
        return false;
    };
    let local = libc::iovec {
        iov_base: into.as_mut_ptr().cast(),
        iov_len: into.len(),
    };
    let remote = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address),
        iov_len: into.len(),
    };
    loop {
        // SAFETY: `local` is memory of this process that is borrowed for the call, in its length; `remote` is only a
        // number here, which the kernel checks against the other process.
        let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
        if read >= 0 {
            return read as usize == into.len();
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_can_be_read_and_nothing_else() {
        let text = *b"sixteen bytes...";
        let mut read = [0; 16];
        assert!(read_process(std::process::id(), text.as_ptr() as u64, &mut read));
        assert_eq!(read, text);
        for address in [0, 8, u64::MAX - 4, 1 << 63] {
            assert!(!read_process(std::process::id(), address, &mut read));
        }
        assert!(!read_process(u32::MAX, text.as_ptr() as u64, &mut read));
    }
}
