/* Further names of the workspace, for every program of a call: /etc/ld.so.preload loads this library.
 *
 * The workspace is the folder that /job/.files leads to. It has no entry `files`, so that what walks it meets each
 * file once; still `files/a.csv`, `attachments/a.csv`, `/mnt/data/a.csv` and the like are its a.csv, and
 * `turn_1/files/a.csv` is that below /out. The functions of libc that take a path are replaced by ones that know
 * these names. What exists under a name wins over what the name would stand for.
 *
 * Process 1 and what it forks are as without the library: it begins in a process that is started when the link is
 * there, and in one that calls access(BEGIN). There, readlink(MEANT PATH) gives what an absolute path stands for.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define ROOT "/out"
#define WORKSPACE_LINK "/job/.files"
#define BEGIN "\001begin"
#define MEANT "\001meant"
#define EXPORT __attribute__((visibility("default")))

static int active;
static long (*system_call)(long, ...);

static long raw(long number, long a, long b, long c, long d) {
  if (!system_call) system_call = dlsym(RTLD_NEXT, "syscall");
  return system_call(number, a, b, c, d, 0L, 0L);
}

/* The mode of what lies at a path; 0 if nothing does. */
static unsigned mode_of(const char *path) {
  struct stat found;
#ifdef SYS_newfstatat
  if (raw(SYS_newfstatat, AT_FDCWD, (long)path, (long)&found, AT_SYMLINK_NOFOLLOW)) return 0;
#else
  if (raw(SYS_fstatat, AT_FDCWD, (long)path, (long)&found, AT_SYMLINK_NOFOLLOW)) return 0;
#endif
  return found.st_mode;
}

/* The workspace; its length, 0 if there is none. */
static size_t workspace(char *into, size_t size) {
  long length = raw(SYS_readlinkat, AT_FDCWD, (long)WORKSPACE_LINK, (long)into, (long)size - 1);
  if (length <= 0) return 0;
  into[length] = 0;
  return (size_t)length;
}

static void __attribute__((constructor)) begin(void) {
  char folder[PATH_MAX];
  int kept = errno;
  active = workspace(folder, sizeof folder) != 0;
  errno = kept;
}

/* What follows a folder in a path; NULL if the path does not lie there. */
static const char *after(const char *path, const char *folder) {
  size_t length = strlen(folder);
  if (strncmp(path, folder, length) || (path[length] && path[length] != '/')) return NULL;
  return path + length;
}

static const char *without_dots(const char *rest) {
  for (;;) {
    if (*rest == '/') rest++;
    else if (*rest == '.' && (rest[1] == '/' || !rest[1])) rest++;
    else return rest;
  }
}

static int is_space(const char *name) { return after(name, "files") || after(name, "attachments"); }

static int joined(char *into, const char *folder, const char *rest, size_t rest_length) {
  int length = snprintf(into, PATH_MAX, "%s%s%.*s", folder, rest_length ? "/" : "", (int)rest_length, rest);
  return length < PATH_MAX;
}

/* The mode of the first part of a path below a folder. */
static unsigned mode_of_first(const char *folder, const char *rest) {
  char first[PATH_MAX];
  return joined(first, folder, rest, strcspn(rest, "/")) ? mode_of(first) : 0;
}

/* Whether a path may be a further name: all others cost nothing. */
static int may_be_meant(const char *path) {
  return strstr(path, "files") || strstr(path, "attachments") || strstr(path, "turn_") || strstr(path, "data") ||
         strstr(path, "mnt") || strstr(path, "outputs") || strstr(path, "uploads") || after(path, ROOT) ||
         after(path, "/job");
}

/* The path from the root, without `.`, `..` and empty parts; 0 if it is too long. */
static int absolute(const char *path, char *into) {
  size_t length = 0;
  if (*path != '/') {
    if (raw(SYS_getcwd, (long)into, PATH_MAX, 0, 0) <= 0 || *into != '/') return 0;
    length = strlen(into);
    if (length == 1) length = 0;
  }
  while (*(path = without_dots(path))) {
    size_t part = strcspn(path, "/");
    if (part == 2 && path[0] == '.' && path[1] == '.') {
      while (length && into[--length] != '/') continue;
    } else {
      if (length + part + 2 > PATH_MAX) return 0;
      into[length++] = '/';
      memcpy(into + length, path, part);
      length += part;
    }
    path += part;
  }
  if (!length) into[length++] = '/';
  into[length] = 0;
  return 1;
}

