//! The system calls that a script has: those of an interpreter that reads its library, computes, waits, and talks over
//! the one channel that it has. Anything else fails with EPERM: no process, thread, socket, signal, mount or trace.

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};
use std::collections::BTreeMap;

/// Numbers by architecture, where they are the same calls.
#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(super) const ARCH: seccompiler::TargetArch = seccompiler::TargetArch::x86_64;
    /// read write close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
    /// pread64 readv writev access select sched_yield mremap msync mincore madvise dup nanosleep getpid exit uname
    /// fcntl getdents getcwd readlink gettimeofday getrlimit getrusage times getuid getgid geteuid getegid getppid
    /// sigaltstack arch_prctl gettid futex sched_getaffinity getdents64 restart_syscall clock_gettime clock_getres
    /// clock_nanosleep exit_group epoll_wait epoll_ctl openat newfstatat readlinkat faccessat pselect6 ppoll
    /// set_robust_list epoll_pwait epoll_create1 getrandom membarrier statx rseq faccessat2 epoll_pwait2 open time
    pub(super) const ALLOWED: &[i64] = &[
        0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 19, 20, 21, 23, 24, 25, 26, 27, 28, 32, 35,
        39, 60, 63, 72, 78, 79, 89, 96, 97, 98, 100, 102, 104, 107, 108, 110, 131, 158, 186, 202, 204, 217,
        219, 228, 229, 230, 231, 232, 233, 257, 262, 267, 269, 270, 271, 273, 281, 291, 318, 324, 332, 334,
        439, 441, 2, 201,
    ];
}

/// The generic table of newer architectures.
#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(super) const ARCH: seccompiler::TargetArch = seccompiler::TargetArch::aarch64;
    /// getcwd epoll_create1 epoll_ctl epoll_pwait dup fcntl faccessat openat close getdents64 lseek read write readv
    /// writev pread64 pselect6 ppoll readlinkat newfstatat fstat exit exit_group futex set_robust_list nanosleep
    /// clock_gettime clock_getres clock_nanosleep sched_getaffinity sched_yield restart_syscall sigaltstack
    /// rt_sigaction rt_sigprocmask rt_sigreturn uname getrlimit getrusage times gettimeofday getpid getppid getuid
    /// geteuid getgid getegid gettid brk munmap mremap mmap mprotect msync mincore madvise getrandom membarrier statx
    /// rseq faccessat2 epoll_pwait2
    pub(super) const ALLOWED: &[i64] = &[
        17, 20, 21, 22, 23, 25, 48, 56, 57, 61, 62, 63, 64, 65, 66, 67, 72, 73, 78, 79, 80, 93, 94, 98, 99,
        101, 113, 114, 115, 123, 124, 128, 132, 134, 135, 139, 160, 163, 165, 153, 169, 172, 173, 174, 175,
        176, 177, 178, 214, 215, 216, 222, 226, 227, 232, 233, 278, 283, 291, 293, 439, 441,
    ];
}

/// The filter as the kernel reads it: eight bytes an instruction.
///
/// # Errors
/// The machine is of a kind that the filter is not written for.
pub(super) fn program() -> Result<Vec<u8>, String> {
    let rules: BTreeMap<i64, Vec<_>> = numbers::ALLOWED.iter().map(|&number| (number, Vec::new())).collect();
    const EPERM: u32 = 1;
    let arch: TargetArch = numbers::ARCH;
    let filter = SeccompFilter::new(rules, SeccompAction::Errno(EPERM), SeccompAction::Allow, arch);
    let program: BpfProgram =
        filter.and_then(TryInto::try_into).map_err(|error| format!("seccomp: {error}"))?;
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for instruction in program {
        bytes.extend_from_slice(&instruction.code.to_ne_bytes());
        bytes.extend_from_slice(&[instruction.jt, instruction.jf]);
        bytes.extend_from_slice(&instruction.k.to_ne_bytes());
    }
    Ok(bytes)
}
