//! What a thread waits for, by the kernel's functions on its stack. Pure.

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitClass {
    /// Another thread: a lock that it has, of user space or of the kernel, a condition, or work for one that is parked.
    /// All of user space's are futexes, which do not say which.
    Lock,
    /// A disk, or what stands for one.
    Io,
    /// A socket.
    Network,
    /// A time.
    Timer,
    /// Any of several descriptors.
    Poll,
    /// Memory that is not there yet.
    PageFault,
    /// The other end of a pipe.
    Pipe,
    /// Anything else.
    Other,
}

/// What the functions' names begin with. Of a stack the first function from the leaf on decides that has a class; a
/// thread that is a page fault's waits for memory, whatever that takes.
const FUNCTIONS: [(WaitClass, &[&str]); 6] = [
    (
        WaitClass::Lock,
        &[
            "futex_",
            "__futex_",
            "do_futex",
            "mutex_lock",
            "__mutex_lock",
            "ww_mutex_lock",
            "rt_mutex_",
            "rwsem_down_",
            "down_read",
            "down_write",
            "__down_",
            "percpu_rwsem_wait",
            "__percpu_down_read",
            "posix_lock_inode_wait",
            "flock_lock_inode_wait",
            "locks_lock_inode_wait",
            "do_semtimedop",
        ],
    ),
    (
        WaitClass::Poll,
        &[
            "ep_poll",
            "do_epoll_wait",
            "do_poll",
            "do_sys_poll",
            "poll_schedule_timeout",
            "do_select",
            "core_sys_select",
        ],
    ),
    (
        WaitClass::Timer,
        &[
            "hrtimer_nanosleep",
            "do_nanosleep",
            "common_nsleep",
            "alarm_timer_nsleep",
            "timerfd_read",
            "msleep",
            "usleep_range",
        ],
    ),
    (
        WaitClass::Pipe,
        &[
            "pipe_read",
            "pipe_write",
            "anon_pipe_",
            "pipe_wait_",
            "fifo_open",
            "wait_for_partner",
        ],
    ),
    (
        WaitClass::Network,
        &[
            "inet_",
            "inet6_",
            "tcp_",
            "udp_",
            "udpv6_",
            "unix_",
            "sk_wait_data",
            "sk_stream_wait_",
            "lock_sock",
            "__lock_sock",
            "__skb_wait_for_more_packets",
            "sock_recvmsg",
            "sock_sendmsg",
            "sock_alloc_send_pskb",
            "netlink_",
            "packet_recvmsg",
            "vsock_",
        ],
    ),
    (
        WaitClass::Io,
        &[
            "io_schedule",
            "blk_",
            "__blk_",
            "blkdev_",
            "__blkdev_",
            "bio_",
            "submit_bio_wait",
            "iomap_",
            "__iomap_",
            "folio_wait_",
            "wait_on_page_",
            "__wait_on_buffer",
            "filemap_",
            "file_write_and_wait_",
            "balance_dirty_pages",
            "jbd2_",
            "ext4_",
            "xfs_",
            "btrfs_",
            "f2fs_",
            "wb_wait_for_completion",
            "sync_inodes_sb",
            "io_cqring_wait",
            // Linux AIO; of these the first may be inlined into the next.
            "read_events",
            "aio_read_events",
            "do_io_getevents",
            "__do_sys_io_getevents",
            "__do_sys_io_pgetevents",
            "__x64_sys_io_getevents",
            "__x64_sys_io_pgetevents",
            "__arm64_sys_io_getevents",
            "__arm64_sys_io_pgetevents",
            "exit_aio",
            "rq_qos_wait",
            "wbt_wait",
            "nvme_",
            "nfs_",
            "nfs4_",
            "rpc_wait_bit",
            "fuse_",
            "request_wait_answer",
        ],
    ),
];

/// Functions by which the kernel is at a page fault.
const FAULTS: [&str; 5] = [
    "asm_exc_page_fault",
    "exc_page_fault",
    "do_user_addr_fault",
    "do_page_fault",
    "handle_mm_fault",
];

impl WaitClass {
    /// By the names of the kernel's functions, leaf first.
    pub fn of<'a>(functions: impl Iterator<Item = &'a str>) -> Self {
        let mut first = None;
        for function in functions {
            if FAULTS.iter().any(|fault| function.starts_with(fault)) {
                return Self::PageFault;
            }
            first = first.or_else(|| {
                let mut classes = FUNCTIONS.iter();
                let class = classes.find(|(_, begins)| begins.iter().any(|begin| function.starts_with(begin)));
                class.map(|(class, _)| *class)
            });
        }
        first.unwrap_or(Self::Other)
    }

    /// As it is shipped.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Io => "io",
            Self::Network => "network",
            Self::Timer => "timer",
            Self::Poll => "poll",
            Self::PageFault => "page fault",
            Self::Pipe => "pipe",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(stack: &str) -> WaitClass {
        WaitClass::of(stack.split(' '))
    }

    #[test]
    fn stacks_of_several_kernels_have_their_class() {
        use WaitClass::{Io, Lock, Network, Other, PageFault, Pipe, Poll, Timer};
        let stacks = [
            (
                Lock,
                "futex_do_wait __futex_wait futex_wait do_futex __x64_sys_futex do_syscall_64",
            ),
            (Lock, "futex_wait_queue futex_wait do_futex"),
            (Lock, "rwsem_down_write_slowpath down_write_killable vm_mmap_pgoff"),
            (
                Timer,
                "do_nanosleep hrtimer_nanosleep common_nsleep __x64_sys_clock_nanosleep",
            ),
            (Poll, "ep_poll do_epoll_wait __x64_sys_epoll_wait"),
            (Poll, "schedule_hrtimeout_range do_poll.constprop.0 do_sys_poll"),
            (Pipe, "anon_pipe_read vfs_read ksys_read"),
            (Pipe, "pipe_read vfs_read"),
            (
                Network,
                "schedule_timeout wait_woken sk_wait_data tcp_recvmsg_locked tcp_recvmsg inet_recvmsg sock_recvmsg",
            ),
            (Network, "schedule_timeout unix_stream_read_generic unix_stream_recvmsg"),
            (Network, "inet_csk_accept inet_accept do_accept"),
            (
                Io,
                "io_schedule blk_io_schedule __iomap_dio_rw iomap_dio_rw ext4_file_read_iter",
            ),
            (Io, "jbd2_log_wait_commit ext4_sync_file do_fsync"),
            (
                Io,
                "schedule_hrtimeout_range read_events do_io_getevents __x64_sys_io_getevents do_syscall_64",
            ),
            (Io, "do_io_getevents __do_sys_io_pgetevents __x64_sys_io_pgetevents"),
            (Io, "__arm64_sys_io_getevents invoke_syscall el0_svc_common"),
            (Io, "io_cqring_wait __do_sys_io_uring_enter __x64_sys_io_uring_enter"),
            (
                PageFault,
                "io_schedule folio_wait_bit_common filemap_fault __do_fault handle_mm_fault exc_page_fault",
            ),
            (Other, "do_wait kernel_wait4 __do_sys_wait4"),
            (Other, "worker_thread kthread ret_from_fork"),
            (Other, ""),
        ];
        for (expected, stack) in stacks {
            assert_eq!(class(stack), expected, "{stack}");
        }
    }
}