/* Whether the first part of a path is a turn: one that is there, one with a number, or the folder of one. */
static int is_turn(const char *rest, size_t length) {
  char folder[PATH_MAX];
  return !strncmp(rest, "turn_", 5) &&
         ((rest[length] && is_space(rest + length + 1)) ||
          (length > 5 && strspn(rest + 5, "0123456789-") == length - 5) ||
          (joined(folder, ROOT, rest, length) && S_ISDIR(mode_of(folder))));
}

static const char *find(const char *path, char *buffer) {
  static const char *const NAMES[] = {
      "/mnt/data", "/mnt/user-data/outputs", "/mnt/user-data/uploads", ROOT "/files", ROOT "/attachments"};
  char folder[PATH_MAX], given[PATH_MAX];
  if (!workspace(folder, sizeof folder) || !absolute(path, given)) return path;
  const char *rest = NULL, *turn = after(folder, ROOT);
  for (size_t at = 0; at < sizeof NAMES / sizeof *NAMES && !rest; at++)
    if ((rest = after(given, NAMES[at])) && at > 2 && mode_of(NAMES[at])) rest = NULL;
  int changed = rest != NULL;
  if (!rest) rest = after(given, folder);
  if (!rest) { /* beside the program, or in OUT_DIR: a file of the workspace that is not there */
    const char *below = after(given, ROOT);
    if (!below) below = after(given, "/job");
    if (!below || !*(rest = without_dots(below)) || *rest == '.' || !strncmp(rest, "turn_", 5)) return path;
    if (mode_of(given) || !(mode_of_first(folder, rest) || is_space(rest))) return path;
    changed = 1;
  }
  for (;;) {
    rest = without_dots(rest);
    size_t length = strcspn(rest, "/");
    if (is_space(rest)) {
      unsigned mode = mode_of_first(folder, rest);
      if (S_ISDIR(mode) || (mode && !rest[length])) break;
      rest += length;
    } else if (is_turn(rest, length) && !mode_of_first(folder, rest)) {
      size_t own = strlen(turn + 1);
      if (strncmp(rest, turn + 1, own) || (rest[own] && rest[own] != '/'))
        return joined(buffer, ROOT, rest, strlen(rest)) ? buffer : path;
      rest += own;
    } else break;
    changed = 1;
  }
  return changed && joined(buffer, folder, rest, strlen(rest)) ? buffer : path;
}

/* What a path stands for, maybe in the buffer. */
static const char *resolve(const char *path, char *buffer) {
  if (!active || !path || !may_be_meant(path)) return path;
  int kept = errno;
  path = find(path, buffer);
  errno = kept;
  return path;
}

static const char *resolve_at(int fd, const char *path, char *buffer) {
  return path && (fd == AT_FDCWD || *path == '/') ? resolve(path, buffer) : path;
}

#define NEXT(name)                                                          \
  static __typeof__(name) *next;                                            \
  if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define ONE(type, name, parameters, arguments)                              \
  EXPORT type name parameters {                                             \
    NEXT(name);                                                             \
    char buffer[PATH_MAX];                                                  \
    path = resolve(path, buffer);                                           \
    return next arguments;                                                  \
  }
#define ONE_AT(type, name, parameters, arguments)                           \
  EXPORT type name parameters {                                             \
    NEXT(name);                                                             \
    char buffer[PATH_MAX];                                                  \
    path = resolve_at(fd, path, buffer);                                    \
    return next arguments;                                                  \
  }
