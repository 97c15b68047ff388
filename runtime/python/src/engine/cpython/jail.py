# Builds the jail of scripts: namespaces, a file system of its own, Landlock, no capabilities. Standard
# library only.
#
# Each layer is checked by using it. A step that fails ends the process with a line that names the layer, so
# no script runs in a jail that is not enforced.

import ctypes
import os
import sys
import sysconfig

libc = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x0002_0000, 0x0200_0000, 0x0400_0000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
MS_REC, MS_PRIVATE, MNT_DETACH = 16384, 1 << 18, 2
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
SECCOMP_MODE_FILTER = 2

# The same numbers on x86_64 and aarch64.
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
LANDLOCK_READ = (1 << 2) | (1 << 3)  # files, folders
LANDLOCK_SCOPES = 3  # abstract sockets, signals
# The first version of Landlock that has scopes.
LANDLOCK_SCOPED = 6


class Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class JailError(Exception):
    pass


def checked(layer, result):
    if result < 0:
        number = ctypes.get_errno()
        raise JailError(f"{layer}: {os.strerror(number)}")
    return result


def system_call(layer, number, *arguments):
    arguments = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return checked(layer, libc.syscall(ctypes.c_long(number), *arguments))


def mount(source, target, kind, flags, options=None):
    text = lambda value: None if value is None else os.fsencode(value)
    checked(f"mount of {target}", libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(options)))


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def own_namespaces():
    """Leaves every namespace of the system. Comes back in a process that is the first of its own."""
    user, group = os.getuid(), os.getgid()
    flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID | CLONE_NEWCGROUP
    checked("user namespaces", libc.unshare(flags))
    try:
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} {user} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
    except OSError as error:
        raise JailError(f"user namespaces: {error.strerror}") from None
    child = os.fork()
    if child:
        # When either process dies, all processes of the namespace die.
        os.close(0)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    die_with_parent()


def die_with_parent():
    checked("parent death signal", libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0))


def readable_folders():
    """What a script can read: the standard library, what it is linked to, time zones."""
    paths = sysconfig.get_paths()
    wanted = {paths["stdlib"], paths["platstdlib"], "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo"}
    wanted = {os.path.realpath(path) for path in wanted if os.path.isdir(path)}
    # Folders inside of others come with them.
    return sorted(path for path in wanted if not any(path.startswith(other + "/") for other in wanted if other != path))


def own_files():
    """A root that holds nothing but what can be read, and an empty folder."""
    folders, links = readable_folders(), {}
    for name in ("/lib", "/lib64"):
        if os.path.islink(name):
            links[name] = os.readlink(name)
    root = "/tmp"
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount("jail", root, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755")
    for folder in folders:
        inside = root + folder
        os.makedirs(inside)
        mount(folder, inside, None, MS_BIND | MS_REC)
        # Restrictions of the original mount must be repeated.
        kept = os.statvfs(inside).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
        mount("none", inside, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)
    for name, target in links.items():
        if not os.path.lexists(root + name):
            os.symlink(target, root + name)
    os.mkdir(root + "/empty")
    os.mkdir(root + "/old")
    os.chdir(root)
    checked("pivot_root", libc.pivot_root(b".", b"old"))
    os.chdir("/")
    checked("old root", libc.umount2(b"/old", MNT_DETACH))
    os.rmdir("/old")
    mount("none", "/", None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    os.chdir("/empty")
    return folders


def no_capabilities():
    class Header(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]

    class Data(ctypes.Structure):
        _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]

    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break
    header, data = Header(0x2008_0522, 0), (Data * 2)()
    checked("capabilities", libc.capset(ctypes.byref(header), ctypes.byref(data)))
    checked("no new privileges", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def landlock(folders):
    """Only reading, only in these folders. The second lock on the same door."""

    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]

    version = system_call("Landlock", LANDLOCK_CREATE_RULESET, 0, 0, 1)
    # Rights by version of the interface: files; refer; truncate; net; ioctl; scopes.
    rights = (1 << 13) - 1
    rights |= (1 << 13) if version >= 2 else 0
    rights |= (1 << 14) if version >= 3 else 0
    rights |= (1 << 15) if version >= 5 else 0
    rules = Ruleset(rights, 3 if version >= 4 else 0, LANDLOCK_SCOPES if version >= LANDLOCK_SCOPED else 0)
    size = 24 if version >= LANDLOCK_SCOPED else 16 if version >= 4 else 8
    ruleset = system_call("Landlock", LANDLOCK_CREATE_RULESET, ctypes.byref(rules), size, 0)
    for folder in [*folders, "/empty"]:
        place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        rule = Beneath(LANDLOCK_READ, place)
        system_call("Landlock", LANDLOCK_ADD_RULE, ruleset, 1, ctypes.byref(rule), 0)
        os.close(place)
    system_call("Landlock", LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    return version


def own_domain(version):
    """A domain for this process alone, which signals none but itself: scripts that share one could signal each other."""
    if version < LANDLOCK_SCOPED:
        return
    rules = Ruleset(0, 0, LANDLOCK_SCOPES)
    ruleset = system_call("Landlock", LANDLOCK_CREATE_RULESET, ctypes.byref(rules), 24, 0)
    system_call("Landlock", LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def filter_system_calls(program):
    """`program`: the bytes of a classic BPF program."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    code = Program(len(program) // 8, program)
    checked("seccomp", libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(code), 0, 0))


def enter_jail():
    """The names of its layers, each of which was enforced, and the version of Landlock."""
    own_namespaces()
    folders = own_files()
    no_capabilities()
    version = landlock(folders)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    return ["namespaces", "a root of its own", "no capabilities", f"Landlock {version}"], version
