//! Builds the seccomp filter of scripts: only the system calls that an interpreter needs to read its library, compute,
//! wait, and use its channel to this process.
//!
//! Anything else fails with EPERM: no process, thread, socket, signal, mount or trace. Calls with several
//! functions are allowed by their arguments. `fcntl` may duplicate descriptors and read flags, but not send
//! signals (F_SETOWN, O_ASYNC), nor lock or lease files that others use. Memory may be writable or
//! executable, not both.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use std::collections::BTreeMap;

/// Numbers of the allowed calls on this architecture.
#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(super) const ARCH: seccompiler::TargetArch = seccompiler::TargetArch::x86_64;
    /// read write close stat fstat lstat poll lseek munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
    /// pread64 readv writev access select sched_yield mremap msync mincore madvise dup nanosleep getpid exit uname
    /// getdents getcwd readlink gettimeofday getrlimit getrusage times getuid getgid geteuid getegid getppid
    /// sigaltstack gettid futex sched_getaffinity getdents64 restart_syscall clock_gettime clock_getres
    /// clock_nanosleep exit_group epoll_wait epoll_ctl openat newfstatat readlinkat faccessat pselect6 ppoll
    /// set_robust_list epoll_pwait epoll_create1 getrandom membarrier statx rseq faccessat2 epoll_pwait2 open time
    pub(super) const ALLOWED: &[i64] = &[
        0, 1, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 17, 19, 20, 21, 23, 24, 25, 26, 27, 28, 32, 35, 39, 60,
        63, 78, 79, 89, 96, 97, 98, 100, 102, 104, 107, 108, 110, 131, 186, 202, 204, 217, 219, 228, 229,
        230, 231, 232, 233, 257, 262, 267, 269, 270, 271, 273, 281, 291, 318, 324, 332, 334, 439, 441, 2,
        201,
    ];
    pub(super) const FCNTL: i64 = 72;
    pub(super) const MMAP: i64 = 9;
    pub(super) const MPROTECT: i64 = 10;
    /// recvfrom and sendto, for a connected socket.
    pub(super) const TALK: [(i64, u8); 2] = [(45, 4), (44, 4)];
    pub(super) const TGKILL: i64 = 234;
}

/// Numbers of the same calls in the generic table of newer architectures.
#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(super) const ARCH: seccompiler::TargetArch = seccompiler::TargetArch::aarch64;
    /// getcwd epoll_create1 epoll_ctl epoll_pwait dup faccessat openat close getdents64 lseek read write readv
    /// writev pread64 pselect6 ppoll readlinkat newfstatat fstat exit exit_group futex set_robust_list nanosleep
    /// clock_gettime clock_getres clock_nanosleep sched_getaffinity sched_yield restart_syscall sigaltstack
    /// rt_sigaction rt_sigprocmask rt_sigreturn uname getrlimit getrusage times gettimeofday getpid getppid getuid
    /// geteuid getgid getegid gettid brk munmap mremap msync mincore madvise getrandom membarrier statx
    /// rseq faccessat2 epoll_pwait2
    pub(super) const ALLOWED: &[i64] = &[
        17, 20, 21, 22, 23, 48, 56, 57, 61, 62, 63, 64, 65, 66, 67, 72, 73, 78, 79, 80, 93, 94, 98, 99, 101,
        113, 114, 115, 123, 124, 128, 132, 134, 135, 139, 160, 163, 165, 153, 169, 172, 173, 174, 175, 176,
        177, 178, 214, 215, 216, 227, 232, 233, 278, 283, 291, 293, 439, 441,
    ];
    pub(super) const FCNTL: i64 = 25;
    pub(super) const MMAP: i64 = 222;
    pub(super) const MPROTECT: i64 = 226;
    /// recvfrom and sendto, for a connected socket.
    pub(super) const TALK: [(i64, u8); 2] = [(207, 4), (206, 4)];
    pub(super) const TGKILL: i64 = 131;
}