#define OPEN(name)                                                          \
  EXPORT int name(const char *path, int flags, ...) {                       \
    NEXT(name);                                                             \
    va_list more;                                                           \
    va_start(more, flags);                                                  \
    unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, unsigned) : 0; \
    va_end(more);                                                           \
    char buffer[PATH_MAX];                                                  \
    return next(resolve(path, buffer), flags, mode);                        \
  }
#define OPEN_AT(name)                                                       \
  EXPORT int name(int fd, const char *path, int flags, ...) {               \
    NEXT(name);                                                             \
    va_list more;                                                           \
    va_start(more, flags);                                                  \
    unsigned mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, unsigned) : 0; \
    va_end(more);                                                           \
    char buffer[PATH_MAX];                                                  \
    return next(fd, resolve_at(fd, path, buffer), flags, mode);             \
  }

/* What old and fortified binaries call is in no header. */
int __open_2(const char *, int), __open64_2(const char *, int);
int __openat_2(int, const char *, int), __openat64_2(int, const char *, int);
int __xstat(int, const char *, struct stat *), __xstat64(int, const char *, struct stat64 *);
int __lxstat(int, const char *, struct stat *), __lxstat64(int, const char *, struct stat64 *);
int __fxstatat(int, int, const char *, struct stat *, int), __fxstatat64(int, int, const char *, struct stat64 *, int);
ssize_t __readlink_chk(const char *, char *, size_t, size_t);
ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);
char *__realpath_chk(const char *, char *, size_t);

OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)
ONE(int, __open_2, (const char *path, int flags), (path, flags))
ONE(int, __open64_2, (const char *path, int flags), (path, flags))
ONE_AT(int, __openat_2, (int fd, const char *path, int flags), (fd, path, flags))
ONE_AT(int, __openat64_2, (int fd, const char *path, int flags), (fd, path, flags))
ONE(int, creat, (const char *path, mode_t mode), (path, mode))
ONE(int, creat64, (const char *path, mode_t mode), (path, mode))
ONE(FILE *, fopen, (const char *path, const char *mode), (path, mode))
ONE(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
ONE(FILE *, freopen, (const char *path, const char *mode, FILE *file), (path, mode, file))
ONE(FILE *, freopen64, (const char *path, const char *mode, FILE *file), (path, mode, file))
ONE(DIR *, opendir, (const char *path), (path))
ONE(int, scandir, (const char *path, struct dirent ***names, int (*wanted)(const struct dirent *),
                   int (*order)(const struct dirent **, const struct dirent **)), (path, names, wanted, order))
ONE(int, scandir64, (const char *path, struct dirent64 ***names, int (*wanted)(const struct dirent64 *),
                     int (*order)(const struct dirent64 **, const struct dirent64 **)), (path, names, wanted, order))
ONE(int, stat, (const char *path, struct stat *found), (path, found))
ONE(int, stat64, (const char *path, struct stat64 *found), (path, found))
ONE(int, lstat, (const char *path, struct stat *found), (path, found))
ONE(int, lstat64, (const char *path, struct stat64 *found), (path, found))
ONE_AT(int, fstatat, (int fd, const char *path, struct stat *found, int flags), (fd, path, found, flags))
ONE_AT(int, fstatat64, (int fd, const char *path, struct stat64 *found, int flags), (fd, path, found, flags))
ONE(int, __xstat, (int version, const char *path, struct stat *found), (version, path, found))
ONE(int, __xstat64, (int version, const char *path, struct stat64 *found), (version, path, found))
ONE(int, __lxstat, (int version, const char *path, struct stat *found), (version, path, found))
ONE(int, __lxstat64, (int version, const char *path, struct stat64 *found), (version, path, found))
ONE_AT(int, __fxstatat, (int version, int fd, const char *path, struct stat *found, int flags),
       (version, fd, path, found, flags))
ONE_AT(int, __fxstatat64, (int version, int fd, const char *path, struct stat64 *found, int flags),
       (version, fd, path, found, flags))
ONE_AT(int, statx, (int fd, const char *path, int flags, unsigned mask, struct statx *found),
       (fd, path, flags, mask, found))
ONE(int, statfs, (const char *path, struct statfs *found), (path, found))
ONE(int, statfs64, (const char *path, struct statfs64 *found), (path, found))
ONE(int, statvfs, (const char *path, struct statvfs *found), (path, found))
ONE(int, statvfs64, (const char *path, struct statvfs64 *found), (path, found))
ONE_AT(int, faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags))
ONE(int, euidaccess, (const char *path, int mode), (path, mode))
ONE(int, eaccess, (const char *path, int mode), (path, mode))
ONE(int, chdir, (const char *path), (path))
ONE(int, chmod, (const char *path, mode_t mode), (path, mode))
ONE_AT(int, fchmodat, (int fd, const char *path, mode_t mode, int flags), (fd, path, mode, flags))
ONE(int, chown, (const char *path, uid_t user, gid_t group), (path, user, group))
ONE(int, lchown, (const char *path, uid_t user, gid_t group), (path, user, group))
ONE_AT(int, fchownat, (int fd, const char *path, uid_t user, gid_t group, int flags), (fd, path, user, group, flags))
ONE(int, mkfifo, (const char *path, mode_t mode), (path, mode))
ONE(int, mknod, (const char *path, mode_t mode, dev_t device), (path, mode, device))
ONE(int, unlink, (const char *path), (path))
ONE(int, truncate, (const char *path, off_t size), (path, size))
ONE(int, truncate64, (const char *path, off64_t size), (path, size))
ONE_AT(ssize_t, readlinkat, (int fd, const char *path, char *target, size_t size), (fd, path, target, size))
ONE(ssize_t, __readlink_chk, (const char *path, char *target, size_t size, size_t room), (path, target, size, room))
ONE_AT(ssize_t, __readlinkat_chk, (int fd, const char *path, char *target, size_t size, size_t room),
       (fd, path, target, size, room))
ONE(char *, realpath, (const char *path, char *found), (path, found))
ONE(char *, __realpath_chk, (const char *path, char *found, size_t room), (path, found, room))
ONE(char *, canonicalize_file_name, (const char *path), (path))
ONE(int, utime, (const char *path, const struct utimbuf *times), (path, times))
ONE(int, utimes, (const char *path, const struct timeval times[2]), (path, times))
ONE(int, lutimes, (const char *path, const struct timeval times[2]), (path, times))
ONE_AT(int, utimensat, (int fd, const char *path, const struct timespec times[2], int flags), (fd, path, times, flags))
ONE(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), (path, name, value, size))
ONE(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size), (path, name, value, size))
ONE(ssize_t, listxattr, (const char *path, char *names, size_t size), (path, names, size))
ONE(ssize_t, llistxattr, (const char *path, char *names, size_t size), (path, names, size))
ONE(int, execve, (const char *path, char *const arguments[], char *const variables[]), (path, arguments, variables))
ONE(int, execv, (const char *path, char *const arguments[]), (path, arguments))
ONE(int, execvp, (const char *path, char *const arguments[]), (path, arguments))
ONE(int, execvpe, (const char *path, char *const arguments[], char *const variables[]), (path, arguments, variables))
ONE(int, posix_spawn, (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]),
    (pid, path, actions, attributes, arguments, variables))
ONE(int, posix_spawnp, (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]),
    (pid, path, actions, attributes, arguments, variables))
ONE(int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask))

/* The address of a socket in the file system, with the path that is meant; the same address for all others. */
static const struct sockaddr *resolve_address(const struct sockaddr *address, socklen_t *length, struct sockaddr_un *meant) {
  const struct sockaddr_un *given = (const struct sockaddr_un *)address;
  size_t head = offsetof(struct sockaddr_un, sun_path);
  if (!address || *length <= head || *length > sizeof *given || given->sun_family != AF_UNIX) return address;
  char path[sizeof given->sun_path + 1] = "", buffer[PATH_MAX];
  memcpy(path, given->sun_path, *length - head);
  const char *found = resolve(path, buffer);
  if (found == path || strlen(found) >= sizeof meant->sun_path) return address;
  meant->sun_family = AF_UNIX;
  strcpy(meant->sun_path, found);
  *length = (socklen_t)(head + strlen(found) + 1);
  return (const struct sockaddr *)meant;
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t length) {
  NEXT(bind);
  struct sockaddr_un meant;
  const struct sockaddr *found = resolve_address(address, &length, &meant);
  return next(fd, found, length);
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length) {
  NEXT(connect);
  struct sockaddr_un meant;
  const struct sockaddr *found = resolve_address(address, &length, &meant);
  return next(fd, found, length);
}