/// A condition on an argument, given by its index.
#[derive(Clone, Copy)]
enum Condition {
    Be(u8, u64),
    /// None of these bits is set.
    Lack(u8, u64),
}

// Constants of Linux, the same on both architectures.
const F_SETFL: u64 = 4;
const O_ASYNC: u64 = 0o20000;
const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
const MAP_ANONYMOUS: u64 = 0x20;
const SIGABRT: u64 = 6;

/// Calls that are allowed only with these arguments.
const BY_ARGUMENTS: &[(i64, &[&[Condition]])] = &[
    (
        numbers::FCNTL,
        &[
            // F_DUPFD F_GETFD F_SETFD F_GETFL F_DUPFD_CLOEXEC
            &[Condition::Be(1, 0)],
            &[Condition::Be(1, 1)],
            &[Condition::Be(1, 2)],
            &[Condition::Be(1, 3)],
            &[Condition::Be(1, 1030)],
            &[Condition::Be(1, F_SETFL), Condition::Lack(2, O_ASYNC)],
        ],
    ),
    (
        numbers::MMAP,
        &[
            &[Condition::Lack(2, PROT_EXEC)],
            // Shared libraries of the interpreter.
            &[Condition::Lack(2, PROT_WRITE), Condition::Lack(3, MAP_ANONYMOUS)],
        ],
    ),
    (numbers::MPROTECT, &[&[Condition::Lack(2, PROT_EXEC)]]),
];

/// The kind of process that the filter is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessKind {
    /// A child of the machine's Python. Its channel is a plain descriptor.
    Script,
    /// A process of this binary. It uses a socket, and may abort itself.
    Worker,
}

/// Makes the filter.
///
/// # Errors
/// The architecture is not supported.
pub(super) fn program(kind: ProcessKind) -> Result<BpfProgram, String> {
    const EPERM: u32 = 1;
    let arch: TargetArch = numbers::ARCH;
    let compiled = rules(kind).and_then(|rules| {
        SeccompFilter::new(rules, SeccompAction::Errno(EPERM), SeccompAction::Allow, arch)?.try_into()
    });
    compiled.map_err(|error| format!("seccomp: {error}"))
}

fn rules(kind: ProcessKind) -> Result<BTreeMap<i64, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<_>> =
        numbers::ALLOWED.iter().map(|&number| (number, Vec::new())).collect();
    for (number, ways) in BY_ARGUMENTS {
        rules.insert(*number, ways.iter().map(|way| rule(way)).collect::<Result<_, _>>()?);
    }
    if kind == ProcessKind::Worker {
        for (number, address) in numbers::TALK {
            rules.insert(number, vec![rule(&[Condition::Be(address, 0)])?]);
        }
        // Without memory the process ends with an abort.
        let own = u64::from(std::process::id());
        rules.insert(numbers::TGKILL, vec![rule(&[Condition::Be(0, own), Condition::Be(2, SIGABRT)])?]);
    }
    Ok(rules)
}

fn rule(conditions: &[Condition]) -> Result<SeccompRule, seccompiler::BackendError> {
    let seccomp_condition = |condition: &Condition| match *condition {
        Condition::Be(index, value) => {
            SeccompCondition::new(index, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, value)
        }
        Condition::Lack(index, bits) => {
            SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), 0)
        }
    };
    SeccompRule::new(conditions.iter().map(seccomp_condition).collect::<Result<_, _>>()?)
}

/// The filter in the kernel's format: eight bytes an instruction.
///
/// # Errors
/// As [`program`].
pub(super) fn bytes(kind: ProcessKind) -> Result<Vec<u8>, String> {
    let program = program(kind)?;
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for instruction in program {
        bytes.extend_from_slice(&instruction.code.to_ne_bytes());
        bytes.extend_from_slice(&[instruction.jt, instruction.jf]);
        bytes.extend_from_slice(&instruction.k.to_ne_bytes());
    }
    Ok(bytes)
}