EXPORT int access(const char *path, int mode) {
  NEXT(access);
  char buffer[PATH_MAX];
  if (path && !strcmp(path, BEGIN)) begin();
  return next(resolve(path, buffer), mode);
}

EXPORT ssize_t readlink(const char *path, char *target, size_t size) {
  NEXT(readlink);
  char buffer[PATH_MAX];
  if (!active || !path || strncmp(path, MEANT, strlen(MEANT))) return next(resolve(path, buffer), target, size);
  const char *meant = resolve(path + strlen(MEANT), buffer);
  size_t length = strlen(meant);
  if (length > size) length = size;
  memcpy(target, meant, length);
  return (ssize_t)length;
}

/* Of the workspace: how many entries it has; -1 if a path, as it was given and as it is meant, is another folder. */
static int workspace_entries(const char *path, const char *meant) {
  char folder[PATH_MAX];
  if (meant == path || !workspace(folder, sizeof folder) || strcmp(meant, folder)) return -1;
  DIR *entries = opendir(folder);
  int count = -2; /* . and .. */
  while (entries && readdir(entries)) count++;
  if (entries) closedir(entries);
  return count;
}

/* Of an empty workspace each name can be removed and made again, as a folder; the workspace itself stays. */
#define STAYS(count, error)                                                 \
  do {                                                                      \
    int entries = count;                                                    \
    if (entries > 0) errno = error;                                         \
    if (entries >= 0) return entries ? -1 : 0;                              \
  } while (0)

EXPORT int rmdir(const char *path) {
  NEXT(rmdir);
  char buffer[PATH_MAX];
  const char *meant = resolve(path, buffer);
  STAYS(workspace_entries(path, meant), ENOTEMPTY);
  return next(meant);
}

EXPORT int unlinkat(int fd, const char *path, int flags) {
  NEXT(unlinkat);
  char buffer[PATH_MAX];
  const char *meant = resolve_at(fd, path, buffer);
  if (flags & AT_REMOVEDIR) STAYS(workspace_entries(path, meant), ENOTEMPTY);
  return next(fd, meant, flags);
}

EXPORT int remove(const char *path) {
  NEXT(remove);
  char buffer[PATH_MAX];
  const char *meant = resolve(path, buffer);
  STAYS(workspace_entries(path, meant), ENOTEMPTY);
  return next(meant);
}

EXPORT int mkdir(const char *path, mode_t mode) {
  NEXT(mkdir);
  char buffer[PATH_MAX];
  const char *meant = resolve(path, buffer);
  STAYS(workspace_entries(path, meant), EEXIST);
  return next(meant, mode);
}

EXPORT int mkdirat(int fd, const char *path, mode_t mode) {
  NEXT(mkdirat);
  char buffer[PATH_MAX];
  const char *meant = resolve_at(fd, path, buffer);
  STAYS(workspace_entries(path, meant), EEXIST);
  return next(fd, meant, mode);
}

EXPORT int rename(const char *from, const char *to) {
  NEXT(rename);
  char one[PATH_MAX], other[PATH_MAX];
  return next(resolve(from, one), resolve(to, other));
}

EXPORT int renameat(int from_fd, const char *from, int to_fd, const char *to) {
  NEXT(renameat);
  char one[PATH_MAX], other[PATH_MAX];
  return next(from_fd, resolve_at(from_fd, from, one), to_fd, resolve_at(to_fd, to, other));
}

EXPORT int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) {
  NEXT(renameat2);
  char one[PATH_MAX], other[PATH_MAX];
  return next(from_fd, resolve_at(from_fd, from, one), to_fd, resolve_at(to_fd, to, other), flags);
}

EXPORT int link(const char *from, const char *to) {
  NEXT(link);
  char one[PATH_MAX], other[PATH_MAX];
  return next(resolve(from, one), resolve(to, other));
}

EXPORT int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) {
  NEXT(linkat);
  char one[PATH_MAX], other[PATH_MAX];
  return next(from_fd, resolve_at(from_fd, from, one), to_fd, resolve_at(to_fd, to, other), flags);
}

/* The kernel follows a link, in later turns too: within the workspace it leads from where it lies to its target. */
static const char *link_target(const char *target, const char *link, char *buffer) {
  char folder[PATH_MAX], place[PATH_MAX], meant[PATH_MAX];
  if (!active || !target || *target != '/') return target;
  target = resolve(target, buffer);
  if (!absolute(target, meant) || !absolute(link, place) || !workspace(folder, sizeof folder)) return target;
  const char *to = after(meant, folder), *from = after(place, folder);
  if (!to || !from) return target;
  to = without_dots(to);
  size_t length = 0;
  for (from = without_dots(from); (from = strchr(from, '/')); from++)
    if (length + 4 > PATH_MAX) return target;
    else length += (size_t)sprintf(buffer + length, "../");
  if (length + strlen(to) + 2 > PATH_MAX) return target;
  strcpy(buffer + length, *to || length ? to : ".");
  return buffer;
}

EXPORT int symlink(const char *target, const char *path) {
  NEXT(symlink);
  char one[PATH_MAX], other[PATH_MAX];
  path = resolve(path, other);
  return next(link_target(target, path, one), path);
}

EXPORT int symlinkat(const char *target, int fd, const char *path) {
  NEXT(symlinkat);
  char one[PATH_MAX], other[PATH_MAX];
  path = resolve_at(fd, path, other);
  return next(fd == AT_FDCWD || *path == '/' ? link_target(target, path, one) : target, fd, path);
}

/* Names that libc makes up: the last part of the path, which is what it fills in, is the same in both. */
static char *filled(char *path, const char *meant) {
  size_t length = strlen(path), other = strlen(meant), part = 0;
  while (part < length && part < other && path[length - part - 1] != '/') part++;
  memcpy(path + length - part, meant + other - part, part);
  return path;
}

#define TEMPORARY(name, more, given)                                        \
  EXPORT int name(char *path more) {                                        \
    NEXT(name);                                                             \
    char buffer[PATH_MAX];                                                  \
    char *meant = (char *)resolve(path, buffer);                            \
    int fd = next(meant given);                                             \
    if (meant != path) filled(path, meant);                                 \
    return fd;                                                              \
  }
#define MORE(...) , __VA_ARGS__
TEMPORARY(mkstemp, , )
TEMPORARY(mkstemp64, , )
TEMPORARY(mkostemp, MORE(int flags), MORE(flags))
TEMPORARY(mkostemp64, MORE(int flags), MORE(flags))
TEMPORARY(mkstemps, MORE(int suffix), MORE(suffix))
TEMPORARY(mkstemps64, MORE(int suffix), MORE(suffix))
TEMPORARY(mkostemps, MORE(int suffix, int flags), MORE(suffix, flags))
TEMPORARY(mkostemps64, MORE(int suffix, int flags), MORE(suffix, flags))

EXPORT char *mkdtemp(char *path) {
  NEXT(mkdtemp);
  char buffer[PATH_MAX];
  char *meant = (char *)resolve(path, buffer);
  if (meant == path) return next(path);
  return next(meant) ? filled(path, meant) : NULL;
}

/* Node.js asks the kernel itself. */
EXPORT long syscall(long number, ...) {
  if (!system_call) system_call = dlsym(RTLD_NEXT, "syscall");
  long a[6];
  va_list more;
  va_start(more, number);
  for (int at = 0; at < 6; at++) a[at] = va_arg(more, long);
  va_end(more);
  char buffer[PATH_MAX];
  if (number == SYS_statx) a[1] = (long)resolve_at((int)a[0], (const char *)a[1], buffer);
  return system_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
